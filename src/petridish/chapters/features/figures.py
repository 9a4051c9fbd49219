"""Figures of features that emerge: margins, embeddings, spectra, phases [TH Fig. 7.1 … D.3]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.features.neurons import TrainedNeurons, regularised_shares, theory_shares
from petridish.chapters.features.stored_networks import NO_WEIGHTS, READ, cells, networks, starts
from petridish.figures.panels import corner, framed
from petridish.figures.style import BLUE, GREY, INK, ORANGE, NothingToDraw, shades
from petridish.groups.spectra import feature_names
from petridish.rules.columns import reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
BINS = np.linspace(0, 1, 41)
SHOWN = 4  # neurons of a network that are drawn one by one
MOST_NEURONS = 20  # rows of a map of neurons


@reads(*READ)
def margin_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw the normalised margin over γ* through training, and what is missing [TH Fig. 7.1c]."""
    found = [network for network in networks(table) if network.watched]
    parts = list(cells(_some(found, f"No margins to draw: {NO_WEIGHTS}.")))
    colours = shades([float(i) for i in range(len(parts))])
    note = (
        "One line per run: the least margin over all inputs, over ‖θ‖_{2,ν}^ν and over the "
        "theorem's maximum. Dotted: what the regulariser allows, where less. At the end on "
        f"average {_ends(parts)}."
    )
    with framed(title, note, (10, 4.2), 1, 2) as (figure, ((whole, missing),)):
        for (label, members), colour in zip(parts, colours.values(), strict=False):
            style: dict[str, Any] = {"color": colour, "lw": 1.1, "alpha": 0.8}
            _margins(whole, members, label=label, **style)
            for network in members:
                missing.plot(network.steps, np.maximum(1 - network.ratios, 1e-9), **style)
        whole.axhline(1, color=ORANGE, lw=1.2, ls="--")
        whole.text(0, 1.015, "γ*", color=ORANGE, ha="left", va="bottom")
        whole.set(ylim=(-0.3, 1.1), ylabel="normalised margin, γ/γ*", xlabel="steps")
        whole.set_title("Towards the maximum", loc="left")
        missing.set(yscale="log", ylabel="1 − γ/γ*", xlabel="steps")
        missing.set_title("What is missing", loc="left")
        if len(parts) <= 6:
            whole.legend(frameon=False, loc="lower right")
        else:
            figure.legend(loc="outside right center", frameon=False)
    return figure


def _margins(
    panel: Any, members: Sequence[TrainedNeurons], label: str | None = None, **style: Any
) -> None:
    """Draw the margins of a task, and what its regulariser allows, where that is less than γ*."""
    if members[0].allowed < 0.9995:
        panel.axhline(members[0].allowed, color=style["color"], lw=0.9, ls=":")
    for network in members:
        panel.plot(network.steps, network.ratios, label=label, **style)
        label = None  # one entry for all of them in a legend


def _ends(parts: Sequence[tuple[str, list[TrainedNeurons]]]) -> str:
    return "; ".join(
        f"{label}: {np.mean([n.ratios[-1] for n in members]):.4f} (n = {len(members)})"
        for label, members in parts
    )


@reads(*READ)
def embeddings(table: pl.DataFrame, title: str) -> Figure:
    """Draw u of some neurons with its spectrum, ReLU beside squares [TH Fig. 7.1a, b]."""
    chosen = _first_of_each(_on_cycles(table))
    note = (
        f"{SHOWN} neurons of the run with seed {chosen[0].seed} in each block. Dots are "
        "weights; the line has the same spectrum over the reals. The number is the maximum "
        "normalised power."
    )
    size, ratios = (5.2 * len(chosen), 6.4), [1.6, 1] * len(chosen)
    with framed(title, note, size, SHOWN, len(ratios), width_ratios=ratios) as (figure, axes):
        for column, network in enumerate(chosen):
            order = np.flatnonzero(network.large)
            # Spread over all sizes of large neurons, not the largest alone.
            places = order[np.linspace(0, len(order) - 1, SHOWN).astype(int)]
            weights, powers = axes[:, 2 * column], axes[:, 2 * column + 1]
            for row, neuron in enumerate(places):
                _embedding(weights[row], powers[row], network, int(neuron))
            weights[0].set_title(f"{_words(network)}: weights u", loc="left")
            powers[0].set_title("power", loc="left")
            weights[-1].set_xlabel("element a")
            powers[-1].set_xlabel("frequency")
    return figure


