"""Trained networks without biases, read from a table of runs that kept their weights [TH Ch. 7]."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.chapters.features.neurons import TrainedNeurons
from petridish.choices import describe, name_of
from petridish.models import Homogeneous
from petridish.rules.specs import where
from petridish.tasks import GroupProduct, SparseParity
from petridish.training import Evaluation, RunSpec, cell_text, flat, read_cell

if TYPE_CHECKING:
    import polars as pl

NO_WEIGHTS = "no homogeneous network here kept its weights: ask for them by evaluation.weights"
READ = ("curve.step", "curve.normalised_margin", "weights")
"""The curves and weights of a table that `networks` reads."""


def networks(table: pl.DataFrame, activation: str | None = None) -> list[TrainedNeurons]:
    """Return the networks of a table; of one activation ("power", "power(2)") if it is given.

    Runs of other models and on other tasks are left out.
    """
    if "weights" not in table.columns:
        return []
    import polars as pl

    def asked_for(spec: RunSpec) -> bool:
        if not isinstance(spec.model, Homogeneous):
            return False
        kind = spec.model.activation
        named = activation is None or activation in (name_of(kind), describe(kind))
        return named and isinstance(spec.task, GroupProduct | SparseParity)

    kept = table.filter(pl.col("weights").is_not_null())
    rows = where(kept, asked_for).sort("model.width", "seed")
    found = [_network(row) for row in rows.iter_rows(named=True)]
    found.sort(key=lambda network: (network.task.domain.n_inputs, network.label, network.seed))
    return found


def starts(network: TrainedNeurons) -> TrainedNeurons:
    """Return the network with which the same run began: its weights are drawn again."""
    parameters = network.model.parameters(network.task.domain, network.outputs.shape[1])
    first, second = network.spec.init.draw(parameters, [network.seed])
    empty = np.empty(0)
    return replace(
        network,
        inputs=first[0].astype(np.float64),
        outputs=second[0].T.astype(np.float64),
        steps=empty,
        margins=empty,
    )


def _network(row: dict[str, Any]) -> TrainedNeurons:
    spec = replace(read_cell(row["cell"]), seed=row["seed"])
    assert isinstance(spec.model, Homogeneous), "as `networks` chose it"
    first, second = (np.array(values, np.float64) for values in row["weights"])
    return TrainedNeurons(
        spec=spec,
        inputs=first.reshape(spec.model.width, -1),
        outputs=second.reshape(-1, spec.model.width).T,
        steps=np.array(row.get("curve.step") or [], np.float64),
        margins=np.array(row.get("curve.normalised_margin") or [], np.float64),
    )


def cells(found: list[TrainedNeurons]) -> Iterator[tuple[str, list[TrainedNeurons]]]:
    """Yield groups of networks that differ in their seed alone, each with its label.

    Where several groups have the same label, it names the fields that differ: Z5, width 16.
    """
    parts: dict[str, list[TrainedNeurons]] = {}
    for network in found:
        # Runs that differ in what was measured alone are alike.
        cell = cell_text(replace(network.spec, evaluation=Evaluation()))
        parts.setdefault(cell, []).append(network)
    settings = [(members[0].label, _setting(members[0].spec)) for members in parts.values()]
    for (label, setting), members in zip(settings, parts.values(), strict=True):
        alike = [other for name, other in settings if name == label]
        names = sorted({name for other in alike for name in other})
        apart = [n for n in names if any(other.get(n) != setting.get(n) for other in alike)]
        # A choice has a field for its text beside its own fields: name these alone.
        own = [n for n in apart if not any(other.startswith(f"{n}.") for other in apart)]
        words = [f"{n.rpartition('.')[2]} {_word(setting.get(n))}" for n in own]
        yield ", ".join([label, *words]), members


def _setting(spec: RunSpec) -> dict[str, Any]:
    """Return the fields in which runs may differ: all but the seed and the evaluation."""
    return {
        name: value
        for name, value in flat(spec).items()
        if value is not None and name != "seed" and not name.startswith("evaluation.")
    }


def _word(value: object) -> str:
    """Write a value; a long one, such as a table, as four letters of its hash."""
    text = str(value)
    return text if len(text) <= 24 else f"#{hashlib.sha256(text.encode()).hexdigest()[:4]}"
