"""FL-7: what the lemmas say of the two steps, measured; and when a second step is needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from petridish.chapters.inputs.lemma_figures import gradients_of_neurons
from petridish.chapters.inputs.methods import Sizes
from petridish.chapters.inputs.rules import Floats, ReadingAt, against, each
from petridish.chapters.inputs.trainings import (
    after,
    both_steps,
    correlation_of,
    forgetting,
    noise_of,
    rates_of,
    smoothed,
    two_steps,
)
from petridish.experiment import Experiment
from petridish.models import MLP
from petridish.rules import Claim, LastOf, Measure
from petridish.rules.specs import specs_of
from petridish.sweeps import Arms
from petridish.tasks import Dictionary
from petridish.theory.inputs.steps import open_probability
from petridish.training import (
    Evaluation,
    LinearProbe,
    OpenMargins,
    PatternGradient,
    RelativeMovement,
    RunSpec,
)

if TYPE_CHECKING:
    import polars as pl

GRADIENTS = "array.pattern_gradient"
CLOSED = 1e-9  # below this size of T_A, over γ/σ, a neuron counts as closed
Stat = Literal["mean", "deviation", "background", "in front"]


@dataclass(frozen=True)
class PatternStat(Measure):
    """A number of the T_j of a run's open neurons in one of its two steps, from `PatternGradient`.

    "mean": the median over neurons of T_A σ/γ, which the lemmas call β. "deviation": the median of
    the largest |T_j σ/γ − β| over j in A, β = Pr[b + ξ ∈ (0, 1)] (Lemma 20). "background": the
    median of the largest |T_j| outside A over the mean T_A. "in front": the share of neurons whose
    every relevant T_j is above every |T_j| outside A. `less` is a step whose number is taken away.
    """

    step: int
    stat: Stat
    less: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return GRADIENTS, "cell"

    @property
    def label(self) -> str:
        """What is measured, in words."""
        less = "" if self.less is None else f" minus that in step {self.less + 1}"
        return f"{self.stat} of T in step {self.step + 1}{less}"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run; NaN for one that kept none."""
        found = self._at(table, self.step)
        return found if self.less is None else found - self._at(table, self.less)

    def _at(self, table: pl.DataFrame, step: int) -> Floats:
        specs = specs_of(table)
        found = []
        for kept, cell in table.select(*self.columns).iter_rows():
            rows = gradient_rows(kept)
            there = rows is not None and len(rows) > step
            found.append(self._one(rows[step], specs[cell]) if there else np.nan)  # type: ignore[index]
        return np.array(found, np.float64)

    def _one(self, rows: Floats, spec: RunSpec) -> float:
        task, model = spec.task, spec.model
        assert isinstance(task, Dictionary), "what the instrument reads"
        assert isinstance(model, MLP), "what the instrument reads"
        unit = correlation_of(task) / np.sqrt(task.variance)
        low, mean, high, outside = rows[:, :4].T / unit
        there = np.abs(mean) > CLOSED
        low, mean, high, outside, bias = (v[there] for v in (low, mean, high, outside, rows[:, 4]))
        if not len(mean):
            return float("nan")
        if self.stat == "mean":
            return float(np.median(mean))
        if self.stat == "background":
            return float(np.median(outside / np.abs(mean)))
        if self.stat == "in front":
            return float(np.mean(low > outside))
        noise = noise_of(model)
        beta = np.array([open_probability(float(b), noise) for b in bias])
        return float(np.median(np.maximum(np.abs(low - beta), np.abs(high - beta))))


def gradient_rows(kept: Any) -> Floats | None:
    """Return the readings of `PatternGradient`, shape (reading, neuron, 5), if a run kept them."""
    if kept is None or kept["values"] is None:
        return None
    return np.reshape(np.array(kept["values"], np.float64), kept["shape"])


def lemmas(sizes: Sizes, *, few: int, density: float) -> Arms:
    """Declare the two steps with and without noise, what follows them, and other backgrounds."""
    task, k = sizes.parity(), sizes.k
    none = sizes.start(task)
    runs: dict[str, RunSpec] = {}
    for name, noise in {"no noise": 0.0, "noise k^-3/2": k**-1.5, "noise k^-2": k**-2.0}.items():
        begun = smoothed(none, noise) if noise else none
        rates = rates_of(task, sizes.width)
        runs[name] = both_steps(begun, *rates, PatternGradient(), OpenMargins())

    one, two = two_steps(none)
    literal = after(none, forgetting(after(none, one), 1.0))
    runs["later"] = moving(sizes.network(after(none, two)))
    runs["later, literal rates"] = moving(sizes.network(literal, sizes.literal_rate))

    for name, background, of in (
        ("sparse background", density, sizes),
        ("few examples", 0.5, replace(sizes, m=few)),
    ):
        other = of.parity(share=0.5, background=background)
        begun, (first, second) = of.start(other), rates_of(other, of.width)
        probe = LinearProbe(at=(1,))
        probed = Evaluation(every=1, curves=True, fitted_error=None, instruments=(probe,))
        runs[f"one step, {name}"] = replace(forgetting(begun, second), evaluation=probed)
        runs[f"two steps, {name}"] = both_steps(begun, first, second, LinearProbe(at=(2,)))
    return sizes.arms(runs)


