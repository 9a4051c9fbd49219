"""FL-9: the columns of Tables 3 to 5, and what Table 1 leaves open [FL App. E.2]."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.chapters.inputs.experiments import KERNEL_RATES, RANDOM_RATES
from petridish.chapters.inputs.methods import DIMENSIONS, NINE_TENTHS, SAMPLES, SHARES, Sizes
from petridish.chapters.inputs.rules import (
    ERROR,
    BesideConstant,
    Floats,
    FromChance,
    against,
    each,
)
from petridish.chapters.inputs.settings_figures import settings_over_time
from petridish.chapters.inputs.tables import methods_table
from petridish.chapters.inputs.trainings import (
    ALONG,
    after,
    decaying,
    forgetting,
    second_rate,
    smoothed,
    two_steps,
    unwatched,
)
from petridish.experiment import Experiment
from petridish.rules import AtEnd, Claim, LastOf, Measure
from petridish.rules.specs import with_specs
from petridish.sweeps import Arms
from petridish.tasks import Dictionary
from petridish.training import Adam, Evaluation, RunSpec

if TYPE_CHECKING:
    import polars as pl

KERNEL, RANDOM = min(KERNEL_RATES), max(RANDOM_RATES)
"""Over the width: those with which FL-1 at `laptop` erred least."""
SETTINGS = (*DIMENSIONS, *SHARES, *SAMPLES)
AS_WIDE = "fewest examples, as wide"
ROUNDED = "one step, rounded"
ROUNDED_RATE = 3e-7
"""η of a first look, fitted to the paper's cosine after one step at d = 500."""
PRINTED = {100: 0.967, 500: 0.848, 2000: 0.560}
"""The paper's cosine after one step, by d [FL Tables 1, 3]."""


def under(setting: str, *methods: str) -> tuple[str, ...]:
    """Return the names of the arms of some methods under one setting."""
    return tuple(f"{setting}: {method}" for method in methods)


def in_all(method: str) -> tuple[str, ...]:
    """Return the names of the arms of one method under all settings of the tables."""
    return tuple(f"{setting}: {method}" for setting in SETTINGS)


@dataclass(frozen=True)
class BesidePrinted(Measure):
    """The largest cosine with Σ M_j minus the paper's after one step, by d; NaN for other d."""

    columns = (*LastOf("direction_cosine").columns, "cell")
    label = "cosine minus the printed one"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        known = with_specs(table, printed=_printed)["printed"].to_numpy()
        return np.asarray(LastOf("direction_cosine").of(table) - known)


def _printed(spec: RunSpec) -> float:
    task = spec.task
    return PRINTED.get(task.d, math.nan) if isinstance(task, Dictionary) else math.nan


@dataclass(frozen=True)
class Overfits(Measure):
    """The test error minus the training error, at the end."""

    columns = (*AtEnd("test_error").columns, *LastOf("train_error").columns)
    label = "test error minus training error"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        return AtEnd("test_error", math.nan).of(table) - LastOf("train_error", math.nan).of(table)


