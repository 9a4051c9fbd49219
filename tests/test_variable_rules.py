"""VC: rules on worlds with known thresholds, ten kinds of functions, classical learners, checks."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from petridish.chapters import EXPERIMENTS
from petridish.chapters.variables.checks import CHECKS, Check
from petridish.chapters.variables.classical import (
    SAMPLES,
    lasso_finds,
    sample_needed,
    search_finds,
)
from petridish.chapters.variables.function_rules import EasierThan, written
from petridish.chapters.variables.functions import MAJORITY, PARITY, classes
from petridish.chapters.variables.inside import MEASURED
from petridish.chapters.variables.measures import LeastBelow
from petridish.chapters.variables.rules import LinearInLog, ThresholdAt
from petridish.chapters.variables.sample_thresholds import box_cox, thresholds_of
from petridish.chapters.variables.start_rules import MixedStarts, ScattersMore
from petridish.errors import UserError
from petridish.models import ClsTransformer
from petridish.publish.records import read_record
from petridish.rules import Judgement
from petridish.rules.curve_measures import LeastOf
from petridish.store import Store
from petridish.sweeps import Arms
from petridish.tasks import BiasedAnd, Classes, Domain, Tokens
from petridish.theory.variables.bounds import BOUNDS, find_bound, implied_sample
from petridish.theory.variables.generalisation import closed_rademacher, rademacher_bound
from petridish.theory.variables.lipschitz import RATIOS
from tests.conftest import SmokeStore
from tests.test_variables import world


def smooth(law: dict[int, float], seeds: int = 40) -> pl.DataFrame:
    """Return trials that succeed from a law's m on, on a fine grid around it."""
    return pl.concat(
        world({n: {float(need + by): float(by >= 0) for by in range(-3, 4)}}, seeds=seeds)
        for n, need in law.items()
    )


LENGTHS = (50, 100, 200, 400, 800)


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 1.0])
def test_box_and_cox_s_exponent_is_found(power: float) -> None:
    """Sizes on a curve a + b (T^γ − 1)/γ have its γ; equal sizes have none."""
    lengths = np.array(LENGTHS, float)
    rising = np.log(lengths) if power == 0 else (lengths**power - 1) / power
    found = box_cox(lengths, np.stack([5 + 3 * rising, np.full(5, 7.0)], axis=1))
    assert found[0] == pytest.approx(power, abs=0.03)
    assert np.isnan(found[1])


def test_a_logarithm_is_not_rejected_and_a_root_is() -> None:
    """Thresholds exactly on 20 log₂ T, and on 5 √T."""
    log = LinearInLog().judge(smooth({n: round(20 * np.log2(n)) for n in LENGTHS}), 0.05)
    root = LinearInLog().judge(smooth({n: round(5 * np.sqrt(n)) for n in LENGTHS}), 0.05)
    assert log.judgement is Judgement.SUPPORTED
    assert log.low <= 0 <= log.high < 0.5
    assert root.judgement is Judgement.CONTRADICTED
    assert root.low > 0
    few = LinearInLog().judge(smooth({50: 20, 100: 30}), 0.05)
    assert few.remark == "needs four values of task.n"


def test_a_threshold_that_trials_leave_open_says_nothing_of_the_law() -> None:
    """With four trials the least m may be larger than all that were tried, whatever the law."""
    finding = LinearInLog().judge(smooth({n: round(20 * np.log2(n)) for n in LENGTHS}, 4), 0.05)
    assert (finding.judgement, finding.low, finding.high) == (Judgement.UNDECIDED, -3, 3)


@pytest.mark.parametrize(
    ("need", "judgement"),
    [(70, Judgement.SUPPORTED), (40, Judgement.CONTRADICTED), (120, Judgement.CONTRADICTED)],
)
def test_one_threshold_is_held_against_its_bounds(need: int, judgement: Judgement) -> None:
    """70 is about 70; 40 and 120 are not; without runs at that T nothing is said."""
    found = ThresholdAt().judge(smooth({300: need}), 0.05)
    assert (found.estimate, found.judgement) == (need, judgement)
    assert ThresholdAt().judge(smooth({100: need}), 0.05).remark == "no run has task.n = 300"


def curves(errors: dict[str, list[list[float]]]) -> pl.DataFrame:
    """Return runs by arm, data set and start, each with its least held-out error."""
    return pl.DataFrame(
        [
            {
                "arms": [arm],
                "data.m": 10.0,
                "seed": seed,
                "restart": restart,
                "curve.test_error": [0.5, least],
            }
            for arm, sets in errors.items()
            for seed, starts in enumerate(sets)
            for restart, least in enumerate(starts)
        ]
    )


