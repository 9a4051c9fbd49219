"""Training samples that are accepted or drawn anew, and streams that begin later."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.models import MLP
from petridish.store import Store
from petridish.sweeps import Sweep, run_sweep
from petridish.tasks import Examples, SparseParity, Task
from petridish.tasks.table import find_table
from petridish.testing import check_engine
from petridish.training import (
    ONLINE,
    Accepts,
    Data,
    Evaluation,
    OneHypothesis,
    RunSpec,
    Training,
    load_engine,
    read_spec,
    run_key,
    spec_text,
)
from petridish.training.data import sample_attempts, sample_examples, training_examples
from petridish.user_classes import learning


@dataclass(frozen=True)
class Even(Accepts):
    """Accept samples whose two classes differ by at most `most` examples."""

    name: ClassVar[str] = "even"

    most: int = 0

    def accepts(self, task: Task, seeds: Sequence[int], sample: Examples) -> NDArray[np.bool_]:
        """Count the classes."""
        found: NDArray[np.bool_] = (
            np.abs(2 * sample.labels.astype(int).sum(axis=1) - sample.labels.shape[1]) <= self.most
        )
        return found


@dataclass(frozen=True)
class Plain(Accepts):
    """Accept everything, by a single word."""

    name: ClassVar[str] = "plain"

    def accepts(self, task: Task, seeds: Sequence[int], sample: Examples) -> Any:
        """Return no array."""
        return True


SPEC = RunSpec(
    task=SparseParity(12, 3),
    data=Data(m=20, n_test=30, accept=Even()),
    model=MLP(width=10),
    training=Training(steps=8, target_error=None),
    evaluation=Evaluation(every=4, curves=True, weights=True),
)
SEEDS = range(12)


def specs(spec: RunSpec = SPEC) -> list[RunSpec]:
    """Return the spec at all seeds."""
    return [replace(spec, seed=seed) for seed in SEEDS]


def test_the_first_sample_that_is_accepted_is_trained_on() -> None:
    """Attempt a is the stream "train/a"; drawn one by one or together, a sample is the same."""
    drawn = training_examples(specs(), 0, 20)
    tried = [sample_attempts(spec) for spec in specs()]
    assert min(tried) == 1
    assert max(tried) > 2
    for row, (spec, attempts) in enumerate(zip(specs(), tried, strict=True)):
        streams = ["train", *(f"train/{attempt}" for attempt in range(1, attempts))]
        sums = [int(spec.task.draw([spec.seed], s, 0, 20).labels.sum()) for s in streams]
        assert sums[-1] == 10
        assert 10 not in sums[:-1]
        own = spec.task.draw([spec.seed], streams[-1], 0, 20)
        assert np.array_equal(drawn.x[row], own.x[0])
        assert np.array_equal(training_examples([spec], 5, 3).x[0], own.x[0, 5:8])


def test_other_samples_stay_as_they_were() -> None:
    """The held-out sample does not depend on what is accepted."""
    free = replace(SPEC, data=replace(SPEC.data, accept=None))
    assert np.array_equal(
        sample_examples(specs(), "test").x, sample_examples(specs(free), "test").x
    )


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_engines_agree_on_accepted_samples(engine: str) -> None:
    """Every engine trains on the accepted sample, as the reference does."""
    check_engine(load_engine(engine), SPEC, seeds=SEEDS)


def test_label_noise_comes_after() -> None:
    """A sample is judged by its true labels, and then has the run's noise."""
    noisy = replace(SPEC, data=replace(SPEC.data, label_noise=0.3))
    clean, seen = training_examples(specs(), 0, 20), training_examples(specs(noisy), 0, 20)
    assert np.array_equal(clean.x, seen.x)
    assert not np.array_equal(clean.labels, seen.labels)


def test_the_number_of_attempts_is_kept(tmp_path: Any) -> None:
    """A column of the store, for the runs that have it."""
    store = Store(tmp_path)
    run_sweep(Sweep(SPEC, {"data.accept": (Even(), None), "seed": SEEDS}), store, executor="inline")
    table = store.read().table.sort("seed")
    kept = table.drop_nulls("drawn.attempts")
    assert kept["drawn.attempts"].to_list() == [sample_attempts(spec) for spec in specs()]
    assert len(table) == 2 * len(kept)