def settings(
    sizes: Sizes, *, others: tuple[int, int], rounded: tuple[int, int], few: int, long: int
) -> Arms:
    """Declare the methods under every setting of Tables 3 to 5, and controls of Table 1.

    Fixed features have one rate each, chosen by FL-1. `rounded` has the examples and neurons of the
    single steps in float32; `few` and `long`, the examples and steps of the run that memorises.
    """
    m, width = sizes.m, sizes.width
    fewest = replace(sizes, m=m // 5)
    narrow = replace(fewest, width=max(4, width // 6 // 2 * 2))
    varied: dict[str, tuple[Sizes, dict[str, Any]]] = {
        **{name: (replace(sizes, d=d), {}) for name, d in zip(DIMENSIONS, others, strict=True)},
        **{name: (sizes, {"negatives": share}) for name, share in SHARES.items()},
        SAMPLES[0]: (replace(sizes, m=m // 2), {}),
        SAMPLES[1]: (narrow, {}),
    }
    runs = {
        f"{setting}: {name}": run
        for setting, (of, more) in varied.items()
        for name, run in methods(of, **more).items()
    }
    runs |= {f"{AS_WIDE}: network": methods(fewest)["network"]} | controls(sizes)
    three = replace(sizes, k=3).parity()
    for name, task in (("k = 3", three), ("k = 3, no structure", replace(three, structure=False))):
        begun = sizes.start(task)
        runs[name] = sizes.network(after(begun, two_steps(begun, three)[1]))
    small = replace(sizes, m=few, steps=long, rate=0.01)
    memorising = small.network(small.start(small.parity(structure=False)))
    runs["no structure, Adam, few examples"] = replace(
        memorising, training=replace(memorising.training, optimiser=Adam())
    )
    single = replace(sizes, m=rounded[0], width=rounded[1], n_test=100)
    seen = Evaluation(every=1, curves=True, fitted_error=None, instruments=ALONG)
    for name, d in ((DIMENSIONS[0], others[0]), ("", sizes.d), (DIMENSIONS[1], others[1])):
        begun = single.start(replace(single, d=d).parity(space="inputs"))
        step = decaying(begun, ROUNDED_RATE)
        runs[f"{ROUNDED}, {name}" if name else ROUNDED] = replace(step, evaluation=seen)
    return sizes.arms(runs)


def methods(sizes: Sizes, **more: Any) -> dict[str, RunSpec]:
    """Return the methods of Tables 3 to 5 under one setting; `more` is of the task."""
    task, width = sizes.parity(**more), sizes.width
    bare = replace(task, structure=False)
    return sizes.compared(task, bare, kernel=KERNEL / width, random=RANDOM / width)


def controls(sizes: Sizes) -> dict[str, RunSpec]:
    """Return the arms that say whether a second step, and noise in neurons, are needed.

    In its first step a neuron is open on about half of the inputs, in its second on all: twice the
    second's rate gives the first's weights their length.
    """
    task = sizes.parity()
    begun = sizes.start(task)
    two, noisy = (after(begun, unwatched(run)) for run in (begun, smoothed(begun, task.k**-1.5)))
    long = after(begun, forgetting(begun, 2 * second_rate(task)))
    return {
        "network": sizes.network(two),
        "two step": sizes.classifier(two),
        "network, noise in both steps": sizes.network(noisy),
        "one step, length of the second": sizes.classifier(long),
    }


TABLES = "FL E.2, Tables 3, 4, 5"
VARIED = Experiment(
    id="FL-9",
    title="Other dimensions, shares of classes and sample sizes, and what Table 1 leaves open",
    source="FL E.1.1, E.2, Figs. 9, 11, 13, Tables 3, 4, 5",
    scales={
        "smoke": settings(
            Sizes(
                d=40, patterns=20, m=1_000, width=24, steps=40, batch_size=50, n_test=200, seeds=2
            ),
            others=(30, 80),
            rounded=(300, 20),
            few=100,
            long=100,
        ),
        "laptop": settings(
            Sizes(m=10_000, width=60, steps=300, batch_size=200, n_test=2_000),
            others=(100, 2_000),
            rounded=(5_000, 600),
            few=500,
            long=1_000,
        ),
        "paper": settings(
            Sizes(), others=(100, 2_000), rounded=(50_000, 600), few=5_000, long=3_000
        ),
    },
    claims=(
        Claim(
            "N",
            "Under every setting of the tables the network errs on at most 1 % of new inputs.",
            TABLES,
            each(ERROR, *in_all("network"), below=0.01),
            "100 % in all six.",
            kind="paper",
        ),
        Claim(
            "2",
            "So does a classifier on the features of two steps.",
            TABLES,
            each(ERROR, *in_all("two step"), below=0.01),
            "100 % in all six.",
            kind="paper",
        ),
        Claim(
            "F",
            "Under every setting kernel and random features err on at least 10 %.",
            TABLES,
            each(ERROR, *in_all("tangent kernel"), *in_all("random features"), above=0.1),
            "75.0 to 84.1 % for the kernel, 70.4 to 78.3 % for random features.",
            kind="paper",
        ),
        Claim(
            "S",
            "Where 90 % of labels are −1, kernel and random features are no better than a constant "
            "answer.",
            "FL E.2.2, Table 4, Fig. 11",
            each(
                BesideConstant(),
                *under(NINE_TENTHS, "tangent kernel", "random features"),
                above=1.0,
            ),
            "81.7 and 72.4 %, where a constant has 90; the kernel becomes less stable.",
            kind="paper",
        ),
        Claim(
            "O",
            "With a fifth of the examples the network over-fits at the width that serves all of "
            "them: its test error is at least 5 points above its training error.",
            "FL E.2.3",
            each(Overfits(), f"{AS_WIDE}: network", above=0.05),
            "For n = 10000 over-fitting is seen with m = 300, hence m = 50; the margin is ours.",
            kind="paper",
        ),
        Claim(
            "M",
            "Without structure a network can memorise: at most 1 % of errors on a small sample.",
            "FL E.1.1, Table 1",
            each(LastOf("train_error"), "no structure, Adam, few examples", below=0.01),
            "A train accuracy of 100 %; with Adam and few examples, which the text does not have.",
            kind="ours",
        ),
        Claim(
            "MA",
            "Such a network is within 5 points of chance on new inputs.",
            "FL E.1.1, Table 1",
            each(FromChance(), "no structure, Adam, few examples", below=0.05),
            "52 %.",
            kind="paper",
        ),
        Claim(
            "3",
            "With k = 3 and no structure the network is within 5 points of chance.",
            "FL Theorem 4",
            each(FromChance(), "k = 3, no structure", below=0.05),
            kind="ours",
        ),
        Claim(
            "X",
            "Noise in the neurons of both steps changes the network's error by at most a point.",
            "FL §3.1",
            against("network, noise in both steps", "network", between=(-0.01, 0.01)),
            "Noise is needed by the proof, and empirically not.",
            kind="paper",
        ),
        Claim(
            "R",
            "One step gives features as good as two once it leaves weights of their length: at "
            "most 2 points more.",
            "FL §5.1",
            against("one step, length of the second", "two step", below=0.02),
            kind="ours",
        ),
        Claim(
            "D",
            "Forgetting by a decay in float32 leaves the paper's cosine after one step, within "
            "0.05, for d = 100 and 500.",
            "FL Tables 1, 3",
            each(
                BesidePrinted(),
                f"{ROUNDED}, {DIMENSIONS[0]}",
                ROUNDED,
                between=(-0.05, 0.05),
            ),
            "0.967 and 0.848; the rate is that of a look, which had .968 and .836.",
            kind="ours",
        ),
        Claim(
            "D2",
            "And for d = 2000.",
            "FL Table 3",
            each(BesidePrinted(), f"{ROUNDED}, {DIMENSIONS[1]}", between=(-0.05, 0.05)),
            "0.560; the look had .672.",
            kind="ours",
        ),
    ),
    figures={
        "dimensions": partial(settings_over_time, settings=DIMENSIONS),
        "shares": partial(settings_over_time, settings=tuple(SHARES)),
        "samples": partial(settings_over_time, settings=SAMPLES),
    },
    tables={"methods": methods_table},
)
