"""Tasks labelled by a trained network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError
from petridish.tasks import Classes, Domain, Examples, HasParts, LimitsData, Task
from petridish.tasks.base import Sample
from petridish.training.chains import Needs, ended
from petridish.training.numerics import with_floats
from petridish.training.spec import RunSpec
from petridish.training.taking_over import check_parent

CHUNK = 1024  # examples that the teacher answers in one pass


@dataclass(frozen=True)
class Taught(Needs, HasParts, LimitsData):
    """The inputs of a task, labelled by a network that was trained before: its teacher.

    A class is the teacher's answer, the largest output or the sign of a single one; real targets
    are its outputs. The teacher answers as in evaluation, in double precision.

    Attributes
    ----------
    inputs : Task
        What draws the inputs; its own labels are not used, its parts and facts are kept.
    teacher : RunSpec
        The run whose last weights answer.
    seed : int or None
        The teacher's seed; None for a teacher of each run's own seed.
    """

    name: ClassVar[str] = "taught"

    inputs: Task
    teacher: RunSpec
    seed: int | None = 0

    def __post_init__(self) -> None:
        check_parent("Taught", "teacher", self.teacher, self.seed)
        if not is_dataclass(self.inputs):
            raise UserError(f"Taught: inputs={self.inputs!r} is no task. Give one.")

    def parents(self, spec: RunSpec) -> tuple[RunSpec, ...]:
        """Return the teacher, and what the inputs need."""
        more = self.inputs.parents(spec) if isinstance(self.inputs, Needs) else ()
        return (self._teacher(spec.seed), *more)

    def _teacher(self, seed: int) -> RunSpec:
        return replace(self.teacher, seed=seed if self.seed is None else self.seed)

    @property
    def domain(self) -> Domain:
        """The inputs of `inputs`, the target of the teacher."""
        asked, given = self.teacher.domain.inputs, self.inputs.domain.inputs
        if asked != given:
            raise UserError(
                f"Taught: the inputs of {describe(self.inputs)} are {given}, and the teacher "
                f"{describe(self.teacher)} reads {asked}. Give inputs that it reads."
            )
        return Domain(given, self.teacher.domain.target)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the inputs."""
        return self.inputs.parts if isinstance(self.inputs, HasParts) else ()

    def check_data(self, data: Sample) -> None:
        """Refuse what the inputs' task refuses."""
        if isinstance(self.inputs, LimitsData):
            self.inputs.check_data(data)

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw the inputs, and let the teacher label them."""
        drawn = self.inputs.draw(seeds, purpose, start, count)
        labels = [self._answers(seed, x) for seed, x in zip(seeds, drawn.x, strict=True)]
        return replace(drawn, labels=np.stack(labels))

    def _answers(self, seed: int, x: NDArray[Any]) -> NDArray[Any]:
        """Return the teacher's labels of inputs (example, …)."""
        import torch

        from petridish.models.parameters import build

        run = self._teacher(seed)
        module = build(run.model, run.domain, run.n_outputs).double().eval()
        state = {name: torch.from_numpy(values) for name, values in ended(run).items()}
        module.load_state_dict(state, strict=False)
        inputs = with_floats(torch.from_numpy(x), torch.float64)
        with torch.no_grad():
            pieces = [module(inputs[i : i + CHUNK]) for i in range(0, len(inputs), CHUNK)]
        outputs = torch.cat(pieces)
        if not isinstance(run.domain.target, Classes):
            return outputs.float().numpy()
        if outputs.shape[-1] == 1:
            return (outputs.squeeze(-1) < 0).to(torch.uint8).numpy()  # class 1 is y = −1
        return outputs.argmax(dim=-1).numpy()
