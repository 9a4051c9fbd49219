"""HP, findings in words that no figure shows: what can be exchanged, and what cannot (HP-14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from petridish.chapters.hidden.experiments.shared import followed, relu, setting
from petridish.chapters.hidden.figures.activation_curves import activation_shapes, finding_rows
from petridish.chapters.hidden.rules.architectures import architecture
from petridish.chapters.hidden.rules.descent import PlateauFraction
from petridish.experiment import Experiment
from petridish.models import MLP, ByName, Constant, Uniform
from petridish.models.activations import InfiniteZigzag, Oscillating, Power, Sine, Zigzag
from petridish.rules import (
    AtEnd,
    Claim,
    Each,
    Median,
    RatioOfMedians,
    Rule,
    Share,
    Sides,
    Solved,
    SolvedAt,
    Trend,
)
from petridish.sweeps import Arms, Sweep, joined
from petridish.tasks import SparseParity
from petridish.training import Hinge, Logistic, Piece, Schedule, Square

RATE, WIDTH, BATCH = "training.learning_rate", "model.width", "training.batch_size"
UNBIASED_ODD, UNBIASED_EVEN, BIASED_ODD = "no biases, odd k", "no biases, even k", "biases, odd k"
POLYNOMIAL, RELU = "z^k, descent", "ReLU, descent"


def losses(
    n: int, k: int, numerals: Sequence[str], *, rates: Sequence[float], seeds: int, **how: Any
) -> Sweep:
    """Sweep the three losses, each at its own best rate [HP App. B.4.1]."""
    models = tuple(architecture(numeral, k) for numeral in numerals)
    base = setting(SparseParity(n, k), models[0], rate=rates[0], **how)
    axes = {"model": models, "training.loss": (Hinge(), Square(), Logistic()), RATE: rates}
    return Sweep(base, {**axes, "seed": range(seeds)})


def wider(
    n: int, k: int, widths: Sequence[int], *, rates: Sequence[float], seeds: int, **how: Any
) -> Sweep:
    """Sweep networks of the activations of which one neuron is a parity [HP §3.1]."""
    kinds = (Zigzag(k), Oscillating(k), InfiniteZigzag(k), Sine(k))
    models = tuple(
        MLP(width, activation=kind, output="linear") for kind in kinds for width in widths
    )
    base = setting(SparseParity(n, k), models[0], rate=rates[0], **how)
    return Sweep(base, {"model": models, RATE: rates, "seed": range(seeds)})


def biases(n: int, odd: int, even: Sequence[int], *, width: int, seeds: int, **how: Any) -> Any:
    """Return ReLU networks without hidden biases, by arm, and with them for odd k [HP B.3.2]."""
    free = setting(SparseParity(n, odd), relu(width), rate=0.1, **how)
    bare = replace(
        free,
        init=ByName((("@bias", Constant(0.0)), ("*", Uniform()))),
        training=replace(
            free.training, schedule=Schedule((Piece(0, (("@bias", 0.0), ("*", 1.0))),))
        ),
    )
    evens = tuple(SparseParity(n, k) for k in even)
    return {
        UNBIASED_ODD: Sweep(bare, {"seed": range(seeds)}),
        UNBIASED_EVEN: Sweep(bare, {"task": evens, "seed": range(seeds)}),
        BIASED_ODD: Sweep(free, {"seed": range(seeds)}),
    }


def descent(
    n: int,
    k: int,
    *,
    polynomial: Sequence[int],
    rectified: Sequence[int],
    batches: Sequence[int],
    seeds: int,
    **how: Any,
) -> dict[str, Sweep]:
    """Sweep widths and batch sizes of z^k and of ReLU networks, with curves [HP App. B.3.8].

    ReLU networks have an output bias: without one, half of those of ten neurons end right but on an
    octant where they are 0, and have no fall to measure.
    """
    models = (
        (POLYNOMIAL, tuple(MLP(r, activation=Power(k), output="linear") for r in polynomial), 0.01),
        (RELU, tuple(MLP(r) for r in rectified), 0.1),
    )
    found = {}
    for arm, each, rate in models:
        if not each:
            continue
        base = followed(SparseParity(n, k), each[0], rate=rate, **how)
        axes = {"model": each, BATCH: batches, "seed": range(seeds)}
        found[arm] = Sweep(base, axes)
    return found


def twenty_three() -> dict[str, Any]:
    """Return the arms on (20, 3) at laptop scale."""
    rates, short = (0.01, 0.1, 1.0), {"steps": 10_000, "n_test": 1_024}
    return {
        "losses": losses(20, 3, ("(ii)", "(iv)", "(x)", "(xv)"), rates=rates, seeds=40, **short),
        "wider": wider(20, 3, (10, 100), rates=rates, seeds=30, **short),
        **biases(20, 3, (2, 4), width=100, seeds=15, steps=20_000, n_test=1_024),
    }


def fifty_three(narrow: int, widest: int) -> dict[str, Sweep]:
    """Return the arms of descent on (50, 3), with their seeds: of the widest there may be fewer."""
    how: Any = {"batches": (32, 256), "steps": 20_000}
    wide = descent(50, 3, polynomial=(1_000,), rectified=(), seeds=widest, **how)
    found = descent(50, 3, polynomial=(10, 100), rectified=(10, 100), seeds=narrow, **how)
    return found | {POLYNOMIAL: joined([found[POLYNOMIAL], wide[POLYNOMIAL]])}


FINDINGS = Experiment(
    id="HP-14",
    title="Findings in words: losses, wider networks, biases and continuous descent",
    source="HP §3.1, App. B.3.2, B.3.8, B.4.1, Fig. B.14",
    scales={
        "smoke": Arms(
            {
                "losses": losses(8, 2, ("(i)",), rates=(0.1,), seeds=4, steps=1_000, n_test=512),
                "wider": wider(8, 2, (4,), rates=(0.1,), seeds=3, steps=1_000, n_test=512),
                **biases(8, 3, (2,), width=10, seeds=3, steps=500, n_test=512),
                **descent(
                    10,
                    2,
                    polynomial=(4, 20),
                    rectified=(4,),
                    batches=(16, 64),
                    seeds=4,
                    steps=1_000,
                    n_test=512,
                    every=20,
                ),
            }
        ),
        "laptop": Arms(twenty_three() | fifty_three(12, 12)),
        # Twelve seeds left (B) and (P) open; 48 and 66 were said to decide them.
        "more": Arms(twenty_three() | fifty_three(72, 12)),
        "large": Arms(
            {
                "losses": joined(
                    losses(
                        n,
                        k,
                        ("(i)", "(ii)", "(iv)", "(vii)", "(x)", "(xv)"),
                        rates=(0.001, 0.01, 0.1, 1.0),
                        seeds=50,
                        n_test=8192,
                    )
                    for n, k in ((20, 2), (20, 3), (30, 3))
                ),
                "wider": wider(
                    30, 3, (10, 100, 1_000), rates=(0.001, 0.01, 0.1, 1.0), seeds=25, n_test=8192
                ),
                **biases(30, 3, (2, 4), width=100, seeds=25, n_test=8192),
                **descent(
                    50,
                    3,
                    polynomial=(10, 100, 1_000),
                    rectified=(10, 100, 1_000),
                    batches=(1, 32, 256, 1_024),
                    seeds=25,
                ),
            }
        ),
    },
    claims=(
        *(
            Claim(
                name,
                f"At its best rate the {loss} loss takes as long as the hinge loss, up to a factor "
                "of two.",
                "HP App. B.4.1, losses",
                Rule(
                    SolvedAt(),
                    Sides(
                        loss,
                        "hinge",
                        along="training.loss",
                        within=("task", "model"),
                        best_over=(RATE,),
                        only={"arm": "losses"},
                    ),
                    RatioOfMedians(),
                    between=(0.5, 2.0),
                ),
                "The losses appeared to be interchangeable upon running small experiments.",
                kind="ours",
            )
            for name, loss in (("Q", "square"), ("X", "logistic"))
        ),
        Claim(
            "W",
            "Wider networks of zigzags, oscillating polynomials and sines converge in 20 % of the "
            "trials or more, for some rate.",
            "HP §3.1, 1-neuron networks",
            Rule(
                Solved(),
                Each(("task", "model"), best_over=(RATE,), only={"arm": "wider"}),
                Share(),
                above=0.2,
            ),
            "Wider architectures with these activations also train successfully.",
            kind="paper",
        ),
        Claim(
            "O",
            "Without hidden biases ReLU networks stay at chance on a parity of odd degree.",
            "HP App. B.3.2, biases",
            Rule(
                AtEnd("test_error", diverged=0.5),
                Each(("task",), only={"arm": UNBIASED_ODD}),
                Median(),
                above=0.4,
            ),
            "Certain variants fail for odd k: bias terms are necessary to break the symmetry.",
            kind="paper",
        ),
        Claim(
            "E",
            "They learn parities of even degree without biases, and of odd degree with them.",
            "HP App. B.3.2, biases",
            Rule(
                Solved(),
                Each(("arm", "task"), only={"arm": (UNBIASED_EVEN, BIASED_ODD)}),
                Share(),
                above=0.5,
            ),
            "It is the coefficients of even degree that are 0.",
            kind="ours",
        ),
        *(
            Claim(
                name,
                f"The larger the {word} of a network of z^k, the less of its time it spends at "
                "chance.",
                "HP App. B.3.8, Fig. B.13",
                Rule(
                    PlateauFraction(),
                    Trend(along, within=(within,), only={"arm": POLYNOMIAL}),
                    Median(),
                    below=0.0,
                ),
                "The rate of descent of the validation error increases with r and with B.",
                kind="paper",
            )
            for name, word, along, within in (
                ("V", "width", WIDTH, BATCH),
                ("B", "batch size", BATCH, WIDTH),
            )
        ),
        Claim(
            "P",
            "ReLU networks spend more than half of their time at chance, at every width and batch "
            "size.",
            "HP App. B.3.8",
            Rule(PlateauFraction(), Each((WIDTH, BATCH), only={"arm": RELU}), Median(), above=0.5),
            "This does not occur with ReLU activations, where there are sharp phase transitions "
            "between plateaus at all batch sizes.",
            kind="ours",
        ),
    ),
    figures={"activations": activation_shapes, "findings": finding_rows},
)
