"""HP, single runs over time: plateaus (HP-2), progress measures (HP-6), noisy labels (HP-10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from petridish.models import ParityTransformer, XavierUniform
from petridish.papers.hidden import architecture, relu, setting, together
from petridish.sweeps import Sweep
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
    transformers: Sequence[RunSpec] = (),
    transformer_seeds: int = 0,
) -> Sweep:
    """Sweep the seeds of every configuration [HP Figs 5.1 left, B.2, B.13]."""
    own = [
        Sweep(configuration.spec(steps=steps, n_test=n_test), {"seed": range(seeds)})
        for configuration in dict.fromkeys(configurations)
    ]
    others = [Sweep(spec, {"seed": range(transformer_seeds)}) for spec in transformers]
    return together([*own, *others])


CURVES_SCALES = {
    "smoke": curves(
        (Configuration("(i)", 32, 0.5, 10, 2), Configuration("(xv)", 32, 0.1, 10, 2)),
        3,
        steps=2_000,
        n_test=512,
    ),
    "laptop": curves(
        (*FIGURE_5_1, *FIGURE_B_2, *FIGURE_B_13),
        10,
        transformers=(
            transformer(50, 3, d_emb=128, heads=16, rate=5e-4, batch=32, steps=5_000, n_test=1_024),
        ),
        transformer_seeds=3,
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
    return together(parts)


PROGRESS_SCALES = {
    "smoke": watched(10, 2, (Watched("(xiv)", 32, 0.05, 200, 5),), 12, steps=2_000, n_test=512),
    "laptop": watched(50, 3, WATCHED, 100),
    "thousand": watched(50, 3, MORE_WATCHED, 1_000),
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
        seeds=5,
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
