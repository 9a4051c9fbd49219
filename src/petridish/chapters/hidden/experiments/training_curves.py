"""HP, single runs over time: plateaus (HP-2), progress measures (HP-6), noisy labels (HP-10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from petridish.chapters.hidden.experiments.shared import followed, relu
from petridish.chapters.hidden.figures.hidden_progress import (
    MOVES,
    configuration_curves,
    noise_curves,
    prediction_scatter,
    progress_curves,
)
from petridish.chapters.hidden.figures.weights import weight_trajectories
from petridish.chapters.hidden.rules.architectures import architecture
from petridish.chapters.hidden.rules.noisy import ConvergesUnderNoise
from petridish.chapters.hidden.rules.output_bias import (
    BIASED,
    PLAIN,
    InArm,
    both_forms,
    drawn_by_arm,
    with_output_bias,
)
from petridish.chapters.hidden.rules.plateaus import HasPlateau, NoPlateau
from petridish.chapters.hidden.rules.prediction import ProgressPredicts
from petridish.chapters.hidden.rules.separation import ProgressSeparates
from petridish.chapters.hidden.rules.while_flat import LeadsBeforeItShows, TellsWhileFlat
from petridish.experiment import Experiment
from petridish.models import ParityTransformer, XavierUniform
from petridish.rules.claims import Claim
from petridish.sweeps import Arms, Sweep, joined
from petridish.tasks import SparseParity
from petridish.training import Adam, RunSpec

WIDE = (architecture("(iii)", 3), architecture("(vi)", 3))
# Where the caption of Fig. B.2 has failures: extreme batches, and the narrowest networks.
UNSTABLE = (("(xv)", 1), ("(xv)", 1024), ("(*i)", 32), ("(*ii)", 32))
SHOWN = "shown"  # by HP-2
WEIGHTS = "weights"  # of HP-6: runs that keep all weights of the first layer


def panel(numeral: str, batch: int, rate: float, n: int = 50, k: int = 3, **how: Any) -> RunSpec:
    """Return a run of one panel of HP's curves; batches of up to 4 are evaluated less often."""
    every = 10 if batch > 4 else 100
    model = architecture(numeral, k)
    return followed(SparseParity(n, k), model, rate=rate, batch=batch, every=every, **how)


FIGURE_5_1 = (
    panel("(i)", 32, 0.5),
    panel("(i)", 1024, 0.05),
    panel("(ii)", 1, 0.05),
    panel("(iv)", 32, 0.05),
    panel("(vii)", 32, 0.2),
    panel("(x)", 32, 0.05),
    panel("(xv)", 32, 0.07),
)


def third_row(batch: int) -> tuple[RunSpec, ...]:
    """Return Fig. B.2's third row, the narrowest networks.

    The paper prints B = 1, at which none converges; its caption, that they do with reasonable
    probability, holds at 32, the batch size of its other panels. B = 1 is shown and not judged.
    """
    rates = dict.fromkeys(("(*i)", "(vii)", "(viii)", "(xi)", "(xii)"), 0.1) | {"(*ii)": 0.01}
    return tuple(panel(numeral, batch, rate) for numeral, rate in rates.items())


FIGURE_B_2 = (
    *(panel("(ii)", 32, 0.1, n, k) for n, k in ((30, 3), (60, 3), (90, 3), (30, 4))),
    *(
        panel("(xv)", batch, rate)
        for batch, rate in ((1, 0.005), (4, 0.01), (16, 0.1), (64, 0.1), (256, 0.1), (1024, 0.1))
    ),
    *third_row(32),
    panel("(iii)", 1, 0.1),
    panel("(iii)", 1024, 0.1),
    panel("(vi)", 1, 0.001),
    panel("(vi)", 1024, 0.01),
)
FIGURE_B_13 = tuple(
    panel(numeral, batch, 0.01) for numeral in ("(iv)", "(v)", "(vi)") for batch in (32, 256)
)
HARDER = (panel("(ii)", 32, 0.1, 30, 5), panel("(ii)", 32, 0.1, 30, 6))


def transformer(n: int, k: int, *, d_emb: int, heads: int, **how: Any) -> RunSpec:
    """Return a run of the Parity Transformer, by Adam [HP App. B.4.1]."""
    model = ParityTransformer(d_emb=d_emb, d_attn=8, heads=heads)
    spec = followed(SparseParity(n, k), model, every=20, init=XavierUniform(), **how)
    return replace(spec, training=replace(spec.training, optimiser=Adam()))


