"""Figures of features that emerge: margins, embeddings, spectra, phases [TH Fig. 7.1 … D.3]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.features.networks import (
    NO_WEIGHTS,
    READ,
    Network,
    cells,
    networks,
    regularised_shares,
    starts,
    theory_shares,
)
from petridish.figures.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    NothingToDraw,
    caption,
    house_style,
    shades,
)
from petridish.groups.spectra import feature_names
from petridish.rules.columns import reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
BINS = np.linspace(0, 1, 41)
SHOWN = 4  # neurons of a network that are drawn one by one


@reads(*READ)
def margin_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw the normalised margin over γ* through training, and what is missing [TH Fig. 7.1c]."""
    found = [n for n in networks(table) if len(n.margins) and math.isfinite(n.best)]
    if not found:
        raise NothingToDraw(f"No margins to draw: {NO_WEIGHTS}.")
    parts = list(cells(found))
    colours = shades([float(i) for i in range(len(parts))])
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(10, 4.2), layout="constrained")
        whole, missing = figure.subplots(1, 2)
        for place, (label, members) in enumerate(parts):
            if members[0].allowed < 0.9995:
                whole.axhline(members[0].allowed, color=colours[float(place)], lw=0.9, ls=":")
            for network in members:
                style: dict[str, Any] = {"color": colours[float(place)], "lw": 1.1, "alpha": 0.8}
                style["label"] = label if network is members[0] else None
                whole.plot(network.steps, network.ratios, **style)
                missing.plot(network.steps, np.maximum(1 - network.ratios, 1e-9), **style)
        whole.axhline(1, color=ORANGE, lw=1.2, ls="--")
        whole.text(0, 1.015, "γ*", color=ORANGE, ha="left", va="bottom")
        whole.set_ylim(-0.3, 1.1)
        whole.set_ylabel("normalised margin, γ/γ*")
        whole.set_title("Towards the maximum", loc="left")
        missing.set_yscale("log")
        missing.set_ylabel("1 − γ/γ*")
        missing.set_title("What is missing", loc="left")
        for panel in (whole, missing):
            panel.set_xlabel("steps")
        if len(parts) <= 6:
            whole.legend(frameon=False, loc="lower right")
        else:
            figure.legend(loc="outside right center", frameon=False)
        caption(
            figure,
            title,
            "One line a run: the least margin over all inputs, over ‖θ‖_{2,ν}^ν and over the "
            "theorem's maximum. Dotted: what the regulariser allows, where less. At the end on "
            f"average {_ends(parts)}.",
        )
    return figure


def _ends(parts: Sequence[tuple[str, list[Network]]]) -> str:
    return "; ".join(
        f"{label}: {np.mean([n.ratios[-1] for n in members]):.4f} (n = {len(members)})"
        for label, members in parts
    )


@reads(*READ)
def embeddings(table: pl.DataFrame, title: str) -> Figure:
    """Draw u of some neurons with its spectrum, ReLU beside squares [TH Fig. 7.1a, b]."""
    chosen = _first_of_each(_on_cycles(table))
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(5.2 * len(chosen), 6.4), layout="constrained")
        axes = figure.subplots(
            SHOWN, 2 * len(chosen), squeeze=False, width_ratios=[1.6, 1] * len(chosen)
        )
        for column, network in enumerate(chosen):
            order = np.flatnonzero(network.active)
            # Spread over the sizes that count: the largest are no better than the others.
            places = order[np.linspace(0, len(order) - 1, SHOWN).astype(int)]
            for row, neuron in enumerate(places):
                _embedding(axes[row, 2 * column], axes[row, 2 * column + 1], network, int(neuron))
            axes[0, 2 * column].set_title(f"{_words(network)}: weights u", loc="left")
            axes[0, 2 * column + 1].set_title("power", loc="left")
            axes[-1, 2 * column].set_xlabel("element a")
            axes[-1, 2 * column + 1].set_xlabel("frequency")
        caption(
            figure,
            title,
            f"{SHOWN} neurons of the run with seed {chosen[0].seed} in each block. Dots are "
            "weights; the line has the same spectrum over the reals. The number is the maximum "
            "normalised power.",
        )
    return figure


