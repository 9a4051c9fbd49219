"""Small tables of trained networks without biases, for records and for reading [TH Ch. 7]."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.chapters.features.neurons import (
    TrainedNeurons,
    dimensions,
    regularised_shares,
    theory_shares,
)
from petridish.chapters.features.stored_networks import READ, cells, networks, starts
from petridish.groups import real_irreps
from petridish.groups.spectra import feature_names
from petridish.rules.columns import reads
from petridish.sweeps import Sweep
from petridish.tasks import GroupProduct

if TYPE_CHECKING:
    import polars as pl


@reads(*READ)
def margin_table(table: pl.DataFrame) -> pl.DataFrame:
    """Return the normalised margin of every run at every evaluation, and its ratio to γ*."""
    import polars as pl

    rows = [
        (label, network.seed, int(step), float(margin), float(margin / network.best))
        for label, members in cells(networks(table))
        for network in members
        for step, margin in zip(network.steps, network.margins, strict=True)
    ]
    columns = {"task": pl.String, "seed": pl.Int64, "step": pl.Int64}
    columns |= {"margin": pl.Float64, "ratio": pl.Float64}
    found = pl.DataFrame(rows, schema=columns, orient="row")
    return found.with_columns(pl.col("ratio").round(6), pl.col("margin").round_sig_figs(6))


@reads(*READ)
def feature_table(table: pl.DataFrame) -> pl.DataFrame:
    """Return for every run and feature its neurons, its share of the norm, and the theory's.

    Neurons by number: all that have settled in it, and those of them that carry 99 % of the norm.

    The theory's at the maximum margin, and at the minimum of the regularised loss where known.
    """

    def rows(network: TrainedNeurons) -> dict[str, Any]:
        group, allowed = network.group, regularised_shares(network)
        return {
            "feature": feature_names(group),
            "dimension": dimensions(group),
            "neurons": network.counts,
            "large_neurons": network.large_counts,
            "norm_share": network.norm_shares,
            "theory_share": theory_shares(group),
            "regularised_share": allowed if len(allowed) else [None] * len(network.counts),
        }

    return _by_run([network for network in networks(table) if network.on_group], rows)


@reads(*READ)
def neuron_table(table: pl.DataFrame) -> pl.DataFrame:
    """Return for every neuron its share of the norm and its traits, at the start and at the end."""

    def rows(network: TrainedNeurons) -> dict[str, Any]:
        traits = _group_traits(network) if network.on_group else _bit_traits(network)
        own = {"neuron": np.arange(len(network.weight)), "norm_share": network.weight}
        return own | traits

    return _by_run(networks(table), rows)


def conditions(sweep: Sweep) -> list[str]:
    """Return whether Theorem 7.9 applies to each group of a sweep, and what γ* is of."""
    from petridish.theory.features.margins import condition, group_margin, theorem_applies

    tasks = {spec.task for spec, _ in sweep.cells() if isinstance(spec.task, GroupProduct)}
    found = []
    for task in sorted(tasks, key=lambda task: (task.n_possible, str(task.group))):
        group = task.structure()
        if theorem_applies(group):
            found.append(f"{group.name}: Theorem 7.9 applies; its condition holds.")
            continue
        if any(irrep.kind != "real" for irrep in real_irreps(group)):
            why = "it has representations that are not of real kind"
        else:
            worst = condition(group).max()
            why = f"its condition fails, with {worst:+.3g} for a class"
        shares = theory_shares(group)
        named = list(zip(feature_names(group), shares, strict=True))
        empty = [name for name, share in named[1:] if share <= 1e-9]
        needs = f", which needs no neurons in {', '.join(empty)}" if empty else ""
        found.append(
            f"{group.name}: Theorem 7.9 does not apply: {why}. γ* = "
            f"{group_margin(group).margin:.4g} is that of a linear programme{needs}."
        )
    return found


def _by_run(
    found: list[TrainedNeurons], rows: Callable[[TrainedNeurons], dict[str, Any]]
) -> pl.DataFrame:
    """Put the columns of every run below each other, with its task and seed; floats are rounded."""
    import polars as pl

    parts = [
        pl.DataFrame({"task": label, "seed": network.seed, **rows(network)})
        for label, members in cells(found)
        for network in members
    ]
    whole = pl.concat(parts, how="diagonal_relaxed") if parts else pl.DataFrame()
    return whole.with_columns(pl.selectors.float().round(5))


def _group_traits(network: TrainedNeurons) -> dict[str, Any]:
    names = feature_names(network.group)
    traits = {
        "feature": [names[home] for home in network.home],
        "power_at_start": starts(network).shares[0],
        "power_u": network.shares[0],
        "power_v": network.shares[1],
        "power_w": network.shares[2],
    }
    return traits | ({"phase_error": network.phase_errors} if network.on_cycle else {})


def _bit_traits(network: TrainedNeurons) -> dict[str, Any]:
    squares = np.square(network.inputs)
    return {
        "power_on_support": squares[:, network.support].sum(axis=1) / squares.sum(axis=1),
        "sizes": network.has("sizes"),
        "signs": network.has("signs"),
    }
