"""HP's declarations: every architecture under its numeral, every scale as large as it says."""

from __future__ import annotations

import pytest

from petridish.chapters import EXPERIMENTS, HIDDEN
from petridish.chapters.hidden.rules.architectures import NUMERALS, ROBUST, architecture, numeral
from petridish.chapters.hidden.rules.robust import RATES
from petridish.choices import describe
from petridish.errors import UserError
from petridish.models import DisjointPolyNet, SymmetricSigns
from petridish.tasks import SparseParity
from petridish.training import Greedy, RunSpec, choose_engine


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("name", NUMERALS[:17])
def test_an_architecture_is_found_under_its_numeral(name: str, k: int) -> None:
    """What is declared as (iv) is drawn and judged as (iv)."""
    assert numeral(architecture(name, k), k) == name


def test_the_robust_space_of_a_laptop_covers_what_it_must() -> None:
    """Every architecture, two starts, two losses, three batch sizes and all four rates, crossed."""
    specs = [spec for spec, _ in EXPERIMENTS["HP-1"].sweep("laptop").cells()]
    crossed = {
        (
            numeral(spec.model, 3),
            describe(spec.init),
            spec.training.loss.name,
            spec.training.batch_size,
            spec.training.learning_rate,
        )
        for spec in specs
        if describe(spec.task) == "sparse_parity(10, 3)" and numeral(spec.model, 3) in ROBUST
    }
    by_part = [set(part) for part in zip(*crossed, strict=True)]

    assert by_part[0] == set(ROBUST)
    assert [len(part) >= least for part, least in zip(by_part[1:4], (2, 2, 3), strict=True)] == [
        True
    ] * 3
    assert by_part[4] == set(RATES)
    sizes = [len(part) for part in by_part]
    assert len(crossed) == sizes[0] * sizes[1] * sizes[2] * sizes[3] * sizes[4]


def test_the_compiled_engine_serves_all_but_what_is_deep_or_fixed() -> None:
    """Of HP's laptop runs, PyTorch is left with transformers, depth, kernels and full batches."""
    left = {
        spec.model.name
        for experiment in HIDDEN
        for spec, _ in experiment.sweep("laptop").cells()
        if choose_engine(spec).name != "native" and spec.training.batch_size is not None
    }
    assert left == {"transformer", "mlp", "tangent", "disjoint_polynet"}
    deep = {
        experiment.id
        for experiment in HIDDEN
        for spec, _ in experiment.sweep("laptop").cells()
        if spec.model.name == "mlp"
        and choose_engine(spec).name != "native"
        and spec.training.batch_size is not None
    }
    assert deep == {"HP-11"}


def refused(build: object) -> str:
    """Return the sentence with which something is refused."""
    assert callable(build)
    with pytest.raises(UserError) as error:
        build()
    return str(error.value)


def test_what_cannot_be_learned_or_drawn_is_refused_in_one_sentence() -> None:
    """A parity with two bits in one block, a greedy start on a greedy one, an odd k."""
    for task, support in (
        (SparseParity(9, 3, (0, 1, 6)), "(0, 1, 6)"),
        (SparseParity(9, 3), "None"),
    ):
        assert refused(RunSpec(task=task, model=DisjointPolyNet(3)).check) == (
            f"DisjointPolyNet: the support {support} does not have one bit in each of the k=3 "
            "blocks of 3. Give the task a support such as (0, 3, 6)."
        )
    RunSpec(task=SparseParity(9, 3, (8, 1, 4)), model=DisjointPolyNet(3)).check()
    assert refused(lambda: Greedy(Greedy())) == (
        "Greedy: base=greedy depends on other runs itself. Give a start that is drawn, such as "
        "Uniform()."
    )
    assert refused(lambda: SymmetricSigns(3)) == (
        "SymmetricSigns: k=3. Give an even number of at least 2."
    )