def _embedding(left: Any, right: Any, network: TrainedNeurons, neuron: int) -> None:
    size = network.group.order
    u = network.inputs[neuron, :size]
    fine = np.arange(0, size - 1 + 1e-9, 0.1)
    terms = np.fft.rfft(u) / size
    waves = np.exp(2j * np.pi * np.outer(fine, np.arange(len(terms))) / size)
    # With an even number of elements the last frequency has no conjugate either.
    doubled = np.where(np.isin(np.arange(len(terms)), (0, size / 2)), 1.0, 2.0)
    left.plot(fine, (waves @ (doubled * terms)).real, color=BLUE, lw=0.8, alpha=0.5)
    left.plot(np.arange(size), u, ".", color=ORANGE, ms=4)
    left.axhline(0, color=GREY, lw=0.5)
    spectrum = network.spectra[0, neuron] / network.spectra[0, neuron].sum()
    right.bar(np.arange(len(spectrum)), spectrum, color=BLUE, width=0.9)
    right.set(ylim=(0, 1.3), yticks=[0, 0.5, 1])
    right.text(0.99, 1.0, f"{spectrum.max():.3f}", ha="right", va="top", transform=right.transAxes)


@reads(*READ)
def power_histograms(table: pl.DataFrame, title: str) -> Figure:
    """Draw maximum normalised powers of u at the start and at the end [TH Fig. 7.4]."""
    parts = list(cells(_on_groups(table)))
    note = (
        "All runs of a task together; 1 is a neuron of one frequency or representation. Grey: "
        "neurons that carry less than 1 % of the norm together."
    )
    size, rows = (7.4, 0.9 + 2.3 * len(parts)), len(parts)
    with framed(title, note, size, rows, 2, sharex=True) as (figure, axes):
        for (label, members), (before, after) in zip(parts, axes, strict=True):
            _histogram(before, [starts(n) for n in members], f"{label}: at the start", every=True)
            _histogram(after, members, f"{label}: at the end")
        for panel in axes[-1]:
            panel.set_xlabel("maximum normalised power of u")
    return figure


def _histogram(
    panel: Any, members: Sequence[TrainedNeurons], title: str, *, every: bool = False
) -> None:
    shares = np.concatenate([network.shares[0] for network in members])
    large = np.concatenate([network.large | every for network in members])
    panel.hist([shares[large], shares[~large]], BINS, color=[BLUE, GREY], stacked=True)
    panel.set(xlim=(0, 1.02), ylabel="neurons")
    panel.set_title(title, loc="left")
    corner(panel, f"mean {shares[large].mean():.3f}", right=False, fontsize=9)


@reads(*READ)
def frequency_bars(table: pl.DataFrame, title: str) -> Figure:
    """Draw how many neurons each frequency has [TH Fig. D.1]."""
    parts = list(cells(_on_cycles(table)))
    note = (
        "Bars: neurons settled in each, mean over runs; dark: those that carry 99 % of the "
        "norm; dots: runs; dashed: evenly spread."
    )
    size, rows = (9, 0.9 + 2.5 * len(parts)), len(parts)
    with framed(title, note, size, rows, 1, sharex=True) as (figure, axes):
        for panel, (label, members) in zip(axes[:, 0], parts, strict=True):
            counts = np.array([network.counts[1:] for network in members])
            places = np.arange(1, counts.shape[1] + 1)
            large = np.mean([network.large_counts[1:] for network in members], axis=0)
            panel.bar(places, counts.mean(axis=0), color=BLUE, width=0.8, alpha=0.4)
            panel.bar(places, large, color=BLUE, width=0.8)
            for row in counts:
                panel.plot(places, row, ".", color=INK, ms=3)
            panel.axhline(counts.mean(), color=ORANGE, lw=1.2, ls="--")
            panel.set_title(f"{label}, {len(members[0].inputs)} neurons", loc="left")
            panel.set_ylabel("neurons")
            panel.xaxis.get_major_locator().set_params(integer=True)
        axes[-1, 0].set_xlabel("frequency ζ")
    return figure


@reads(*READ)
def phase_relation(table: pl.DataFrame, title: str) -> Figure:
    """Draw θ_u + θ_v against θ_w for the neurons of modular addition [TH Theorem 7.7]."""
    chosen = _first_of_each(_on_cycles(table))
    note = (
        f"One dot per neuron at its own frequency, the run with seed {chosen[0].seed}. Theorem "
        "7.7 puts them on the line."
    )
    with framed(title, note, (3.9 * len(chosen) + 0.4, 4.4), 1, len(chosen)) as (figure, (axes,)):
        for panel, network in zip(axes, chosen, strict=True):
            rows = np.flatnonzero(network.large)
            w = np.angle(np.fft.rfft(network.outputs)[rows, network.home[rows]])
            both = w + network.phase_errors[rows]
            panel.plot(w, (both + np.pi) % (2 * np.pi) - np.pi, ".", color=BLUE, ms=3, alpha=0.6)
            panel.plot([-np.pi, np.pi], [-np.pi, np.pi], color=ORANGE, lw=0.8, zorder=0)
            panel.set(aspect="equal", xlabel="θ_w", ylabel="θ_u + θ_v")
            for set_ticks in (panel.set_xticks, panel.set_yticks):
                set_ticks([-np.pi, 0, np.pi], ["−π", "0", "π"])
            panel.set_title(f"{_words(network)}, p = {network.group.order}", loc="left")
    return figure


