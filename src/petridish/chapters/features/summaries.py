"""Small tables of trained networks without biases, for records and for reading [TH Ch. 7]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.chapters.features.networks import (
    READ,
    Network,
    cells,
    dimensions,
    networks,
    regularised_shares,
    starts,
    theory_shares,
)
from petridish.groups.spectra import feature_names
from petridish.rules.columns import reads

if TYPE_CHECKING:
    import polars as pl


@reads(*READ)
def margin_table(table: pl.DataFrame) -> pl.DataFrame:
    """Give the normalised margin of every run at every look, and its ratio to γ*."""
    import polars as pl

    rows = [
        (label, network.seed, int(step), float(margin), float(margin / network.best))
        for label, members in cells(networks(table))
        for network in members
        for step, margin in zip(network.steps, network.margins, strict=True)
    ]
    columns: dict[str, Any] = {"task": pl.String, "seed": pl.Int64, "step": pl.Int64}
    numbers: dict[str, Any] = {"margin": pl.Float64, "ratio": pl.Float64}
    found = pl.DataFrame(rows, schema=columns | numbers, orient="row")
    return found.with_columns(pl.col("ratio").round(6), pl.col("margin").round_sig_figs(6))


@reads(*READ)
def feature_table(table: pl.DataFrame) -> pl.DataFrame:
    """Give for every run and feature its neurons and its share of the norm, and the theory's.

    That of the maximum margin, and that of the minimum of the regularised loss where they differ.
    """
    import polars as pl

    rows: list[dict[str, Any]] = []
    for label, members in cells([n for n in networks(table) if n.on_group]):
        for network in members:
            names, theory = feature_names(network.group), theory_shares(network.group)
            allowed = regularised_shares(network)
            rows += [
                {
                    "task": label,
                    "seed": network.seed,
                    "feature": name,
                    "dimension": int(dimensions(network.group)[place]),
                    "neurons": int(network.counts[place]),
                    "norm_share": round(float(network.norm_shares[place]), 5),
                    "theory_share": round(float(theory[place]), 5),
                    "regularised_share": round(float(allowed[place]), 5) if len(allowed) else None,
                }
                for place, name in enumerate(names)
            ]
    columns = ("task", "seed", "feature", "dimension", "neurons", "norm_share", "theory_share")
    return (
        pl.DataFrame(rows, infer_schema_length=None)
        if rows
        else pl.DataFrame({c: [] for c in columns})
    )


@reads(*READ)
def neuron_table(table: pl.DataFrame) -> pl.DataFrame:
    """Give for every neuron its share of the norm and its traits, at the start and at the end."""
    import polars as pl

    rows: list[dict[str, Any]] = []
    for label, members in cells(networks(table)):
        for network in members:
            shared = {"task": label, "seed": network.seed}
            traits = _group_traits(network) if network.on_group else _bit_traits(network)
            for neuron, weight in enumerate(network.weight):
                own = {name: values[neuron] for name, values in traits.items()}
                rows.append(shared | {"neuron": neuron, "norm_share": float(weight)} | own)
    found = pl.DataFrame(rows, infer_schema_length=None)
    return found.with_columns(pl.selectors.float().round(5)) if rows else found


def _group_traits(network: Network) -> dict[str, list[Any]]:
    names, before = feature_names(network.group), starts(network)
    traits: dict[str, list[Any]] = {
        "feature": [names[home] for home in network.home],
        "power_at_start": before.shares[0].tolist(),
        "power_u": network.shares[0].tolist(),
        "power_v": network.shares[1].tolist(),
        "power_w": network.shares[2].tolist(),
    }
    if network.on_cycle:
        traits["phase_error"] = network.phase_errors.tolist()
    return traits


def _bit_traits(network: Network) -> dict[str, list[Any]]:
    squares = np.square(network.inputs)
    return {
        "power_on_support": (
            squares[:, network.support].sum(axis=1) / squares.sum(axis=1)
        ).tolist(),
        "sizes": network.has("sizes").tolist(),
        "signs": network.has("signs").tolist(),
    }
