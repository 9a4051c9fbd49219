"""Whole runs of `native` and `torch`: the same specs, compared as statistics."""

from __future__ import annotations

import math

import pytest

from petridish.models import MLP
from petridish.tasks import SparseParity
from petridish.training import Data, Outcome, RunRecord, RunSpec, Silent, Training, load_engine

LEVEL = 0.001  # of each of the two tests below: a right engine fails one in 500 sets of specs


def two_sided(one: int, other: int) -> float:
    """Return the probability that fair coins fall at least as unevenly as this."""
    n, k = one + other, max(one, other)
    tail = sum(math.comb(n, i) for i in range(k, n + 1))
    return min(1.0, float(2 * tail / 2**n))


def near_the_frontier() -> list[RunSpec]:
    """Return 200 runs in cells where some succeed and some do not."""
    cells = [(10, 600), (10, 800), (30, 500), (30, 600), (100, 400)]
    return [
        RunSpec(
            task=SparseParity(30, 3),
            data=Data(m=m, n_test=2000),
            model=MLP(width),
            training=Training(steps=4000),
            seed=seed,
        )
        for width, m in cells
        for seed in range(40)
    ]


@pytest.mark.slow
def test_whole_runs_agree_as_far_as_rounding_lets_them() -> None:
    """On 200 specs near the frontier, neither engine succeeds more often, or sooner.

    Both engines see the same data, weights and minibatches, and differ by roundings; these grow
    until one ReLU flips, after which the two trajectories are two draws from one distribution. So
    where they disagree (one solved and the other not; or both solved at different looks), either
    engine is equally likely to be the better: a sign test at level 0.001 each. Counts as below
    would show a difference in success of 10 points among the specs with probability over 0.9.
    Roundings alone leave most runs alike: at least half agree to the look.
    """
    specs = near_the_frontier()
    found: dict[str, dict[RunSpec, RunRecord]] = {"native": {}, "torch": {}}
    for name, records in found.items():
        engine = load_engine(name)
        stacks: dict[object, list[RunSpec]] = {}
        for spec in specs:
            stacks.setdefault(engine.shape(spec), []).append(spec)
        for stack in stacks.values():
            records.update({record.spec: record for record in engine.run(stack, Silent())})
    pairs = [(found["native"][spec], found["torch"][spec]) for spec in specs]
    solved = [tuple(r.outcome is Outcome.SOLVED for r in pair) for pair in pairs]
    both = [(a.steps, b.steps) for (a, b), s in zip(pairs, solved, strict=True) if all(s)]
    share = sum(a for a, _ in solved) / len(specs)

    assert 0.2 < share < 0.9, "the specs are near the frontier"
    only_native, only_torch = solved.count((True, False)), solved.count((False, True))
    sooner, later = sum(a < b for a, b in both), sum(a > b for a, b in both)
    assert two_sided(only_native, only_torch) > LEVEL
    assert two_sided(sooner, later) > LEVEL
    assert sum(a == b for a, b in both) > len(both) / 2


def test_the_sign_test_by_hand() -> None:
    """Five heads of five: 2/32. An even split proves nothing."""
    assert two_sided(5, 0) == pytest.approx(2 / 32)
    assert two_sided(3, 3) == 1.0
