"""TH Chapter 4: a transformer learns sparse parities online (VC-3)."""

from __future__ import annotations

from dataclasses import replace

from petridish.chapters.variables.measures import LeastBelow
from petridish.chapters.variables.trial_settings import setting
from petridish.experiment import Experiment
from petridish.figures.curves import training_curves
from petridish.models import ClsTransformer
from petridish.rules import Claim, Each, Over, Rule, SolvedAt, TimeTo
from petridish.statistics.estimators import Median, Share
from petridish.sweeps import Arms, Sweep
from petridish.tasks import BiasedBits
from petridish.training import ONLINE, CrossEntropy, Data, MeanLoss

MAIN = ("dropout 0.1", "no dropout")


def online(
    lengths: tuple[int, ...],
    *,
    s: int,
    seeds: int,
    steps: int,
    every: int,
    batch_size: int,
    model: ClsTransformer,
    rate: float = 1e-3,
    n_test: int = 2_000,
) -> Sweep:
    """Sweep parities of s of T uniform bits, fresh ones at every step [TH A.3.2].

    The sentence with the settings is cut off in the paper: they are those of A.3.1, at p = ½ and
    a batch of 2048.
    """
    run = setting(
        BiasedBits(lengths[0], s, of="parity"),
        1,
        model=model,
        steps=steps,
        rate=rate,
        every=every,
        curves=True,
        metrics=(MeanLoss(CrossEntropy()),),
    )
    run = replace(
        run,
        data=Data(m=ONLINE, n_test=n_test),
        training=replace(run.training, batch_size=batch_size),
    )
    return Sweep(run, {"task.n": lengths, "seed": range(seeds)})


def parities(
    lengths: tuple[int, ...],
    *,
    s: int,
    seeds: int,
    steps: int,
    every: int,
    batch_size: int,
    model: ClsTransformer,
    harder: tuple[tuple[int, ...], int, int, tuple[tuple[str, ClsTransformer, float], ...]],
    rate: float = 1e-3,
) -> Arms:
    """Declare Fig. 4.4 with and without dropout, and longer inputs by several sizes and rates."""
    how = {"s": s, "every": every, "batch_size": batch_size}
    longer, few, more_steps, variants = harder
    return Arms(
        {
            name: online(
                lengths,
                seeds=seeds,
                steps=steps,
                model=replace(model, dropout=dropout),
                rate=rate,
                **how,
            )
            for name, dropout in zip(MAIN, (0.1, 0.0), strict=True)
        }
        | {
            name: online(longer, seeds=few, steps=more_steps, model=other, rate=own, **how)
            for name, other, own in variants
        }
    )


WIDE = (
    ("longer", ClsTransformer(64, 16, 0.0), 1e-3),
    ("longer, slower", ClsTransformer(64, 16, 0.0), 3e-4),
    ("longer, wider", ClsTransformer(128, 32, 0.0), 1e-3),
)
PARITIES = Experiment(
    id="VC-3",
    title="A transformer learns parities of three bits online",
    source="TH §4.6, A.3.2, Fig. 4.4",
    scales={
        "smoke": parities(
            (5, 6),
            s=2,
            seeds=4,
            steps=300,
            every=10,
            batch_size=128,
            model=ClsTransformer(16, 4),
            rate=3e-3,
            harder=(
                (8,),
                2,
                100,
                tuple((name, ClsTransformer(16, 4, 0.0), 3e-3) for name, *_ in WIDE),
            ),
        ),
        "laptop": parities(
            (10, 15),
            s=3,
            seeds=10,
            steps=3_000,
            every=50,
            batch_size=2_048,
            model=ClsTransformer(),
            harder=((20, 50), 6, 5_000, WIDE),
        ),
        "paper": parities(
            (10, 15),
            s=3,
            seeds=10,
            steps=20_000,
            every=100,
            batch_size=2_048,
            model=ClsTransformer(),
            harder=((20, 50), 10, 50_000, WIDE),
        ),
    },
    claims=(
        Claim(
            "S",
            "The accuracy rises above 99 % in more than half of runs, with dropout and without.",
            "TH Fig. 4.4",
            Rule(
                LeastBelow("test_error", 0.01),
                Each(("arm", "task.n"), only={"arm": MAIN}),
                Share(),
                above=0.5,
            ),
            "Loss curves of 10 seeds exhibit phase transitions from random guessing to 100 % "
            "accuracy. Judged without dropout; half is what ten seeds can show.",
            kind="paper",
        ),
        Claim(
            "P",
            "More than half of the time until then the error is above 0.4: a phase transition.",
            "TH Fig. 4.4",
            Rule(
                Over(TimeTo("test_error", below=0.4), SolvedAt()),
                Each(("arm", "task.n"), only={"arm": MAIN}),
                Median(),
                above=0.5,
            ),
            "Phase transitions from random guessing. How much of the time is ours.",
            kind="ours",
        ),
        Claim(
            "20",
            "At T = 20 a network of some size and rate leaves chance: an error below 0.4.",
            "HP App. B.4.1, architecture (*iii)",
            Rule(
                LeastBelow("test_error", 0.4),
                Each(("arm",), only={"arm": tuple(name for name, *_ in WIDE), "task.n": (20,)}),
                Share(),
                above=0.3,
                holds_in="some",
            ),
            "HP's transformer did not leave chance there when it was small.",
            kind="ours",
        ),
        Claim(
            "50",
            "At T = 50 a network of some size and rate leaves chance: an error below 0.4.",
            "HP App. B.4.1, architecture (*iii)",
            Rule(
                LeastBelow("test_error", 0.4),
                Each(("arm",), only={"arm": tuple(name for name, *_ in WIDE), "task.n": (50,)}),
                Share(),
                above=0.3,
                holds_in="some",
            ),
            kind="ours",
        ),
    ),
    figures={"curves": training_curves},
)
