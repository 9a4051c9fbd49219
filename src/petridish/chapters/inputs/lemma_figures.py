"""The gradient of every neuron along the patterns, beside what the lemmas say [FL App. B]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.chapters.inputs.trainings import noise_of
from petridish.figures.panels import framed
from petridish.figures.style import BLUE, GREY, INK, NothingToDraw
from petridish.models import MLP
from petridish.rules.columns import reads
from petridish.sweeps.arms import arm, arm_names
from petridish.tasks import Dictionary
from petridish.theory.inputs.steps import open_probability
from petridish.training import read_cell

if TYPE_CHECKING:
    import polars as pl

GRADIENTS = "array.pattern_gradient"


@reads(GRADIENTS)
def gradients_of_neurons(table: pl.DataFrame, title: str) -> Any:
    """Draw T_A σ/γ of every neuron against its bias, in both steps, and β where a lemma has it.

    Grey: the largest |T_j| of the background, in the same unit. One run for each kind of noise.
    """
    if GRADIENTS not in table.columns or table[GRADIENTS].is_null().all():
        raise NothingToDraw("No run kept its gradients. Add the instrument pattern_gradient.")
    table = table.filter(table[GRADIENTS].is_not_null())
    names = arm_names(table)
    note = (
        "One run per column. Blue: the mean of T_j over relevant patterns, with its range; grey: "
        "the largest |T_j| of the others. Black: β = Pr[b + ξ ∈ (0, 1)], what the text says for "
        "the second step."
    )
    size = (1.0 + 2.9 * len(names), 6.3)
    with framed(title, note, size, 2, len(names), sharey=True) as (figure, axes):
        for column, name in zip(axes.T, names, strict=True):
            run = arm(table, name).sort("seed").row(0, named=True)
            spec = read_cell(run["cell"])
            task, model = spec.task, spec.model
            assert isinstance(task, Dictionary), "what the instrument reads"
            assert isinstance(model, MLP), "what the instrument reads"
            noise = noise_of(model)
            unit = task.correlation / np.sqrt(task.variance)
            readings = np.reshape(run[GRADIENTS]["values"], run[GRADIENTS]["shape"])
            for step, (panel, rows) in enumerate(zip(column, readings[:2], strict=True), start=1):
                bias = rows[:, 4]
                low, mean, high, outside = rows[:, :4].T / unit
                panel.vlines(bias, low, high, color=BLUE, lw=0.6, alpha=0.5)
                panel.scatter(bias, mean, s=7, color=BLUE, lw=0, label="relevant")
                panel.scatter(bias, outside, s=5, color=GREY, lw=0, label="background")
                if step == 2:
                    at = np.linspace(bias.min(), bias.max(), 301)
                    beta = [open_probability(float(b), noise) for b in at]
                    panel.plot(at, beta, color=INK, lw=1.0, label="β")
                panel.set_title(f"{name}: step {step}", loc="left", fontsize=9)
                panel.set_ylim(-0.05, 1.15)
            column[1].set_xlabel("bias b")
        for panel in axes[:, 0]:
            panel.set_ylabel("T σ / γ")
        axes[1, 0].legend(frameon=False, fontsize="x-small", loc="center left")
    return figure