def _embedding(left: Any, right: Any, network: Network, neuron: int) -> None:
    size = network.group.order
    u = network.inputs[neuron, :size]
    fine = np.arange(0, size - 1 + 1e-9, 0.1)
    terms = np.fft.rfft(u) / size
    waves = np.exp(2j * np.pi * np.outer(fine, np.arange(len(terms))) / size)
    # Of an even number of elements the last frequency has no partner either.
    doubled = np.where(np.isin(np.arange(len(terms)), (0, size / 2)), 1.0, 2.0)
    left.plot(fine, (waves @ (doubled * terms)).real, color=BLUE, lw=0.8, alpha=0.5)
    left.plot(np.arange(size), u, ".", color=ORANGE, ms=4)
    left.axhline(0, color=GREY, lw=0.5)
    spectrum = network.spectra[0, neuron] / network.spectra[0, neuron].sum()
    right.bar(np.arange(len(spectrum)), spectrum, color=BLUE, width=0.9)
    right.set_ylim(0, 1.3)
    right.set_yticks([0, 0.5, 1])
    right.text(0.99, 1.0, f"{spectrum.max():.3f}", ha="right", va="top", transform=right.transAxes)


@reads(*READ)
def power_histograms(table: pl.DataFrame, title: str) -> Figure:
    """Draw maximum normalised powers of u at the start and at the end [TH Fig. 7.4]."""
    parts = list(cells(_on_groups(table)))
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(7.4, 0.9 + 2.3 * len(parts)), layout="constrained")
        axes = figure.subplots(len(parts), 2, squeeze=False, sharex=True)
        for (label, members), (before, after) in zip(parts, axes, strict=True):
            _histogram(before, [starts(n) for n in members], f"{label}: at the start", every=True)
            _histogram(after, members, f"{label}: at the end")
        for panel in axes[-1]:
            panel.set_xlabel("maximum normalised power of u")
        caption(
            figure,
            title,
            "All runs of a task together; 1 is a neuron of one frequency or representation. Grey: "
            "neurons that carry less than 1 % of the norm together.",
        )
    return figure


def _histogram(panel: Any, members: Sequence[Network], title: str, *, every: bool = False) -> None:
    shares = np.concatenate([network.shares[0] for network in members])
    active = np.concatenate([network.active | every for network in members])
    panel.hist([shares[active], shares[~active]], BINS, color=[BLUE, GREY], stacked=True)
    panel.set_xlim(0, 1.02)
    panel.set_ylabel("neurons")
    panel.set_title(title, loc="left")
    panel.text(
        0.03,
        0.95,
        f"mean {shares[active].mean():.3f}",
        ha="left",
        va="top",
        transform=panel.transAxes,
    )


@reads(*READ)
def frequency_bars(table: pl.DataFrame, title: str) -> Figure:
    """Draw how many neurons each frequency is the home of [TH Fig. D.1]."""
    parts = list(cells(_on_cycles(table)))
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(9, 0.9 + 2.5 * len(parts)), layout="constrained")
        axes = figure.subplots(len(parts), 1, squeeze=False, sharex=True)[:, 0]
        for panel, (label, members) in zip(axes, parts, strict=True):
            counts = np.array([network.counts[1:] for network in members])
            places = np.arange(1, counts.shape[1] + 1)
            panel.bar(places, counts.mean(axis=0), color=BLUE, width=0.8)
            for row in counts:
                panel.plot(places, row, ".", color=INK, ms=3)
            panel.axhline(counts.mean(), color=ORANGE, lw=1.2, ls="--")
            panel.set_title(f"{label}, {len(members[0].inputs)} neurons", loc="left")
            panel.set_ylabel("neurons")
            panel.xaxis.get_major_locator().set_params(integer=True)
        axes[-1].set_xlabel("frequency ζ")
        caption(
            figure,
            title,
            "Bars: mean over runs; dots: runs; dashed: evenly spread. Neurons that carry 99 % "
            "of the norm.",
        )
    return figure