def test_starts_that_differ_are_counted_by_data_set() -> None:
    """Of 40 data sets 36 have both kinds of starts; or 2."""
    often = curves({"at": [[0.0, 0.3]] * 36 + [[0.0, 0.0]] * 2 + [[0.3, 0.4]] * 2})
    found = MixedStarts("at").judge(often, 0.05)
    assert (found.estimate, found.n, found.judgement) == (0.9, 40, Judgement.SUPPORTED)
    seldom = MixedStarts("at").judge(curves({"at": [[0.0, 0.3]] * 2 + [[0.2, 0.2]] * 38}), 0.05)
    assert seldom.judgement is Judgement.CONTRADICTED
    one = MixedStarts("at").judge(curves({"at": [[0.0]]}), 0.05)
    assert one.remark == "needs several starts on one data set"


def test_the_scatter_of_best_starts_is_compared() -> None:
    """Best errors from 0 to 0.4 against all 0, and against as scattered ones."""
    rng = np.random.default_rng(0)
    wide = [[float(x), 0.45] for x in rng.uniform(0, 0.4, 40)]
    other = [[float(x), 0.45] for x in rng.uniform(0, 0.4, 40)]
    more = ScattersMore("a", "b").judge(curves({"a": wide, "b": [[0.0, 0.3]] * 40}), 0.05)
    same = ScattersMore("a", "b").judge(curves({"a": wide, "b": other}), 0.05)
    assert more.judgement is Judgement.SUPPORTED
    assert more.estimate == pytest.approx(0.4 / np.sqrt(12), rel=0.2)
    assert same.judgement is Judgement.UNDECIDED


def test_curves_are_read_at_their_lowest() -> None:
    """The least value, and whether it is below; NaN without a curve."""
    table = pl.DataFrame({"curve.x": [[0.5, 0.2, 0.3], [0.5], None]})
    assert LeastOf("x").of(table).tolist()[:2] == [0.2, 0.5]
    assert LeastBelow("x", 0.3).of(table).tolist()[:2] == [1.0, 0.0]
    assert np.isnan(LeastBelow("x", 0.3).of(table)[2])


def functions(of_majority: float, of_parity: float) -> pl.DataFrame:
    """Return trials of two functions with known thresholds."""
    return pl.concat(
        smooth({50: need}).with_columns(
            pl.Series("task.values", [list(values)] * len(smooth({50: need}))),
            pl.Series("arms", [["attention"]] * len(smooth({50: need}))),
        )
        for values, need in ((MAJORITY, of_majority), (PARITY, of_parity))
    )


def test_two_functions_are_compared_by_their_samples() -> None:
    """Half as many are no more; twice as many are."""
    rule = EasierThan(MAJORITY, PARITY)
    fewer, more = rule.judge(functions(40, 80), 0.05), rule.judge(functions(80, 40), 0.05)
    assert (fewer.estimate, fewer.judgement) == (0.5, Judgement.SUPPORTED)
    assert (more.estimate, more.judgement) == (2.0, Judgement.CONTRADICTED)
    assert written([0, 1, 1]) == written((0, 1, 1)) == "011"


def test_there_are_ten_kinds_of_functions_of_three_bits() -> None:
    """Together with their turned and negated forms they are all 218 that depend on every bit."""
    settings = list(product((0, 1), repeat=3))
    sizes = []
    for table in classes():
        orbit = set()
        for order in permutations(range(3)):
            for flips in settings:
                turned = tuple(
                    table[settings.index(tuple(bits[i] ^ flips[i] for i in order))]
                    for bits in settings
                )
                orbit |= {turned, tuple(1 - value for value in turned)}
        sizes.append(len(orbit))
    assert (len(sizes), sum(sizes)) == (10, 218)


