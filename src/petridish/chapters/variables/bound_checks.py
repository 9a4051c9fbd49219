"""TH Chapter 4: capacity bounds, and heads that hold sparse functions (VC-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from petridish.chapters.variables.checks import Check
from petridish.experiment import Experiment
from petridish.figures.panels import framed
from petridish.figures.style import BLUE, GREY, ORANGE
from petridish.models import BareHead
from petridish.rules import Claim, Each, Rule, Solved
from petridish.rules.columns import reads
from petridish.statistics.estimators import Share
from petridish.sweeps import Sweep
from petridish.tasks import BiasedAnd
from petridish.theory.variables.bounds import implied_sample
from petridish.theory.variables.constructions import influence
from petridish.theory.variables.generalisation import least_sample
from petridish.training import AdamW, Below, Data, Error, Evaluation, Logistic, RunSpec, Training

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

IMPLIED = (30, 100, 300)


def bare(lengths: tuple[int, ...], m: int, *, seeds: int, steps: int, n_test: int) -> Sweep:
    """Sweep Definition 4.4 alone, with trained positions and a scalar output, on ANDs."""
    run = RunSpec(
        task=BiasedAnd(lengths[0]),
        data=Data(m=m, n_test=n_test),
        model=BareHead(32, 8),
        training=Training(
            loss=Logistic(),
            optimiser=AdamW(),
            learning_rate=0.01,
            weight_decay=0.0,
            batch_size=None,
            steps=steps,
            stop=Below(Error(), 0.01, strict=True),
        ),
        evaluation=Evaluation(every=10, fitted_error=None),
    )
    return Sweep(run, {"task.n": lengths, "seed": range(seeds)})


@reads()
def influence_of_a_token(table: pl.DataFrame, title: str) -> Figure:
    """Draw how far one relevant bit moves a head, at constant norms and at norms of log T."""
    import numpy as np

    lengths = np.unique(np.geomspace(4, 1e5, 60).astype(int))
    note = (
        "Three relevant positions with scores R, all others 0: 2/(s + (T − s) exp(−R)). "
        "No runs take part."
    )
    with framed(title, note, (6, 3.8)) as (figure, ((panel,),)):
        for rate, colour in ((1.0, GREY), (3.0, ORANGE)):
            heights = [influence(int(n), 3, rate) for n in lengths]
            panel.plot(lengths, heights, color=colour, label=f"constant norms, R = {rate:g}")
        heights = [influence(int(n), 3, float(np.log(n))) for n in lengths]
        panel.plot(lengths, heights, color=BLUE, label="R = log T")
        panel.plot(lengths, 60 / lengths, color=GREY, lw=0.7, ls=":", label="∝ 1/T")
        panel.set(xscale="log", yscale="log", xlabel="tokens T", ylabel="change of the output")
        panel.legend(frameon=False)
    return figure


@reads()
def implied_samples(table: pl.DataFrame) -> pl.DataFrame:
    """Return the sample that Cor. 4.9 asks for, with explicit constants, beside the least one."""
    import polars as pl

    sizes = [implied_sample(length) for length in IMPLIED]
    return pl.DataFrame(
        {
            "T": IMPLIED,
            "log2 C(T, 3)": [round(least_sample(length, 3), 1) for length in IMPLIED],
            "m of Cor. 4.9": [f"{m:.2g}" for m in sizes],
        }
    )


BOUNDS = Experiment(
    id="VC-4",
    title="Capacity bounds with their constants, and heads that hold sparse functions",
    source="TH §4.4, §4.5, App. A.1, A.2",
    scales={
        "smoke": bare((8,), 100, seeds=4, steps=400, n_test=500),
        "laptop": bare((20, 50, 100), 300, seeds=12, steps=1_500, n_test=5_000),
    },
    claims=(
        Claim(
            "F",
            "The repaired heads and read-outs are exact for every symmetric function and every "
            "table of three bits.",
            "TH Prop. 4.12 = A.18, Lemmas A.19 to A.23, A.25",
            Check("exact functions"),
            "For fixed, trained and no positions, with one head, s heads or a bag of vectors.",
            kind="check",
        ),
        Claim(
            "A",
            "The repaired heads are within γ/4 on the worst string of up to 1000 bits.",
            "TH Lemmas A.19, A.21, A.24",
            Check("approximations"),
            kind="check",
        ),
        Claim(
            "N",
            "Their norms are at most those of the statements.",
            "TH Lemmas A.19, A.21",
            Check("norms"),
            kind="check",
        ),
        Claim(
            "P",
            "Six places of the appendix fail as printed.",
            "TH Lemmas A.19, A.22, A.25",
            Check("printed failures"),
            kind="check",
        ),
        Claim(
            "L",
            "Random networks move no further than the Lipschitz lemmas allow.",
            "TH Lemmas 4.7, A.7, A.9, A.13 to A.16",
            Check("lipschitz"),
            kind="check",
        ),
        Claim(
            "V",
            "With explicit constants the sample that the capacity bound asks for is larger than "
            "the one that was measured.",
            "TH Cor. 4.9, Lemmas 4.2, A.10",
            Check("vacuous"),
            "The bounds' constants are not printed.",
            kind="check",
        ),
        Claim(
            "I",
            "At constant norms a token's influence falls like 1/T, and norms of log T undo it.",
            "TH §4.5",
            Check("influence"),
            kind="check",
        ),
        Claim(
            "M",
            "s heads and M^s points hold every function of s symbols out of M.",
            "TH A.2.4",
            Check("symbols"),
            kind="check",
        ),
        Claim(
            "S",
            "Heads in three dimensions sort log₂ T sequences in all ways.",
            "TH Prop. 4.8",
            Check("shattering"),
            kind="check",
        ),
        Claim(
            "H",
            "A bare head with trained positions and a scalar output finds three relevant bits, in "
            "more than half of the seeds.",
            "TH Def. 4.4, Lemma A.20",
            Rule(Solved(), Each(("task.n",)), Share(), above=0.5),
            "The text shows that such weights exist, and trains a whole block.",
            kind="ours",
        ),
    ),
    figures={"influence": influence_of_a_token},
    tables={"implied": implied_samples},
)