def moving(run: RunSpec) -> RunSpec:
    """Watch how far the first layer moves."""
    return replace(run, evaluation=replace(run.evaluation, instruments=(RelativeMovement(),)))


def one_against_two(background: str, **decision: Any) -> Any:
    """Compare the best linear classifiers on features of one step and of two."""
    names = f"one step, {background}", f"two steps, {background}"
    return against(*names, LastOf("linear_probe"), **decision)


SMOOTHED = ("noise k^-3/2", "noise k^-2")
LEMMAS = Experiment(
    id="FL-7",
    title="The two steps neuron by neuron, beside what the lemmas say",
    source="FL §5, App. B, Lemmas 6, 15, 19, 20, 24",
    scales={
        "smoke": lemmas(
            Sizes(
                d=40,
                patterns=20,
                k=3,
                m=1_000,
                width=40,
                steps=60,
                batch_size=50,
                n_test=300,
                seeds=3,
            ),
            few=300,
            density=0.1,
        ),
        "laptop": lemmas(
            Sizes(m=10_000, width=200, steps=300, batch_size=500, n_test=3_000),
            few=2_000,
            density=0.05,
        ),
        "paper": lemmas(Sizes(), few=10_000, density=0.05),
    },
    claims=(
        Claim(
            "15",
            "In the first step the median neuron has T_A = βγ/σ with β between 0.2 and 1.",
            "FL Lemmas 6, 15",
            each(PatternStat(0, "mean"), "no noise", *SMOOTHED, between=(0.2, 1.0)),
            "β ∈ [Ω(1), 1] depends only on the neuron's start; 0.2 is ours.",
            kind="paper",
        ),
        Claim(
            "15b",
            "In the first step every relevant T_j is above every |T_j| of the background, for more "
            "than 90 % of neurons.",
            "FL Lemmas 6, 15",
            each(PatternStat(0, "in front"), "no noise", *SMOOTHED, above=0.9),
            "The gradient has a significant correlation with relevant patterns, and a small one "
            "with the others; 90 % is ours.",
            kind="paper",
        ),
        Claim(
            "19",
            "Before the second step more than 99 % of examples have y g < 1.",
            "FL Lemma 19",
            each(ReadingAt("open_margins", 1), "no noise", *SMOOTHED, above=0.99),
            "With probability 1 − exp(−Θ(k)); 99 % is ours.",
            kind="paper",
        ),
        Claim(
            "20",
            "In the second step the median neuron has all relevant T_j within 0.1 γ/σ of βγ/σ, β = "
            "Pr[b + ξ ∈ (0, 1)].",
            "FL Lemma 20",
            each(PatternStat(1, "deviation"), "no noise", *SMOOTHED, below=0.1),
            "|T_j − βγ/σ| is small, β depends only on the neuron's start; 0.1 is ours.",
            kind="paper",
        ),
        Claim(
            "e",
            "The second step lowers the ratio of the largest background T_j to T_A.",
            "FL §5.1, l. 340",
            each(PatternStat(1, "background", less=0), "no noise", *SMOOTHED, below=0.0),
            kind="paper",
        ),
        Claim(
            "24",
            "After the two steps the first layer hardly moves: the median neuron by less than a "
            "tenth of its length.",
            "FL Lemma 24",
            each(LastOf("relative_movement"), "later", below=0.1),
            "The first layer's weights do not change too much; a tenth is ours. The lemma's own "
            "rates are another arm.",
            kind="ours",
        ),
        Claim(
            "24b",
            "With Theorem 26's own rates it moves by less than a tenth of its length.",
            "FL Lemma 24, Theorem 26",
            each(LastOf("relative_movement"), "later, literal rates", below=0.1),
            "The first layer's weights do not change too much; a tenth is ours.",
            kind="paper",
        ),
        Claim(
            "d",
            "Where the background is sparse, the best linear classifier on features of one step, "
            "taken at the second's rate, errs at most 2 points more than that on features of two.",
            "FL §5.1, l. 321–327",
            one_against_two("sparse background", below=0.02),
            "For small p_o = O(k²/D) one step already suffices.",
            kind="paper",
        ),
        Claim(
            "d2",
            "Where it is dense (½) and examples are few, it errs at least 2 points more.",
            "FL §5.1, l. 321–327",
            one_against_two("few examples", above=0.02),
            "For larger p_o the second step is needed.",
            kind="paper",
        ),
    ),
    figures={"gradients": gradients_of_neurons},
)
