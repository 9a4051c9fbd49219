"""HP, single runs over time: plateaus (HP-2), progress measures (HP-6), noisy labels (HP-10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from petridish.chapters.hidden.experiments.shared import architecture, relu, setting
from petridish.chapters.hidden.figures.progress import (
    configuration_curves,
    noise_curves,
    prediction_scatter,
    progress_curves,
)
from petridish.chapters.hidden.rules.noisy import ConvergesUnderNoise
from petridish.chapters.hidden.rules.plateaus import HasPlateau, NoPlateau
from petridish.chapters.hidden.rules.prediction import ProgressPredicts
from petridish.chapters.hidden.rules.separation import ProgressSeparates
from petridish.experiment import Experiment
from petridish.models import ParityTransformer, XavierUniform
from petridish.rules.claims import Claim
from petridish.sweeps import Sweep, joined
from petridish.tasks import SparseParity
from petridish.training import Adam, RunSpec

MOVES = ("first_layer_movement", "relevant_weight", "irrelevant_weight")


@dataclass(frozen=True)
class Configuration:
    """One panel of HP's training curves: architecture, batch size and rate."""

    numeral: str
    batch: int
    rate: float
    n: int = 50
    k: int = 3

    def spec(self, *, steps: int, n_test: int = 8192) -> RunSpec:
        """Give its run, with curves; batches of one are looked at less often."""
        return setting(
            SparseParity(self.n, self.k),
            architecture(self.numeral, self.k),
            rate=self.rate,
            batch=self.batch,
            steps=steps,
            n_test=n_test,
            every=10 if self.batch > 4 else 100,
            curves=True,
        )


FIGURE_5_1 = (
    Configuration("(i)", 32, 0.5),
    Configuration("(i)", 1024, 0.05),
    Configuration("(ii)", 1, 0.05),
    Configuration("(iv)", 32, 0.05),
    Configuration("(vii)", 32, 0.2),
    Configuration("(x)", 32, 0.05),
    Configuration("(xv)", 32, 0.07),
)
FIGURE_B_2 = (
    *(Configuration("(ii)", 32, 0.1, n, k) for n, k in ((30, 3), (60, 3), (90, 3), (30, 4))),
    *(
        Configuration("(xv)", batch, rate)
        for batch, rate in ((1, 0.005), (4, 0.01), (16, 0.1), (64, 0.1), (256, 0.1), (1024, 0.1))
    ),
    *(Configuration(numeral, 1, 0.1) for numeral in ("(*i)", "(vii)", "(viii)", "(xi)", "(xii)")),
    Configuration("(*ii)", 1, 0.01),
    Configuration("(iii)", 1, 0.1),
    Configuration("(iii)", 1024, 0.1),
    Configuration("(vi)", 1, 0.001),
    Configuration("(vi)", 1024, 0.01),
)
FIGURE_B_13 = tuple(
    Configuration(numeral, batch, 0.01)
    for numeral in ("(iv)", "(v)", "(vi)")
    for batch in (32, 256)
)
HARDER = (Configuration("(ii)", 32, 0.1, 30, 5), Configuration("(ii)", 32, 0.1, 30, 6))


def transformer(
    n: int, k: int, *, d_emb: int, heads: int, rate: float, batch: int, steps: int, n_test: int
) -> RunSpec:
    """Give a run of the Parity Transformer, by Adam [HP App. B.4.1]."""
    spec = setting(
        SparseParity(n, k),
        ParityTransformer(d_emb=d_emb, d_attn=8, heads=heads),
        rate=rate,
        batch=batch,
        steps=steps,
        n_test=n_test,
        every=20,
        curves=True,
        init=XavierUniform(),
    )
    return _with_adam(spec)


def _with_adam(spec: RunSpec) -> RunSpec:
    from dataclasses import replace

    return replace(spec, training=replace(spec.training, optimiser=Adam()))


def curves(
    configurations: Sequence[Configuration],
    seeds: int,
    *,
    steps: int = 100_000,
    n_test: int = 8192,
    wide_seeds: int | None = None,
    transformers: Sequence[RunSpec] = (),
    transformer_seeds: int = 0,
) -> Sweep:
    """Sweep the seeds of every configuration, fewer for width 1000 [HP Figs 5.1, B.2, B.13]."""
    wide = {"(iii)": wide_seeds or seeds, "(vi)": wide_seeds or seeds}
    own = [
        Sweep(
            configuration.spec(steps=steps, n_test=n_test),
            {"seed": range(wide.get(configuration.numeral, seeds))},
        )
        for configuration in dict.fromkeys(configurations)
    ]
    others = [Sweep(spec, {"seed": range(transformer_seeds)}) for spec in transformers]
    return joined([*own, *others])


