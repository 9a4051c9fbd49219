"""What PF says of depth, sparsity and decay on tables: rules against worlds of known effects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from petridish.chapters.tables.choice_rules import HardlyMatters, NearlyUniformlyWorse
from petridish.chapters.tables.recipe_choices import CHOICES
from petridish.models import MLP
from tests.rule_worlds import CONTRADICTED, SUPPORTED, UNDECIDED
from tests.tabular_worlds import Method, Numbers, mlp, nothing_matters, world

DEPTH = NearlyUniformlyWorse("depth", 1, (2, 3))
DECAY = HardlyMatters("training.weight_decay", 0.01, (0.0,))
DEPTHS = [mlp(100, depth) for depth in (1, 2, 3)]
DECAYS = [mlp(100, decay=decay) for decay in (0.0, 0.01)]


def shallow(method: Method) -> bool:
    """Whether the network has one hidden layer."""
    return method.deeper == ()


def test_depth_by_hand() -> None:
    """Depth 1 errs 2 points more than depth 2 and 4 more than depth 3: 3 on average."""

    def effect(method: Method, m: float, luck: Numbers) -> Numbers:
        return -0.02 * len(method.deeper or ()) + 0.0 * luck

    finding = DEPTH.judge(world(effect, DEPTHS, noise=1e-6), 0.05)

    assert finding.estimate == pytest.approx(3.0, abs=1e-3)
    assert finding.quantity == "error of depth 1 − depth 2 or depth 3, percentage points"
    assert finding.n == 3 * 12 * 3 * 10  # a network that is compared twice is one run
    assert finding.judgement is SUPPORTED
    assert finding.remark == "it errs less in 0 of 72 comparisons, significantly in 0"


@pytest.mark.parametrize(
    ("gains", "judgement"),
    [((0.03,) * 12, SUPPORTED), ((-0.03,) * 12, CONTRADICTED), ((0.0,) * 12, UNDECIDED)],
)
def test_a_depth_that_helps_harms_or_does_nothing(gains: Any, judgement: Any) -> None:
    """On every task alike."""

    def effect(method: Method, m: float, luck: Numbers) -> Numbers:
        return np.array(gains) * shallow(method)

    finding = DEPTH.judge(world(effect, DEPTHS), 0.01)

    assert finding.judgement is judgement
    assert ("are too small for these runs" in finding.remark) is (judgement is UNDECIDED)


@pytest.mark.parametrize(("share", "judgement"), [(0.1, CONTRADICTED), (0.3, SUPPORTED)])
def test_nearly_uniformly_allows_a_tenth_of_exceptions(share: float, judgement: Any) -> None:
    """On two of twelve tasks depth 1 is the better: 17 % of the comparisons."""

    def effect(method: Method, m: float, luck: Numbers) -> Numbers:
        gain = np.full(len(luck), 0.08)
        gain[:2] = -0.05
        return gain * shallow(method)

    rule = NearlyUniformlyWorse("depth", 1, (2, 3), share=share)
    finding = rule.judge(world(effect, DEPTHS, noise=0.003), 0.05)

    assert finding.remark.startswith("it errs less in 12 of 72 comparisons, significantly in 12")
    assert finding.judgement is judgement


def test_many_mere_exceptions_leave_it_open() -> None:
    """A mean gain is not «nearly uniformly», where a third of the comparisons lie below 0."""

    def effect(method: Method, m: float, luck: Numbers) -> Numbers:
        gain = np.full(len(luck), 0.2)
        gain[:4] = -0.001
        return gain * shallow(method)

    finding = DEPTH.judge(world(effect, DEPTHS, noise=0.002), 0.05)

    assert finding.low > 0
    assert finding.judgement is UNDECIDED


def test_starts_are_compared_at_equal_depth_and_width() -> None:
    """Sparsities are told apart by the start; other widths and depths are no pair."""
    rule = NearlyUniformlyWorse("init", "sparse(4)", ("sparse(2)",))
    pair = [mlp(100, init=f"sparse({s})") for s in (2, 4)]
    other = [mlp(100, init="sparse(2)"), mlp(300, init="sparse(4)"), mlp(100, 3, "sparse(4)")]

    assert rule.judge(world(methods=pair), 0.05).n == 2 * 12 * 3 * 10
    finding = rule.judge(world(methods=other), 0.05)
    assert finding.judgement is UNDECIDED
    assert finding.remark == "needs both at equal conditions, on 3 tasks"


@pytest.mark.parametrize(
    ("size", "judgement"),
    [(0.0, SUPPORTED), (0.01, UNDECIDED), (0.05, CONTRADICTED), (-0.05, CONTRADICTED)],
)
def test_decay_hardly_matters_or_does(size: float, judgement: Any) -> None:
    """By one point; a difference of just that leaves it open."""

    def effect(method: Method, m: float, luck: Numbers) -> Numbers:
        return size * (method.decay > 0) + 0.0 * luck

    finding = DECAY.judge(world(effect, DECAYS, noise=0.003), 0.05)

    assert finding.judgement is judgement
    assert finding.quantity == "error of λ = 0.01 − λ = 0.0, percentage points"


def test_effects_that_cancel_over_tasks_are_no_minimal_effect() -> None:
    """Half of the tasks gain five points by decay, the others lose as much."""

    def effect(method: Method, m: float, luck: Numbers) -> Numbers:
        return np.resize([0.05, -0.05], len(luck)) * (method.decay > 0)

    finding = DECAY.judge(world(effect, DECAYS, noise=0.003), 0.05)

    assert abs(finding.estimate) < 1
    assert finding.judgement is CONTRADICTED


@pytest.mark.parametrize("rule", [DEPTH, DECAY])
def test_where_nothing_matters_verdicts_are_rarely_wrong(rule: Any) -> None:
    """Over 40 worlds at a level of 5 %: no more than 7 (of chance 0.2 %) say that it matters."""
    wrong = 0
    for seed in range(40):
        table = world(nothing_matters, [*DEPTHS, *DECAYS[1:]], tasks=6, trials=5, seed=seed)
        judgement = rule.judge(table, 0.05).judgement
        wrong += judgement is CONTRADICTED or (rule is DEPTH and judgement is SUPPORTED)
    assert wrong <= 7


def test_the_sweep_has_what_its_claims_compare() -> None:
    """At every scale: depth 1 beside 2 and 3, both sparsities at each, and both decays at one.

    The paper's whole grid has both decays at each, and forests beside its networks.
    """
    assert [claim.name for claim in CHOICES.claims] == ["depth", "s=4", "decay"]
    for scale, sweep in CHOICES.scales.items():
        CHOICES.check(sweep)
        found = {
            (
                1 + len(spec.model.deeper),
                str(spec.init),
                spec.training.weight_decay,
                str(spec.training.optimiser),
            )
            for spec, _ in sweep.cells()
            if isinstance(spec.model, MLP)
        }
        assert {depth for depth, *_ in found} == {1, 2, 3}
        assert len(found) == (18 if scale == "paper" else 7)
        assert sum(decay > 0 for _, _, decay, _ in found) == (9 if scale == "paper" else 1)