def test_a_sample_that_no_draw_satisfies() -> None:
    """The message says how many were tried."""
    never = replace(SPEC, data=replace(SPEC.data, accept=Even(-1)), seed=3)
    with pytest.raises(UserError) as refused:
        training_examples([never], 0, 20)
    assert str(refused.value) == (
        "Of the first 1000 training samples of sparse_parity(12, 3) with m=20 at seed 3, even(-1) "
        "accepts none. Raise data.m, or accept more."
    )


def test_keys_without_them_are_what_they_were() -> None:
    """Both fields came later; with them a spec comes back as it was."""
    plain = replace(SPEC, data=Data(m=20, n_test=30))
    assert "accept" not in spec_text(plain)
    assert "skip" not in spec_text(plain)
    with learning(__import__(__name__, fromlist=["Even"])):
        again = read_spec(spec_text(SPEC))
    assert again == SPEC
    assert (
        len(
            {
                run_key(spec)
                for spec in (plain, SPEC, replace(plain, data=Data(m=20, n_test=30, skip=5)))
            }
        )
        == 3
    )


@pytest.mark.parametrize("m", [20, ONLINE])
def test_a_stream_may_begin_later(m: float) -> None:
    """Skipping s examples, example i is the one that was example i + s; its noise too."""
    whole = replace(SPEC, data=Data(m=m, n_test=30, label_noise=0.2))
    later = replace(whole, data=replace(whole.data, skip=7))
    one, other = training_examples([whole], 7, 10), training_examples([later], 0, 10)
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.labels, other.labels)


def test_the_native_engine_leaves_later_streams_to_torch() -> None:
    """Its C++ begins with the first example; of a sample, Python draws."""
    native = load_engine("native")
    online = replace(SPEC, data=Data(n_test=30, skip=7))
    assert native.refusal(online) == (
        "online it begins with the first example, and data.skip=7. The engine torch can."
    )
    check_engine(native, replace(SPEC, data=Data(m=20, n_test=30, skip=7)))
    check_engine(load_engine("torch"), online)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Data(accept=Even()),
            "Data: accept=even judges whole training samples, and with m=inf there is none. Give a "
            "finite m.",
        ),
        (
            lambda: Data(m=5, accept="even"),  # type: ignore[arg-type]
            "Data: accept='even'. Give for example OneHypothesis().",
        ),
        (
            lambda: Data(m=5, draws="distinct", skip=1),
            "Data: draws='distinct' cuts one order of all inputs into the samples: nothing can be "
            "skipped or drawn anew. Give draws='independent', or neither accept nor skip.",
        ),
        (
            lambda: training_examples(
                [replace(SPEC, data=replace(SPEC.data, accept=Plain()))], 0, 5
            ),
            "The rule plain returned True from accepts for one run. Return a NumPy array with one "
            "bool per run.",
        ),
        (lambda: Data(m=5, skip=-1), "Data: skip=-1. Give a whole number of at least 0."),
        (
            lambda: replace(SPEC, data=Data(m=5, accept=OneHypothesis())).check(),
            "OneHypothesis: the task sparse_parity(12, 3) does not say which hypotheses explain a "
            "sample. Give a task that inherits HasHypotheses, or leave accept out.",
        ),
        (
            lambda: training_examples(
                [
                    replace(
                        SPEC,
                        task=find_table("breast_cancer"),
                        data=Data(m=20, n_test=30, accept=Even(-1)),
                    )
                ],
                0,
                20,
            ),
            "The table breast_cancer has training and test rows, and examples of 'train/1' were "
            "asked for. A table cannot be drawn anew.",
        ),
    ],
    ids=["online", "text", "distinct", "plain", "negative", "hypotheses", "table"],
)
def test_what_cannot_be_accepted(make: Any, message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        make()
    assert str(refused.value) == message
