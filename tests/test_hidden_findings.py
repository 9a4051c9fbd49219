"""HP-14: the findings in words, their measure, their rules both ways, and the activations drawn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.chapters import EXPERIMENTS
from petridish.chapters.hidden.figures.activation_curves import activation_shapes, finding_rows
from petridish.chapters.hidden.rules.descent import PlateauFraction
from petridish.figures.style import NothingToDraw
from petridish.rules import Claim
from petridish.rules.claims import Judgement
from petridish.training import RunSpec
from tests.rule_worlds import CONTRADICTED, SUPPORTED, UNDECIDED, run, table_of

FINDINGS = EXPERIMENTS["HP-14"]
CLAIMS: dict[str, Claim] = {claim.name: claim for claim in FINDINGS.claims}


def row(arm: str, *, time: int | None = 100, **columns: Any) -> dict[str, Any]:
    """Make a run of an arm."""
    values = {
        "arms": [arm],
        "model": "mlp(10)",
        "training.loss": "hinge",
        "training.learning_rate": 0.1,
        "training.batch_size": 32,
        "training.steps": 1_000,
        "test_error": 0.0 if time else 0.5,
    }
    return run(time, **(values | columns))


def judged(name: str, rows: list[dict[str, Any]]) -> Judgement:
    """Judge made-up runs by a claim of HP-14."""
    return CLAIMS[name].rule.judge(table_of(rows), 0.05).judgement


def falling(share: float) -> dict[str, Any]:
    """Make the curve of a run that leaves chance at a share of its 100 steps."""
    steps = list(range(0, 101))
    errors = [0.5 if step < 100 * share else 0.2 if step < 100 else 0.0 for step in steps]
    return {"curve.step": steps, "curve.test_error": errors}


def test_the_plateau_s_share_of_every_run() -> None:
    """0.7 of the time at chance; none for a run that never falls, or that kept no curve."""
    never = {"curve.step": [0, 10], "curve.test_error": [0.5, 0.5]}
    none = {"curve.step": None, "curve.test_error": None}
    rows = [row("z^k, descent", **curve) for curve in (falling(0.7), never, none)]
    found = PlateauFraction().of(table_of(rows))

    assert found[0] == pytest.approx(0.7, abs=0.01)
    assert all(math.isnan(value) for value in found[1:])


@pytest.mark.parametrize(
    ("name", "loss", "times", "verdict"),
    [
        ("Q", "square", 1.1, SUPPORTED),
        ("Q", "square", 3.0, CONTRADICTED),
        ("Q", "square", 2.0, UNDECIDED),
        ("X", "logistic", 0.9, SUPPORTED),
        ("X", "logistic", 0.3, CONTRADICTED),
    ],
)
def test_losses_are_compared_at_their_best_rates(
    name: str, loss: str, times: float, verdict: Judgement
) -> None:
    """The other loss takes `times` as long at its best rate, which is not that of the hinge."""
    rng = np.random.default_rng(0)
    rows = [
        row(
            "losses",
            seed=seed,
            time=round(200 * factor * slow * math.exp(0.2 * rng.standard_normal())),
            **{"training.loss": kind, "training.learning_rate": rate},
        )
        for kind, factor, best in (("hinge", 1.0, 0.1), (loss, times, 1.0))
        for rate, slow in ((best, 1.0), (1.1 - best, 4.0))
        for seed in range(40)
    ]

    assert judged(name, rows) is verdict


@pytest.mark.parametrize(
    ("solved", "verdict"), [(20, SUPPORTED), (0, CONTRADICTED), (5, UNDECIDED)]
)
def test_wider_networks(solved: int, verdict: Judgement) -> None:
    """Of 30 runs of one activation; another always converges."""
    rows = [
        row("wider", seed=seed, model=model, time=100 if seed < count else None)
        for model, count in (("mlp(10, (), sine(3))", 30), ("mlp(10, (), zigzag(3))", solved))
        for seed in range(30)
    ]

    assert judged("W", rows) is verdict


@pytest.mark.parametrize(("error", "verdict"), [(0.5, SUPPORTED), (0.1, CONTRADICTED)])
def test_odd_parities_without_biases(error: float, verdict: Judgement) -> None:
    """At chance, or learned."""
    rows = [row("no biases, odd k", seed=s, time=None, test_error=error) for s in range(15)]

    assert judged("O", rows) is verdict


@pytest.mark.parametrize(("solved", "verdict"), [(15, SUPPORTED), (0, CONTRADICTED)])
def test_even_parities_without_biases(solved: int, verdict: Judgement) -> None:
    """The control, odd and with biases, is always solved."""
    rows = [
        row(arm, seed=s, time=100 if s < count else None)
        for arm, count in (("no biases, even k", solved), ("biases, odd k", 15))
        for s in range(15)
    ]

    assert judged("E", rows) is verdict


@pytest.mark.parametrize(("slope", "verdict"), [(-0.1, SUPPORTED), (0.1, CONTRADICTED)])
def test_descent_along_widths_and_batches(slope: float, verdict: Judgement) -> None:
    """The share at chance falls, or rises, with both."""
    rows = [
        row(
            "z^k, descent",
            seed=seed,
            **falling(0.5 + slope * (r + b)),
            **{"model.width": 10**r, "training.batch_size": 32 * 8**b},
        )
        for r in (1, 2, 3)
        for b in (0, 1)
        for seed in range(12)
    ]

    assert judged("V", rows) is judged("B", rows) is verdict


@pytest.mark.parametrize(("share", "verdict"), [(0.8, SUPPORTED), (0.2, CONTRADICTED)])
def test_plateaus_of_relu_networks(share: float, verdict: Judgement) -> None:
    """Most of the time at chance, or little of it."""
    rows = [row("ReLU, descent", seed=seed, **falling(share)) for seed in range(12)]

    assert judged("P", rows) is verdict


def test_networks_without_biases_have_none_and_learn_none() -> None:
    """Biases are 0 at the start, and their rate is 0 throughout."""
    bare = [
        spec
        for spec, _ in FINDINGS.sweep("laptop").cells()
        if isinstance(spec, RunSpec) and spec.init.name == "by_name"
    ]

    assert {spec.task.k for spec in bare} == {2, 3, 4}  # type: ignore[attr-defined] # parities
    for spec in bare:
        drawn = dict(zip(spec.parameters, spec.init.draw(spec.parameters, [0]), strict=True))
        (rates,) = spec.rates()
        for (parameter, values), rate in zip(drawn.items(), rates.rate, strict=True):
            assert (rate == 0) == (not values.any()) == (parameter.kind == "bias")


def test_activations_are_drawn() -> None:
    """Six panels; the points of a parity lie on the four that have them."""
    figure = activation_shapes(pl.DataFrame(), "Title")
    titles = [axes.get_title(loc="left") for axes in figure.axes]

    assert titles == [
        *("ReLU", "z^k", "k-zigzag", "oscillating polynomial", "∞-zigzag", "sinusoid"),
    ]
    for axes in figure.axes[2:]:
        dots = [line for line in axes.lines if line.get_marker() == "o"]
        for k, line in zip((2, 3, 4), dots, strict=True):
            heights = (-1.0) ** ((k - np.arange(-k, k + 1, 2)) / 2)
            assert np.allclose(np.array(line.get_ydata()), heights, atol=1e-9)


def test_every_cell_of_the_findings_is_drawn() -> None:
    """A panel per arm with a row per setting; nothing to draw without runs."""
    rows = [
        row(arm, seed=s, time=100 if s < 2 else None)
        for arm in ("wider", "biases, odd k")
        for s in range(4)
    ]
    figure = finding_rows(table_of(rows), "Title")

    drawn = {
        axes.get_title(loc="left"): [label.get_text() for label in axes.get_yticklabels()]
        for axes in figure.axes
    }
    assert drawn == {arm: ["(50, 3), ReLU, r = 10, hinge, B = 32"] for arm in drawn}
    assert [*drawn] == ["biases, odd k", "wider"]
    for axes in figure.axes:
        points = [np.asarray(line.get_xdata()) for line in axes.lines if line.get_marker() == "o"]
        assert [list(each) for each in points if each.size] == [[0.5]]
    with pytest.raises(NothingToDraw, match="There are no runs to draw"):
        finding_rows(table_of(rows).head(0), "Title")