CURVES_SCALES = {
    "smoke": curves(
        (Configuration("(i)", 32, 0.5, 10, 2), Configuration("(xv)", 32, 0.1, 10, 2)),
        3,
        steps=2_000,
        n_test=512,
    ),
    "laptop": curves(
        (*FIGURE_5_1, *FIGURE_B_2, *FIGURE_B_13),
        16,
        wide_seeds=8,
        # (50, 3) takes the paper's own width and hours.
        transformers=(
            transformer(20, 2, d_emb=64, heads=8, rate=1e-3, batch=32, steps=5_000, n_test=1_024),
        ),
        transformer_seeds=8,
    ),
    "paper": curves(
        (*FIGURE_5_1, *FIGURE_B_2, *FIGURE_B_13, *HARDER),
        10,
        transformers=tuple(
            transformer(
                50,
                3,
                d_emb=1024,
                heads=128,
                rate=rate,
                batch=batch,
                steps=100_000,
                n_test=8192,
            )
            for batch, rate in ((32, 5e-4), (32, 3e-4), (1024, 3e-4))
        ),
        transformer_seeds=10,
    ),
}


@dataclass(frozen=True)
class Watched:
    """A setting whose weights are watched: steps are the control's, which never converges."""

    numeral: str
    batch: int
    rate: float
    steps: int
    every: int


WATCHED = (Watched("(xiv)", 32, 0.01, 2_000, 10), Watched("(i)", 32, 0.1, 8_000, 40))
MORE_WATCHED = (
    *WATCHED,
    Watched("(xiv)", 4, 0.002, 8_000, 40),
    Watched("(xiv)", 1, 0.0005, 40_000, 200),
    Watched("(ii)", 32, 0.1, 4_000, 20),
)


def watched(
    n: int,
    k: int,
    settings: Sequence[Watched],
    seeds: int,
    *,
    steps: int = 100_000,
    n_test: int = 8192,
) -> Sweep:
    """Sweep parities, and random labels as their control [HP Figs 5.3, B.9].

    The control's labels are flipped with probability ½, so that there is nothing to learn.
    """
    parts = []
    for each in settings:
        for label_noise in (0.0, 0.5):
            base = setting(
                SparseParity(n, k),
                architecture(each.numeral, k),
                rate=each.rate,
                batch=each.batch,
                steps=each.steps if label_noise else steps,
                n_test=n_test,
                every=each.every,
                curves=True,
                instruments=MOVES,
                label_noise=label_noise,
            )
            parts.append(Sweep(base, {"seed": range(seeds)}))
    return joined(parts)


PROGRESS_SCALES = {
    "smoke": watched(12, 3, (Watched("(i)", 32, 0.1, 1_000, 20),), 30, steps=5_000, n_test=1_024),
    "laptop": watched(50, 3, WATCHED, 100),
    "hundreds": watched(50, 3, WATCHED, 300),
    "paper": watched(50, 3, MORE_WATCHED, 1_000),
}


def noisy(
    n: int,
    k: int,
    *,
    flips: Sequence[float],
    batches: Sequence[int],
    seeds: int,
    steps: int,
    n_test: int = 8192,
    every: int = 500,
    width: int = 100,
    rate: float = 0.1,
) -> Sweep:
    """Sweep label noise and batch sizes [HP Fig. B.12].

    With noise the iterates do not settle at 100 % accuracy (the source says so too): converged is
    an error of at most 5 % on clean examples.
    """
    base = setting(
        SparseParity(n, k),
        relu(width),
        rate=rate,
        steps=steps,
        n_test=n_test,
        every=every,
        curves=True,
        target=0.05,
    )
    axes = {
        "training.batch_size": tuple(batches),
        "data.label_noise": tuple(flips),
        "seed": range(seeds),
    }
    return Sweep(base, axes)


NOISE_SCALES = {
    "smoke": noisy(
        10, 2, flips=(0.0, 0.2), batches=(32,), seeds=3, steps=2_000, n_test=512, every=20
    ),
    "laptop": noisy(
        50,
        3,
        flips=(0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.49),
        batches=(8, 32, 128),
        seeds=10,
        steps=500_000,
    ),
    "paper": noisy(
        50,
        3,
        flips=(0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.49),
        batches=(1, 32, 128, 1_024),
        seeds=25,
        steps=2_000_000,
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
            HasPlateau(),
            "Long durations of seemingly no progress, followed by rapid decrease, for almost all "
            "architectures.",
            kind="paper",
        ),
        Claim(
            "L",
            "Wide networks of z^k, (v) and (vi), have no such plateau.",
            "HP §3.1, App. B.3.8",
            NoPlateau(),
            "For (v) and (vi) the plateau is absent.",
            kind="paper",
        ),
    ),
    figures={"curves": configuration_curves},
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
            ProgressPredicts(),
            "ρ(w_0:t) = ‖w_t − w_0‖_∞ is a progress measure.",
            kind="paper",
        ),
        Claim(
            "S",
            "The movement tells a parity from random labels before loss and error do.",
            "HP App. B.3.3, Figs 5.3 right, B.9",
            ProgressSeparates(),
            "ρ is clearly distinguishable from unbiased random walks while loss and accuracy show "
            "no progress.",
            kind="ours",
        ),
    ),
    figures={"progress": progress_curves, "prediction": prediction_scatter},
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
