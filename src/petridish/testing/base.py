"""What all checks share: `Broken`, checks of values, short runs, agreement of records."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import is_dataclass
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe, name_of, said_by
from petridish.errors import UserError
from petridish.models import Model
from petridish.seeds import Streams
from petridish.tasks import (
    Classes,
    Domain,
    Task,
)
from petridish.training import (
    CrossEntropy,
    Data,
    Evaluation,
    Instrument,
    Loss,
    RunRecord,
    RunSpec,
    Square,
    Training,
)
from petridish.training.instruments import instrument
from petridish.user_classes import learning
from petridish.values import Gone, plain, read

Given = ParamSpec("Given")
SEEDS = (3, 5)
CLOSE = 1e-4  # relative: engines may round otherwise, and a few steps let it grow


class Broken(AssertionError):
    """A class does not keep its contract."""


def demand(kept: object, message: str) -> None:
    """Raise `Broken` with this message unless the contract is kept."""
    if not kept:
        raise Broken(message)


def in_words(check: Callable[Given, None]) -> Callable[Given, None]:
    """Turn whatever the checked class raises into one sentence."""

    @wraps(check)
    def checked(*arguments: Given.args, **settings: Given.kwargs) -> None:
        try:
            check(*arguments, **settings)
        except (Broken, UserError):
            raise
        except Exception as error:
            value = arguments[0]
            shown = describe(value) if is_dataclass(value) else name_of(value)
            contract = check.__name__.removeprefix("check_").capitalize()
            raise Broken(
                f"{check.__name__} of {shown} failed{said_by(error)}. "
                f"The docstring of {contract} says what each method is given and returns."
            ) from error

    return checked


def check_value(value: Any) -> None:
    """Require a frozen dataclass with a name, which comes back from its JSON."""
    demand(
        not isinstance(value, type),
        f"{value!r} is a class. Give an instance of it.",
    )
    kind = type(value)
    demand(
        is_dataclass(value) and kind.__dataclass_params__.frozen,
        f"{kind.__name__} is no frozen dataclass. Put @dataclass(frozen=True) above it.",
    )
    demand(
        isinstance(getattr(kind, "name", None), str),
        f"{kind.__name__} has no name. Give it such as `name: ClassVar[str] = "
        f'"{kind.__name__.lower()}"`.',
    )
    module = sys.modules.get(kind.__module__)
    with learning(module) if module else nullcontext():
        again = read(plain(value))
    demand(
        not isinstance(again, Gone),
        f"{kind.__name__} is not found at the top of its file, where stored runs expect it. "
        "Define it there, outside of functions and classes.",
    )
    if isinstance(value, Instrument):
        again = instrument(again)  # some are written by their names alone
    demand(
        again == value and hash(again) == hash(value),
        f"{describe(value)} is read back from its JSON as {again!r}. Give its fields numbers, "
        "text, None, values, or tuples of them, with type hints that say which.",
    )


def available(task: Task, count: int) -> int:
    """Return the largest number of examples, up to `count`, that the task can draw."""
    while count > 1:
        try:
            for purpose in ("train", "test"):
                task.draw(SEEDS, purpose, 0, count)
        except Exception:  # any other fault is reported by the next draw
            count //= 2
        else:
            break
    return count


def _loss_for(domain: Domain) -> Loss:
    return CrossEntropy() if isinstance(domain.target, Classes) else Square()


def short_run(task: Task, model: Model, loss: Loss | None = None, **changes: Any) -> RunSpec:
    """Return a run of a few steps with curves, on which engines can be compared."""
    loss = _loss_for(task.domain) if loss is None else loss
    count = available(task, 40)
    training = Training(
        loss=loss,
        learning_rate=0.01,
        weight_decay=0.01,
        batch_size=min(8, count),
        steps=4,
        target_error=None,
    )
    return RunSpec(
        task=task,
        data=Data(m=count, n_test=count),
        model=model,
        training=training,
        evaluation=Evaluation(every=1, curves=True, weights=True),
        **changes,
    )


def numbers_of(name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return normal numbers that depend on their name alone."""
    return Streams([0], name).normals(0, math.prod(shape)).reshape(shape)


def close(one: NDArray[Any], other: NDArray[Any], tolerance: float) -> bool:
    """Return whether two arrays agree, relative to their largest entry."""
    if one.shape != other.shape:
        return False
    finite = np.isfinite(other)
    size = float(np.abs(other[finite]).max(initial=0.0))
    return bool(
        np.array_equal(np.isnan(one), np.isnan(other))
        and np.allclose(
            one, other, rtol=tolerance, atol=tolerance * max(size, 1e-3), equal_nan=True
        )
    )


def _shown(numbers: NDArray[Any]) -> str:
    flat = np.ravel(numbers)
    return np.array2string(flat[:4], precision=6) + (" …" if flat.size > 4 else "")


def curves_of(record: RunRecord) -> dict[str, NDArray[Any]]:
    """Return every number of a record, by name."""
    numbers: dict[str, NDArray[Any]] = {
        name: np.array(values) for name, values in record.curves.values.items()
    }
    numbers |= {f"array {name}": np.stack(v) for name, v in record.curves.arrays.items()}
    numbers |= {f"final {name}": np.array(value) for name, value in record.final.items()}
    if record.weights is not None and record.weights_of is not None:
        named = zip(record.weights_of, record.weights, strict=True)
        numbers |= {f"weights {name}": np.array(values) for (name, _), values in named}
    return numbers


def agree(what: str, ours: Sequence[RunRecord], theirs: Sequence[RunRecord]) -> None:
    """Demand that two engines made the same records, up to rounding."""
    by_seed = {record.spec.seed: record for record in theirs}
    for record in ours:
        other = by_seed.pop(record.spec.seed, None)
        if other is None:
            raise Broken(f"{what}: seed {record.spec.seed} is missing, or there twice.")
        one, two = curves_of(record), curves_of(other)
        demand(
            (record.outcome, record.steps, record.curves.step, one.keys())
            == (other.outcome, other.steps, other.curves.step, two.keys()),
            f"{what}: seed {record.spec.seed} ends as {record.outcome.name} after {record.steps} "
            f"steps here and as {other.outcome.name} after {other.steps} there, or keeps other "
            f"curves.",
        )
        for name, numbers in one.items():
            demand(
                close(numbers, two[name], CLOSE),
                f"{what}: {name} of seed {record.spec.seed} is {_shown(numbers)} here and "
                f"{_shown(two[name])} there.",
            )
    demand(not by_seed, f"{what}: the seeds {sorted(by_seed)} are there, and not here.")