@reads(*READ)
def parity_neurons(table: pl.DataFrame, title: str) -> Figure:
    """Draw the largest neurons of a network on a sparse parity [TH Fig. 7.5a].

    Over ‖w‖, the weights of neurons that have next to no norm would have the strongest colours of
    all. Those that carry less than 1 % of the norm together are left out, and small ones are pale.
    """
    found = [network for network in networks(table) if not network.on_group]
    network = _some(found, f"No neurons on a parity to draw: {NO_WEIGHTS}.")[0]
    large = int(network.large.sum())
    order = np.argsort(-network.weight)[: min(large, MOST_NEURONS)]
    size = np.linalg.norm(network.outputs[order], axis=1, keepdims=True)
    bits = np.concatenate([np.flatnonzero(network.support), np.flatnonzero(~network.support)])
    values = np.concatenate([network.inputs[order][:, bits], network.outputs[order]], axis=1) / size
    k, n = int(network.support.sum()), len(bits)
    width = len(network.inputs)
    shown = f"all {large}" if len(order) == large else f"the {len(order)} largest"
    note = (
        f"Seed {network.seed}: {large} of {width} neurons carry 99 % of the norm; {shown} of "
        f"them are drawn, pale if small, and the other {width - large} left out. Theorem 7.8: "
        "0 outside S, ±1 inside, w along (1, −1)/√2 with the sign of the product."
    )
    height = 1.7 + 0.23 * max(len(order), 6)
    with framed(title, note, (7.6, height)) as (figure, ((panel,),)):
        pale = np.clip(2 * network.weight[order] / network.weight.max(), 0.1, 1)
        alpha = np.broadcast_to(pale[:, None], values.shape)
        image = panel.imshow(values, cmap="RdBu_r", vmin=-1.2, vmax=1.2, aspect="auto", alpha=alpha)
        names = [f"u{bit}" for bit in bits] + ["w+", "w−"]
        panel.set_xticks(range(len(names)), names)
        panel.set_yticks(range(len(order)), [f"{w:.3f}" for w in network.weight[order]])
        panel.set_ylabel("neuron, by its share of the norm")
        for line in (k - 0.5, n - 0.5):
            panel.axvline(line, color=INK, lw=1.2)
        panel.set_title(f"in S: {k} bits | outside | outputs", loc="left")
        figure.colorbar(image, ax=panel, label="weight / ‖w‖", shrink=0.8)
    return figure


@reads(*READ)
def representations(table: pl.DataFrame, title: str) -> Figure:
    """Draw margin, representations and power of each group [TH Fig. 7.6, D.2, D.3]."""
    parts = list(cells(_on_groups(table)))
    note = (
        f"γ/γ* at the end: {_ends(parts)}; dotted: what the regulariser allows. Neurons: those "
        "settled in each representation, mean over runs; dark: those that carry 99 % of the norm; "
        "dots: runs. Norm: share of ‖θ‖³ in each; lines: at the maximum margin, and, in grey, at "
        "the minimum of the regularised loss."
    )
    with framed(title, note, (16, 0.9 + 2.5 * len(parts)), len(parts), 5) as (figure, axes):
        for row, (label, members) in zip(axes, parts, strict=True):
            _margins(row[0], members, color=BLUE, lw=1)
            row[0].axhline(1, color=ORANGE, lw=1.2, ls="--")
            row[0].set(ylim=(-0.3, 1.1), ylabel="γ/γ*")
            row[0].set_title(f"{label}: normalised margin", loc="left")
            _neuron_bars(row[1], members)
            _norm_bars(row[2], members)
            _histogram(row[3], [starts(n) for n in members], "power at the start", every=True)
            _histogram(row[4], members, "power at the end")
        axes[-1, 0].set_xlabel("steps")
        for panel in axes[-1, 1:3]:
            panel.set_xlabel("representation")
        for panel in axes[-1, 3:]:
            panel.set_xlabel("maximum normalised power of u")
    return figure