@reads(*READ)
def phase_relation(table: pl.DataFrame, title: str) -> Figure:
    """Draw θ_u + θ_v against θ_w for the neurons of modular addition [TH Theorem 7.7]."""
    chosen = _first_of_each(_on_cycles(table))
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(3.9 * len(chosen) + 0.4, 4.4), layout="constrained")
        axes = figure.subplots(1, len(chosen), squeeze=False)[0]
        for panel, network in zip(axes, chosen, strict=True):
            active = network.active
            size = network.group.order
            rows = np.flatnonzero(active)
            w = np.angle(np.fft.rfft(network.outputs)[rows, network.home[rows]])
            both = w + network.phase_errors[rows]
            panel.plot(w, (both + np.pi) % (2 * np.pi) - np.pi, ".", color=BLUE, ms=3, alpha=0.6)
            panel.plot([-np.pi, np.pi], [-np.pi, np.pi], color=ORANGE, lw=0.8, zorder=0)
            panel.set_aspect("equal")
            panel.set_xticks([-np.pi, 0, np.pi], ["−π", "0", "π"])
            panel.set_yticks([-np.pi, 0, np.pi], ["−π", "0", "π"])
            panel.set_xlabel("θ_w")
            panel.set_ylabel("θ_u + θ_v")
            panel.set_title(f"{_words(network)}, p = {size}", loc="left")
        caption(
            figure,
            title,
            f"One dot a neuron at its own frequency, the run with seed {chosen[0].seed}. Theorem "
            "7.7 puts them on the line.",
        )
    return figure


@reads(*READ)
def parity_neurons(table: pl.DataFrame, title: str) -> Figure:
    """Draw the largest neurons of a network on a sparse parity [TH Fig. 7.5a]."""
    found = [n for n in networks(table) if not n.on_group]
    if not found:
        raise NothingToDraw(f"No neurons on a parity to draw: {NO_WEIGHTS}.")
    network = found[0]
    order = np.argsort(-network.weight)[:20]
    size = np.linalg.norm(network.outputs[order], axis=1, keepdims=True)
    bits = np.concatenate([np.flatnonzero(network.support), np.flatnonzero(~network.support)])
    values = np.concatenate([network.inputs[order][:, bits], network.outputs[order]], axis=1) / size
    k, n = int(network.support.sum()), len(bits)
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(7.6, 5.4), layout="constrained")
        panel = figure.subplots()
        image = panel.imshow(values, cmap="RdBu_r", vmin=-1.2, vmax=1.2, aspect="auto")
        names = [f"u{bit}" for bit in bits] + ["w+", "w−"]
        panel.set_xticks(range(len(names)), names)
        panel.set_yticks(range(len(order)), [f"{w:.3f}" for w in network.weight[order]])
        panel.set_ylabel("neuron, by its share of the norm")
        for line in (k - 0.5, n - 0.5):
            panel.axvline(line, color=INK, lw=1.2)
        panel.set_title(f"in S: {k} bits | outside | outputs", loc="left")
        figure.colorbar(image, ax=panel, label="weight / ‖w‖", shrink=0.8)
        active = int(network.active.sum())
        caption(
            figure,
            title,
            f"The {len(order)} largest of {len(network.inputs)} neurons, seed {network.seed}; "
            f"{active} carry "
            "99 % of the norm. Theorem 7.8: 0 outside S, ±1 inside, w along (1, −1)/√2 with the "
            "sign of the product.",
        )
    return figure


@reads(*READ)
def representations(table: pl.DataFrame, title: str) -> Figure:
    """Draw margin, representations and power of each group [TH Fig. 7.6, D.2, D.3]."""
    parts = list(cells(_on_groups(table)))
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(13.2, 0.9 + 2.5 * len(parts)), layout="constrained")
        axes = figure.subplots(len(parts), 4, squeeze=False)
        for row, (label, members) in zip(axes, parts, strict=True):
            for network in members:
                row[0].plot(network.steps, network.ratios, color=BLUE, lw=1)
            row[0].axhline(1, color=ORANGE, lw=1.2, ls="--")
            if members[0].allowed < 0.9995:
                row[0].axhline(members[0].allowed, color=BLUE, lw=0.9, ls=":")
            row[0].set_ylim(-0.3, 1.1)
            row[0].set_ylabel("γ/γ*")
            row[0].set_title(f"{label}: normalised margin", loc="left")
            _representation_bars(row[1], members)
            _histogram(row[2], [starts(n) for n in members], "power at the start", every=True)
            _histogram(row[3], members, "power at the end")
        axes[-1, 0].set_xlabel("steps")
        axes[-1, 1].set_xlabel("representation")
        for panel in axes[-1, 2:]:
            panel.set_xlabel("maximum normalised power of u")
        caption(
            figure,
            title,
            f"γ/γ* at the end: {_ends(parts)}; dotted: what the regulariser allows. Bars: share of "
            "‖θ‖³ in each representation, mean over runs; dots: share of neurons; lines: shares at "
            "the maximum margin, and, in grey, at the minimum of the regularised loss.",
        )
    return figure


