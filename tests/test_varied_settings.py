"""FL-9: the settings of Tables 3 to 5, and controls of Table 1, at smoke scale."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from petridish.chapters.inputs.methods import NINE_TENTHS
from petridish.chapters.inputs.settings_figures import settings_over_time
from petridish.chapters.inputs.varied_settings import (
    PRINTED,
    SETTINGS,
    VARIED,
    BesidePrinted,
    Overfits,
)
from petridish.figures.style import NothingToDraw
from petridish.rules import AtEnd, LastOf
from petridish.store import Store
from petridish.sweeps import Arms
from petridish.sweeps.arms import arm
from petridish.tasks import Dictionary
from petridish.training import From, ended
from tests.conftest import SmokeStore


@pytest.fixture
def table(smoke_store: SmokeStore) -> pl.DataFrame:
    """Return the smoke runs."""
    return VARIED.sweep("smoke").among(Store(smoke_store("FL-9")).read(columns="all").table)


def test_every_setting_has_six_curves_and_two_classifiers(table: pl.DataFrame) -> None:
    """As Figs. 9, 11 and 13 have; the shares of classes are those of the samples."""
    methods = (
        *("network", "tangent kernel", "random features", "one step", "two step"),
        *("no structure", "kernel without structure", "random features without structure"),
    )
    for setting in SETTINGS:
        for method in methods:
            assert len(arm(table, f"{setting}: {method}")) == 2
    assert len(VARIED.judge(table)) == len(VARIED.claims)
    for name in ("dimensions", "shares", "samples"):
        assert len(VARIED.figures[name](table, "").axes) == 2
    one_sided = arm(table, f"{NINE_TENTHS}: one step")  # a constant answer
    assert one_sided["test_error"].to_list() == pytest.approx([0.1, 0.1])


def test_measures(table: pl.DataFrame) -> None:
    """The gap of two errors; the cosine beside a printed one, which three d have."""
    network = arm(table, "fewest examples, as wide: network")
    gap = AtEnd("test_error").of(network) - LastOf("train_error").of(network)

    assert np.allclose(Overfits().of(network), gap)
    assert np.isnan(BesidePrinted().of(network)).all()
    laptop = VARIED.sweep("laptop")
    assert isinstance(laptop, Arms)
    rounded = [sweep.base.task for name, sweep in laptop.arms.items() if "rounded" in name]
    assert [task.d for task in rounded if isinstance(task, Dictionary)] == [*PRINTED]


def test_the_first_step_gets_the_length_of_the_second() -> None:
    """At twice the second's rate its weights are as long as two steps leave them, neuron by neuron.

    Within a fifth, the median. In the second step a neuron with a negative bias is closed, and
    forgets all.
    """
    arms = VARIED.sweep("smoke")
    assert isinstance(arms, Arms)
    lengths = []
    for name in ("one step, length of the second", "two step"):
        init = arms[name].base.init
        assert isinstance(init, From)
        lengths.append(np.linalg.norm(ended(init.run)["layer1.weight"], axis=-1))
    one, two = lengths

    assert np.median(one[two > 0] / two[two > 0]) == pytest.approx(1, abs=0.2)


def test_nothing_to_draw(table: pl.DataFrame) -> None:
    """Runs of no setting."""
    with pytest.raises(NothingToDraw) as refused:
        settings_over_time(table, "", settings=("other",))
    assert str(refused.value) == "No run of these settings kept its curves. Run it as declared."
