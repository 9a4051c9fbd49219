"""Rules for accepting a training sample; a sample that is not accepted is drawn again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError
from petridish.tasks import Examples, HasHypotheses, Task

MOST_ATTEMPTS = 1000  # draws of a training sample before the run is refused


class Accepts(ABC):
    """A rule for whole training samples.

    A new rule is a frozen dataclass that inherits from this class, with a `name` and the method
    `accepts`. Attempt 0 is the sample that a run without the rule has (stream "train"), attempt a
    comes from the stream "train/a"; the first that is accepted is trained on.
    """

    name: ClassVar[str]

    def check(self, task: Task) -> None:  # noqa: B027 - most rules fit every task
        """Refuse a task whose samples it cannot judge."""

    @abstractmethod
    def accepts(self, task: Task, seeds: Sequence[int], sample: Examples) -> NDArray[np.bool_]:
        """Return whether each run's whole sample is accepted, shape (run,); labels have no noise.

        `seeds` are the runs', axis 0 of the sample.
        """


@dataclass(frozen=True)
class OneHypothesis(Accepts):
    """Accept samples that a single hypothesis of the task explains, which is the true one."""

    name: ClassVar[str] = "one_hypothesis"

    def check(self, task: Task) -> None:
        """Refuse a task that does not say what its hypotheses are."""
        if not isinstance(task, HasHypotheses):
            raise UserError(
                f"OneHypothesis: the task {describe(task)} does not say which hypotheses explain a "
                "sample. Give a task that inherits HasHypotheses, or leave accept out."
            )

    def accepts(self, task: Task, seeds: Sequence[int], sample: Examples) -> NDArray[np.bool_]:
        """Return whether one hypothesis alone has all labels."""
        assert isinstance(task, HasHypotheses), "the spec was checked"
        return ~task.several_explain(sample)


ACCEPTS: dict[str, type] = {kind.name: kind for kind in (OneHypothesis,)}