def _representation_bars(panel: Any, members: Sequence[Network]) -> None:
    group = members[0].group
    names = feature_names(group)
    places = np.arange(len(names))
    norms = np.mean([network.norm_shares for network in members], axis=0)
    counts = np.mean([network.counts / max(network.counts.sum(), 1) for network in members], axis=0)
    panel.bar(places, norms, color=BLUE, width=0.7)
    panel.plot(places, counts, "o", color=INK, ms=4)
    for place, share in enumerate(theory_shares(group)):
        panel.plot([place - 0.42, place + 0.42], [share] * 2, color=ORANGE, lw=1.8)
    for place, share in enumerate(regularised_shares(members[0])):
        panel.plot([place - 0.42, place + 0.42], [share] * 2, color=GREY, lw=1.8, ls=(0, (2, 1)))
    few = len(names) <= 12
    panel.set_xticks(places if few else places[::5], names if few else names[::5])
    if few and len(names) > 5:
        panel.tick_params(axis="x", labelsize=7)
    panel.set_ylabel("share")
    panel.set_title("share of each", loc="left")


@reads(*READ)
def constructions(table: pl.DataFrame, title: str) -> Figure:
    """Draw γ/γ* of trained networks by p and width, beside the exact ones [TH §D.4, §D.6]."""
    from petridish.chapters.features.rules import dense_ratio

    found = [n for n in _on_cycles(table) if math.isfinite(n.best) and len(n.margins)]
    found = [n for n in found if n.group.order % 2]
    if not found:
        raise NothingToDraw("None of these runs watched its margin on addition modulo an odd p.")
    moduli = sorted({network.group.order for network in found})
    factors = sorted({_factor(network) for network in found})
    colours = shades([float(f) for f in factors])
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(8.4, 4.6), layout="constrained")
        panel = figure.subplots()
        for place, factor in enumerate(factors):
            here = [n for n in found if _factor(n) == factor]
            shift = 0.16 * (place - (len(factors) - 1) / 2)
            x = np.array([moduli.index(n.group.order) + shift for n in here])
            panel.plot(
                x,
                [n.ratios[-1] for n in here],
                "o",
                color=colours[factor],
                ms=5,
                alpha=0.8,
                label=f"trained, width {factor:g} × 4(p − 1)",
            )
        panel.axhline(1, color=ORANGE, lw=1.6, label="Theorem 7.7's network, 4(p − 1) neurons")
        for place, p in enumerate(moduli):
            panel.plot(
                [place - 0.35, place + 0.35],
                [dense_ratio(p)] * 2,
                color=INK,
                lw=1.6,
                label="§D.4's dense network, 2p² neurons" if place == 0 else None,
            )
        panel.set_xticks(range(len(moduli)), [f"p = {p}" for p in moduli])
        panel.set_ylabel("γ/γ*")
        panel.set_ylim(min(-0.02, *(float(n.ratios[-1]) for n in found)) - 0.03, 1.08)
        panel.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        caption(figure, title, f"One dot a run (n = {len(found)}); margins are over all p² inputs.")
    return figure


def _factor(network: Network) -> float:
    return len(network.inputs) / (4 * (network.group.order - 1))


def _on_groups(table: pl.DataFrame) -> list[Network]:
    found = [n for n in networks(table) if n.on_group]
    if not found:
        raise NothingToDraw(f"No networks on groups to draw: {NO_WEIGHTS}.")
    return found


def _on_cycles(table: pl.DataFrame) -> list[Network]:
    found = [n for n in _on_groups(table) if n.on_cycle]
    if not found:
        raise NothingToDraw("None of these runs is on addition modulo p.")
    return found


def _first_of_each(found: Sequence[Network]) -> list[Network]:
    """Give the first run of each activation, on the largest group."""
    first: dict[str, Network] = {}
    for network in sorted(found, key=lambda n: (-n.group.order, n.seed)):
        first.setdefault(network.activation, network)
    return sorted(first.values(), key=lambda n: n.activation)


def _words(network: Network) -> str:
    return "ReLU" if network.activation == "relu" else "x²"
