"""Tables of networks whose weights are known: constructions, blurred ones, and random ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from petridish.choices import describe
from petridish.tasks import GroupProduct, SparseParity
from petridish.theory.features.margin_networks import Neurons
from petridish.theory.features.margins import group_margin, parity_margin
from tests.cell_tables import with_cells


def row(
    network: Neurons,
    *,
    seed: int = 0,
    ratio: float = 0.99,
    relu: bool = False,
    strength: float = 1e-4,
    **task: Any,
) -> dict[str, Any]:
    """Return a run that ended with these weights, its margin at `ratio` of γ*, 0.01 less before."""
    if "group" in task:
        best = group_margin(GroupProduct(task["group"]).structure()).margin
        name = describe(GroupProduct(task["group"]))
        possible = GroupProduct(task["group"]).n_possible
    else:
        best = parity_margin(task["k"])
        name = describe(SparseParity(**task))
        possible = 2 ** task["n"]
    columns = {"task.group": None, "task.n": None, "task.k": None, "task.support": None}
    return {
        "task": name,
        **(columns | {f"task.{key}": value for key, value in task.items()}),
        "model.width": network.width,
        "model.activation": "relu" if relu else f"power({network.power})",
        "seed": seed,
        "weights": [network.inputs.ravel().tolist(), network.outputs.T.ravel().tolist()],
        "model": "homogeneous",
        "init": "uniform",
        "data.m": float(possible),
        "data.draws": "distinct",
        "data.label_noise": 0.0,
        "training.weight_decay": 0.0,
        "training.penalty.strength": strength,
        "training.penalty.order": 2.0,
        "training.penalty.power": network.power + 1.0,
        "curve.step": [0, 50, 100],
        "curve.normalised_margin": [-best, (ratio - 0.01) * best, ratio * best],
    }


TYPES: dict[str, Any] = {
    "task.group": pl.String,
    "task.n": pl.Int64,
    "task.k": pl.Int64,
    "task.support": pl.List(pl.Int64),
}


def table_of(*rows: dict[str, Any]) -> pl.DataFrame:
    """Put runs into a table."""
    return with_cells(pl.DataFrame(list(rows), schema_overrides=TYPES, infer_schema_length=None))


def blurred(network: Neurons, share: float, seed: int) -> Neurons:
    """Add to every weight vector a random one of `share` of its length."""
    rng = np.random.default_rng(seed)

    def blur(rows: Any) -> Any:
        noise = rng.normal(size=rows.shape)
        sizes = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows + share * noise * sizes / np.linalg.norm(noise, axis=1, keepdims=True)

    return Neurons(blur(network.inputs), blur(network.outputs), network.power)