def curves(panels: Iterable[RunSpec], seeds: int, few: int) -> Sweep:
    """Sweep the seeds of every panel, `few` of what is slow [HP Figs 5.1, B.2, B.13]."""

    def slow(spec: RunSpec) -> bool:
        return spec.model in WIDE or isinstance(spec.model, ParityTransformer)

    return joined(
        Sweep(spec, {"seed": range(few if slow(spec) else seeds)}) for spec in dict.fromkeys(panels)
    )


def forms(panels: Iterable[RunSpec], shown: Iterable[RunSpec], seeds: int, few: int) -> Arms:
    """Sweep both forms of the panels that are judged, and what is only shown."""
    return both_forms(curves(panels, seeds, few), more={SHOWN: curves(shown, seeds, few)})


CURVES_SCALES = {
    "smoke": forms(
        (
            panel("(i)", 32, 0.5, 10, 2, steps=2_000, n_test=512),
            panel("(xv)", 32, 0.1, 10, 2, steps=2_000, n_test=512),
        ),
        (panel("(vii)", 1, 0.1, 10, 2, steps=500, n_test=512),),
        seeds=3,
        few=3,
    ),
    "laptop": forms(
        (*FIGURE_5_1, *FIGURE_B_2, *FIGURE_B_13),
        # (50, 3) takes the paper's own width and hours.
        (
            *third_row(1),
            transformer(20, 2, d_emb=64, heads=8, rate=1e-3, steps=5_000, n_test=1_024),
        ),
        seeds=16,
        few=8,
    ),
    "paper": forms(
        (
            *(*FIGURE_5_1, *FIGURE_B_2, *FIGURE_B_13, *HARDER),
            *(
                transformer(50, 3, d_emb=1024, heads=128, rate=rate, batch=batch)
                for batch, rate in ((32, 5e-4), (32, 3e-4), (1024, 3e-4))
            ),
        ),
        third_row(1),
        seeds=10,
        few=10,
    ),
}

# Architecture, batch size, rate, steps of the control, which never converges, and of an evaluation.
WATCHED = (("(xiv)", 32, 0.01, 2_000, 10), ("(i)", 32, 0.1, 8_000, 40))
MORE_WATCHED = (
    *WATCHED,
    ("(xiv)", 4, 0.002, 8_000, 40),
    ("(xiv)", 1, 0.0005, 40_000, 200),
    ("(ii)", 32, 0.1, 4_000, 20),
)


def watched(
    n: int,
    k: int,
    settings: Iterable[tuple[str, int, float, int, int]],
    seeds: int,
    *,
    plain: int | None = None,
    steps: int = 20_000,
    n_test: int = 8192,
) -> Arms:
    """Sweep parities, and random labels as their control, in both forms [HP Figs 5.3, B.9].

    The control's labels are flipped with probability ½, so that there is nothing to learn. `plain`
    is the number of seeds without an output bias, if it is another. Three runs of each setting keep
    all weights of the first layer.
    """
    how: Any = {"settings": tuple(settings), "steps": steps, "n_test": n_test}
    kept = _watched(n, k, 3, (0.0,), (*MOVES, "first_layer_weights"), **how)
    return both_forms(
        _watched(n, k, seeds, (0.0, 0.5), MOVES, **how),
        _watched(n, k, plain or seeds, (0.0, 0.5), MOVES, **how),
        more={WEIGHTS: with_output_bias(kept)},
    )


def _watched(
    n: int,
    k: int,
    seeds: int,
    noises: Sequence[float],
    instruments: tuple[str, ...],
    *,
    settings: Iterable[tuple[str, int, float, int, int]],
    steps: int,
    n_test: int,
) -> Sweep:
    parts = []
    for numeral, batch, rate, until, every in settings:
        for noise in noises:
            base = followed(
                SparseParity(n, k),
                architecture(numeral, k),
                rate=rate,
                batch=batch,
                steps=until if noise else steps,
                n_test=n_test,
                every=every,
                instruments=instruments,
                label_noise=noise,
            )
            parts.append(Sweep(base, {"seed": range(seeds)}))
    return joined(parts)


PROGRESS_SCALES = {
    "smoke": watched(12, 3, [("(i)", 32, 0.1, 1_000, 20)], 30, steps=5_000, n_test=1_024),
    "laptop": watched(50, 3, WATCHED, 200, plain=100),
    "hundreds": watched(50, 3, WATCHED, 300),
    "paper": watched(50, 3, MORE_WATCHED, 1_000, steps=100_000),
}