def test_and_and_or_are_one_problem() -> None:
    """With the embeddings of 0 and 1 and the two outputs exchanged, an OR is an AND: exactly.

    Losses and gradients of negated bits and labels are those of the AND, so that whole trainings
    are [TH A.3.1, footnote].
    """
    domain = Domain(Tokens(2, 6), Classes(2))
    first, second = (ClsTransformer(8, 2, 0.0).build(domain, 2).double() for _ in range(2))
    second.load_state_dict(first.state_dict())
    with torch.no_grad():
        for parameter in (second.embed.tokens.weight, second.output.weight):  # type: ignore[union-attr]
            parameter[[0, 1]] = parameter[[1, 0]].clone()  # type: ignore[index,operator]
    x = torch.randint(0, 2, (20, 6), generator=torch.Generator().manual_seed(0))
    labels = x[:, :3].all(dim=1).long()
    losses = []
    for module, inputs, wanted in ((first, x, labels), (second, 1 - x, 1 - labels)):
        loss = torch.nn.functional.cross_entropy(module(inputs), wanted)
        torch.autograd.backward(loss)
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)
    assert torch.equal(1 - labels, (1 - x)[:, :3].any(dim=1).long())  # the OR of the negated bits
    for (name, one), other in zip(first.named_parameters(), second.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        swapped = other.grad.clone()
        if name in ("embed.tokens.weight", "output.weight"):
            swapped[[0, 1]] = swapped[[1, 0]].clone()
        assert torch.allclose(one.grad, swapped, rtol=1e-9, atol=1e-14)


def test_exhaustive_search_finds_what_one_hypothesis_explains() -> None:
    """As the rejection of samples says; it needs fewer examples than the LASSO on bits."""
    task = BiasedAnd(12)
    drawn = task.draw(range(20), "train", 0, 14)
    several = task.several_explain(drawn)
    assert [search_finds(task, 14, seed) for seed in range(20)] == (~several).tolist()
    assert lasso_finds(BiasedAnd(5), 200, 0)
    search = sample_needed("exhaustive search", 30, trials=20)
    lasso = sample_needed("LASSO on bits", 30, trials=20)
    assert search in SAMPLES
    assert search <= lasso


@pytest.mark.parametrize("name", [name for name in CHECKS if name != "vacuous"])
def test_every_check_holds(name: str) -> None:
    """What is built is what the text says, repaired."""
    assert Check(name).judge(pl.DataFrame(), 0.05).judgement is Judgement.SUPPORTED


def test_an_unknown_check_or_bound_is_one_line() -> None:
    """With the nearest known name."""
    with pytest.raises(UserError) as refused:
        Check("shatter")
    assert str(refused.value) == (
        "Check: there is no check called 'shatter'. Did you mean shattering?"
    )
    with pytest.raises(UserError) as refused:
        find_bound("Corollary 4.9")
    assert str(refused.value).startswith("There is no bound called 'Corollary 4.9'. ")
    assert find_bound("Cor. 4.9") is BOUNDS["Lemma A.11"]
    with pytest.raises(UserError, match=r"capacity=0, m=1, largest=1.0. Give positive numbers."):
        closed_rademacher(0, 1)


def test_the_closed_bound_is_the_integral_of_a_square() -> None:
    """Against the sums of `rademacher_bound` for log N = C/ε²; and its order in m."""
    for capacity, m in ((1.0, 1e4), (50.0, 1e6)):
        closed = closed_rademacher(capacity, m)
        summed = rademacher_bound(lambda radius, c=capacity: c / radius**2, m, largest=1.0)  # type: ignore[misc]
        assert closed <= summed <= 1.15 * closed
    assert closed_rademacher(1e6, 10) == 1.0


def test_the_bound_lies_decades_beyond_what_is_needed() -> None:
    """At T = 30 too; the statements about Lipschitz constants have ratios to be drawn."""
    assert implied_sample(30) > 50e9
    assert "Lemma A.15" in RATIOS


@pytest.mark.parametrize("name", ["VC-2", "VC-3", "VC-4", "VC-5"])
def test_the_smoke_runs_are_judged_drawn_and_tabulated(name: str, smoke_store: SmokeStore) -> None:
    """Every claim without a fault, every figure and table of them."""
    experiment = EXPERIMENTS[name]
    stored = Store(smoke_store(name)).read(columns="all").table
    table = experiment.sweep("smoke").among(stored)
    verdicts = experiment.judge(table, "smoke")
    assert [verdict.claim.name for verdict in verdicts] == [c.name for c in experiment.claims]
    for draw in experiment.figures.values():
        assert draw(table, name).get_axes()
    for tabulate in experiment.tables.values():
        assert len(tabulate(table)) > 0


def test_curves_are_drawn_around_the_threshold_of_the_record() -> None:
    """VC-2's sample at T = 300 is the least m that VC-1's record has there; two more follow."""
    (folder,) = (Path(__file__).parent.parent / "records").glob("*-VC-1-laptop")
    runs = read_record(folder)
    known = thresholds_of(runs.filter(pl.col("task.n") == 300))
    arms = EXPERIMENTS["VC-2"].sweep("laptop")
    assert isinstance(arms, Arms)
    sizes = {name: arm.base.data.m for name, arm in arms.arms.items()}

    assert known.exact
    assert known.found[0, 1] == MEASURED == sizes.pop("at the threshold")
    assert sizes == {"below": 37, "above": 155, "m = 50": 50, "m = 200": 200, "one head": 300}