def _neuron_bars(panel: Any, members: Sequence[TrainedNeurons]) -> None:
    counts = np.array([network.counts for network in members])
    large = np.mean([network.large_counts for network in members], axis=0)
    places = np.arange(counts.shape[1])
    panel.bar(places, counts.mean(axis=0), color=BLUE, width=0.7, alpha=0.4)
    panel.bar(places, large, color=BLUE, width=0.7)
    for row in counts:
        panel.plot(places, row, ".", color=INK, ms=3)
    _name_features(panel, members[0])
    panel.set_ylabel("neurons")
    panel.set_title("neurons in each", loc="left")


def _norm_bars(panel: Any, members: Sequence[TrainedNeurons]) -> None:
    group = members[0].group
    norms = np.mean([network.norm_shares for network in members], axis=0)
    panel.bar(np.arange(len(norms)), norms, color=BLUE, width=0.7)
    for shares, style in (
        (theory_shares(group), {"color": ORANGE}),
        (regularised_shares(members[0]), {"color": GREY, "ls": (0, (2, 1))}),
    ):
        for place, share in enumerate(shares):
            panel.plot([place - 0.42, place + 0.42], [share] * 2, lw=1.8, **style)
    _name_features(panel, members[0])
    panel.set_ylabel("share of the norm")
    panel.set_title("norm in each", loc="left")


def _name_features(panel: Any, network: TrainedNeurons) -> None:
    names = feature_names(network.group)
    places, few = np.arange(len(names)), len(names) <= 12
    panel.set_xticks(places if few else places[::5], names if few else names[::5])
    if few and len(names) > 5:
        panel.tick_params(axis="x", labelsize=7)


@reads(*READ)
def constructions(table: pl.DataFrame, title: str) -> Figure:
    """Draw γ/γ* of trained networks by p and width, beside the exact ones [TH §D.4, §D.6]."""
    from petridish.chapters.features.exact_rules import dense_ratio

    found = _some(
        [n for n in _on_cycles(table) if n.watched and n.group.order % 2],
        "None of these runs watched its margin on addition modulo an odd p.",
    )
    moduli = sorted({network.group.order for network in found})
    factors = sorted({_factor(network) for network in found})
    colours = shades([float(f) for f in factors])
    note = f"One dot per run (n = {len(found)}); margins are over all p² inputs."
    with framed(title, note, (8.4, 4.6)) as (figure, ((panel,),)):
        for place, factor in enumerate(factors):
            here = [n for n in found if _factor(n) == factor]
            shift = 0.16 * (place - (len(factors) - 1) / 2)
            x = [moduli.index(n.group.order) + shift for n in here]
            style = {"color": colours[factor], "ms": 5, "alpha": 0.8}
            label = f"trained, width {factor:g} × 4(p − 1)"
            panel.plot(x, [n.ratios[-1] for n in here], "o", label=label, **style)
        panel.axhline(1, color=ORANGE, lw=1.6, label="Theorem 7.7's network, 4(p − 1) neurons")
        for place, p in enumerate(moduli):
            named = None if place else "§D.4's dense network, 2p² neurons"
            ends = [place - 0.35, place + 0.35]
            panel.plot(ends, [dense_ratio(p)] * 2, color=INK, lw=1.6, label=named)
        panel.set_xticks(range(len(moduli)), [f"p = {p}" for p in moduli])
        lowest = min(-0.02, *(float(n.ratios[-1]) for n in found))
        panel.set(ylabel="γ/γ*", ylim=(lowest - 0.03, 1.08))
        panel.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _factor(network: TrainedNeurons) -> float:
    return len(network.inputs) / (4 * (network.group.order - 1))


def _some(found: list[TrainedNeurons], otherwise: str) -> list[TrainedNeurons]:
    if not found:
        raise NothingToDraw(otherwise)
    return found


def _on_groups(table: pl.DataFrame) -> list[TrainedNeurons]:
    found = [network for network in networks(table) if network.on_group]
    return _some(found, f"No networks on groups to draw: {NO_WEIGHTS}.")


def _on_cycles(table: pl.DataFrame) -> list[TrainedNeurons]:
    found = [network for network in _on_groups(table) if network.on_cycle]
    return _some(found, "None of these runs is on addition modulo p.")


def _first_of_each(found: Sequence[TrainedNeurons]) -> list[TrainedNeurons]:
    """Return the first run of each activation, on the largest group."""
    first: dict[str, TrainedNeurons] = {}
    for network in sorted(found, key=lambda n: (-n.group.order, n.seed)):
        first.setdefault(network.activation, network)
    return sorted(first.values(), key=lambda n: n.activation)


def _words(network: TrainedNeurons) -> str:
    return "ReLU" if network.activation == "relu" else "x²"