def noisy(
    n: int, k: int, *, flips: Sequence[float], batches: Sequence[int], seeds: int, **how: Any
) -> Sweep:
    """Sweep label noise and batch sizes [HP Fig. B.12].

    With noise the iterates do not settle at 100 % accuracy (the paper says so too): converged is
    an error of at most 5 % on clean examples.
    """
    base = followed(SparseParity(n, k), relu(100), rate=0.1, target=0.05, **how)
    axes = {"training.batch_size": batches, "data.label_noise": flips, "seed": range(seeds)}
    return Sweep(base, axes)


FLIPS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.49)
NOISE_SCALES = {
    "smoke": noisy(
        10, 2, flips=(0.0, 0.2), batches=(32,), seeds=3, steps=2_000, n_test=512, every=20
    ),
    "laptop": noisy(50, 3, flips=FLIPS, batches=(8, 32, 128), seeds=10, steps=500_000, every=500),
    "paper": noisy(
        50, 3, flips=FLIPS, batches=(1, 32, 128, 1_024), seeds=25, steps=2_000_000, every=500
    ),
}


CURVES = Experiment(
    id="HP-2",
    title="Training curves: a long plateau, then a sudden fall",
    source="HP §3.1, App. B.3.8, Figs 5.1 left, B.2, B.13",
    scales=CURVES_SCALES,
    claims=(
        Claim(
            "P",
            "Networks spend at least half of the time before their error falls under 5 % at an "
            "error of 45 % or more, all but (v) and (vi).",
            "HP §3.1",
            InArm(HasPlateau(unstable=UNSTABLE)),
            "Long durations of seemingly no progress, followed by rapid decrease, for almost all "
            "architectures.",
            kind="paper",
        ),
        Claim(
            "L",
            "Wide networks of z^k, (v) and (vi), have no such plateau.",
            "HP §3.1, App. B.3.8",
            InArm(NoPlateau()),
            "For (v) and (vi) the plateau is absent.",
            kind="paper",
        ),
    ),
    figures=drawn_by_arm(configuration_curves, "curves", BIASED, PLAIN, SHOWN),
)

PROGRESS = Experiment(
    id="HP-6",
    title="Hidden progress: the weights tell how long the plateau will last",
    source="HP §5, App. B.3.3, Figs 5.3, B.9",
    scales=PROGRESS_SCALES,
    claims=(
        Claim(
            "P",
            "On the plateau, the movement of the weights predicts the remaining time.",
            "HP §5, App. B.3.3",
            InArm(ProgressPredicts()),
            "ρ(w_0:t) = ‖w_t − w_0‖_∞ is a progress measure.",
            kind="paper",
        ),
        Claim(
            "D",
            "The movement tells a parity from random labels while the error is still at chance.",
            "HP App. B.3.3, Figs 5.3 right, B.9",
            InArm(TellsWhileFlat()),
            "ρ is clearly distinguishable from the maximum of unbiased random walks, even when SGD "
            "appears to make no progress in terms of loss and accuracy.",
            kind="paper",
        ),
        Claim(
            "W",
            "When the error leaves chance, a neuron's relevant weights have become larger than all "
            "its irrelevant ones.",
            "HP App. B.3.3, Figs 5.3, B.9",
            InArm(LeadsBeforeItShows()),
            "Progress only becomes visible in the loss once the relevant weights become larger "
            "than all of the irrelevant weights.",
            kind="paper",
        ),
        Claim(
            "S",
            "The movement tells a parity from random labels before loss and error do.",
            "HP App. B.3.3, Figs 5.3 right, B.9",
            InArm(ProgressSeparates()),
            "ρ is clearly distinguishable from unbiased random walks while loss and accuracy show "
            "no progress.",
            kind="ours",
        ),
    ),
    figures={
        **drawn_by_arm(progress_curves, "progress"),
        **drawn_by_arm(prediction_scatter, "prediction"),
        **drawn_by_arm(weight_trajectories, "weights", WEIGHTS),
    },
)

NOISE = Experiment(
    id="HP-10",
    title="Noisy labels: parities are learned even if 49 % of the labels are wrong",
    source="HP App. B.3.6, Fig. B.12",
    scales=NOISE_SCALES,
    claims=(
        Claim(
            "N",
            "Networks still converge on the clean distribution, at every noise level up to 49 %.",
            "HP App. B.3.6, Fig. B.12",
            ConvergesUnderNoise(),
            "The models learn the features and converge, even with 49 % of labels flipped.",
            kind="paper",
        ),
    ),
    figures={"noise": noise_curves},
)
