"""FE: what is read off trained networks, and the rules, on networks whose weights are known."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.chapters.features import figures as drawings
from petridish.chapters.features.exact_rules import (
    ConstructionsAttain,
    DenseFallsShort,
    NoNeuronBeats,
    dense_ratio,
)
from petridish.chapters.features.feature_rules import (
    EveryFeature,
    FeatureNorms,
    LeavesOut,
    NearUniform,
    OrderedByDimension,
)
from petridish.chapters.features.group_margins import BEYOND, GROUPS
from petridish.chapters.features.neurons import (
    ONE_FEATURE,
    dimensions,
    regularised_shares,
    theory_shares,
)
from petridish.chapters.features.rules import (
    NeuronsShare,
    OfGroups,
    OnTheMargin,
    PowerNear,
    ReachesMargin,
    TrainedBeatDense,
)
from petridish.chapters.features.stored_networks import NO_WEIGHTS, networks, starts
from petridish.chapters.features.summaries import (
    conditions,
    feature_table,
    margin_table,
    neuron_table,
)
from petridish.chapters.features.trainings import whole
from petridish.figures.style import NothingToDraw
from petridish.groups import cyclic, find_group
from petridish.models import Homogeneous
from petridish.rules.claims import Judgement
from petridish.tasks import GroupProduct, SparseParity
from petridish.theory.features.margin_networks import (
    Neurons,
    group_network,
    memorising_network,
    modular_network,
    parity_network,
)
from petridish.training import NeuronNorm
from petridish.training.data import initial_weights
from tests.cell_tables import with_cells
from tests.conftest import Command, SmokeStore, copy_runs
from tests.margin_worlds import blurred, row, table_of

SUPPORTED, CONTRADICTED, UNDECIDED = (
    Judgement.SUPPORTED,
    Judgement.CONTRADICTED,
    Judgement.UNDECIDED,
)
LEVEL = 0.01
ADDITION = [row(modular_network(7), group="Z7", seed=seed) for seed in range(3)]
PARITY = [row(parity_network(6, 4), n=6, k=4, support=[0, 1, 2, 3], seed=seed) for seed in range(3)]
GROUP = [row(group_network(find_group("S4")), group="S4", seed=seed) for seed in range(3)]
DENSE = [row(memorising_network(cyclic(7).table), group="Z7", seed=seed) for seed in range(3)]


def noisy(rows: list[dict[str, Any]], network: Neurons, share: float) -> pl.DataFrame:
    """Put blurred copies of a network in the place of the rows' own."""
    found = []
    for seed, given in enumerate(rows):
        new = blurred(network, share, seed)
        weights = [new.inputs.ravel().tolist(), new.outputs.T.ravel().tolist()]
        found.append(given | {"weights": weights})
    return table_of(*found)


def test_constructions_have_every_trait_of_their_theorem() -> None:
    """Theorem 7.7's, 7.8's and 7.9's networks are what the rules look for."""
    addition, parity, group = (table_of(*rows) for rows in (ADDITION, PARITY, GROUP))
    for rule, table in (
        (NeuronsShare("one feature"), addition),
        (NeuronsShare("phases"), addition),
        (NeuronsShare("amplitudes"), addition),
        (EveryFeature(), addition),
        (FeatureNorms(), addition),
        (OnTheMargin(), addition),
        (NearUniform(), addition),
        (ReachesMargin(), addition),
        (TrainedBeatDense(), addition),
        (NeuronsShare("support"), parity),
        (NeuronsShare("sizes"), parity),
        (NeuronsShare("signs"), parity),
        (ReachesMargin(), parity),
        (OnTheMargin(), parity),
        (NeuronsShare("one feature"), group),
        (EveryFeature(), group),
        (FeatureNorms(), group),
        (OnTheMargin(), group),
        (OrderedByDimension(), group),
        (ReachesMargin(), group),
    ):
        assert rule.judge(table, LEVEL).judgement is SUPPORTED, rule


def test_blurred_constructions_lose_their_traits() -> None:
    """Weights with as much noise as signal are of no one feature, phase, support, size."""
    addition = noisy(ADDITION, modular_network(7), 1.0)
    parity = noisy(PARITY, parity_network(6, 4), 1.0)
    good = modular_network(7)
    longer = Neurons(good.inputs * np.repeat([1.0, 1.1], 7), good.outputs)  # v by a tenth
    stretched = table_of(*(row(longer, group="Z7", seed=seed) for seed in range(3)))
    for rule, table in (
        (NeuronsShare("one feature"), addition),
        (NeuronsShare("phases"), addition),
        (NeuronsShare("amplitudes"), stretched),
        (OnTheMargin(), addition),
        (OnTheMargin(), parity),
        (NeuronsShare("support"), parity),
        (NeuronsShare("sizes"), parity),
        (NeuronsShare("signs"), parity),
    ):
        assert rule.judge(table, LEVEL).judgement is CONTRADICTED, rule


def test_the_dense_network_has_no_features() -> None:
    """One-hot weights have all frequencies alike: the largest of 0 … 3 has two sevenths."""
    table = table_of(*DENSE)
    finding = PowerNear(0.28, 0.29, activation="power").judge(table, LEVEL)

    for by in ("number", "norm"):
        rule = NeuronsShare("one feature", by=by)
        assert rule.judge(table, LEVEL).judgement is CONTRADICTED
    assert finding.judgement is SUPPORTED
    assert finding.remark == "Z7: 1 (mean 0.286, 0.286 to 0.286)"
    assert PowerNear(0.85, 0.95, activation="power").judge(table, LEVEL).judgement is CONTRADICTED


def test_neurons_around_a_value_are_not_those_that_have_it_on_average() -> None:
    """Half of the powers at 0.8 and half at 1 have a mean of 0.9, and none is near it."""
    angle = 2 * np.pi * np.arange(7) / 7
    pure = np.cos(angle)
    mixed = math.sqrt(0.8) * np.cos(angle) + math.sqrt(0.2) * np.cos(2 * angle)
    neurons = Neurons(np.array([[*u, *u] for u in (pure, mixed)]), np.array([pure, pure]))
    rows = [row(neurons, group="Z7", relu=True, seed=seed) for seed in range(3)]
    finding = PowerNear(0.85, 0.95).judge(table_of(*rows), LEVEL)

    assert finding.judgement is CONTRADICTED
    assert finding.remark == "Z7, ReLU: 0 (mean 0.900, 0.802 to 0.998)"


def test_a_margin_is_judged_on_the_weakest_task() -> None:
    """One task below the bound contradicts; the remark names each, and what it still gains."""
    far = [row(modular_network(5), group="Z5", seed=seed, ratio=0.7) for seed in range(3)]
    finding = ReachesMargin().judge(table_of(*ADDITION, *far), LEVEL)

    assert finding.judgement is CONTRADICTED
    assert finding.estimate == pytest.approx(0.7)
    assert finding.remark == (
        "Z5: 0.7 (+0.01 in the last tenth); Z7: 0.99 (+0.01 in the last tenth)"
    )
    assert finding.n == 6


def test_a_margin_is_held_against_what_its_regulariser_allows() -> None:
    """On S4 a λ of 10^-7 allows 0.946; modulo a prime and on parities λ takes nothing."""
    rows = [
        row(group_network(find_group("S4")), group="S4", seed=seed, ratio=0.93, strength=1e-7)
        for seed in range(3)
    ]
    finding = ReachesMargin().judge(table_of(*rows), LEVEL)

    assert finding.remark == "S4: 0.93 (+0.01 in the last tenth, λ allows 0.946)"
    for known in (ADDITION[0], PARITY[0]):
        assert networks(table_of(known))[0].allowed == pytest.approx(1)
    (other,) = networks(table_of(ADDITION[0] | {"training.penalty.power": 2.0}))
    assert math.isnan(other.allowed)


def test_another_exponent_allows_another_margin() -> None:
    """On S4 λ ‖θ‖ of λ = 10^-7 allows 0.966 where λ ‖θ‖³ allows 0.946."""
    power = {"training.penalty": "norm_power", "training.penalty.exponent": 1.0}
    (network,) = networks(table_of(GROUP[0] | {"training.penalty.strength": 1e-7} | power))

    assert (network.exponent, network.strength) == (1.0, 1e-7)
    assert network.allowed == pytest.approx(0.9656, abs=1e-4)
    assert regularised_shares(network)[1] == pytest.approx(0.039, abs=1e-3)


def test_two_runs_decide_nothing() -> None:
    """Two runs do not say how far runs differ, and the remark says so."""
    finding = ReachesMargin().judge(table_of(*ADDITION[:2]), LEVEL)

    assert finding.judgement is UNDECIDED
    assert finding.remark == "Z7: 0.99 (+0.01 in the last tenth), 2 of 3 runs"
    assert math.isnan(finding.low)


def test_runs_that_differ_widen_the_interval() -> None:
    """Ratios of 0.85, 0.99 and 0.99 leave 0.9 undecided; the interval does not pass 1."""
    rows = [
        row(modular_network(7), group="Z7", seed=s, ratio=(0.85, 0.99, 0.99)[s]) for s in (0, 1, 2)
    ]
    finding = ReachesMargin().judge(table_of(*rows), LEVEL)

    assert finding.judgement is UNDECIDED
    assert finding.high == 1


def test_tables_without_weights_say_what_to_do() -> None:
    """Every rule on runs says that there is nothing, and how to get it."""
    bare = table_of(*ADDITION).drop("weights")
    for rule in (
        ReachesMargin(),
        NeuronsShare("phases"),
        PowerNear(0.85, 0.95),
        EveryFeature(),
        FeatureNorms(),
        LeavesOut(),
        NearUniform(),
        OnTheMargin(),
        OrderedByDimension(),
        TrainedBeatDense(),
    ):
        finding = rule.judge(bare, LEVEL)
        assert (finding.judgement, finding.n, finding.remark) == (UNDECIDED, 0, NO_WEIGHTS)


def test_a_missing_frequency_is_noticed() -> None:
    """Without the neurons of frequency 2, a feature has none, and the spread is uneven."""
    full = modular_network(7)
    part = Neurons(
        np.delete(full.inputs, slice(8, 16), axis=0), np.delete(full.outputs, slice(8, 16), axis=0)
    )
    table = table_of(*(row(part, group="Z7", seed=seed) for seed in range(3)))

    for rule in (EveryFeature(), FeatureNorms()):
        assert rule.judge(table, LEVEL).judgement is CONTRADICTED
    assert EveryFeature().judge(table, LEVEL).remark == (
        "Z7: 0.667 (fewest neurons: 0, 0 large; least share of the norm: 0)"
    )
    assert NearUniform().judge(table, LEVEL).estimate == pytest.approx(2 / 3)
    assert NearUniform().judge(table, LEVEL).judgement is CONTRADICTED


def test_one_small_neuron_is_a_neuron() -> None:
    """A frequency with one small neuron has a neuron, as the theorem asks, and next to no norm."""
    full = modular_network(7)
    size = np.ones((24, 1))
    size[8:16] = 1e-9
    size[8] = 0.05
    small = Neurons(full.inputs * size, full.outputs * size)
    table = table_of(*(row(small, group="Z7", seed=seed) for seed in range(3)))
    (network, *_) = networks(table)

    assert network.counts.tolist() == [0, 8, 8, 8]
    assert network.large_counts.tolist() == [0, 8, 0, 8]
    assert EveryFeature().judge(table, LEVEL).judgement is SUPPORTED
    assert FeatureNorms().judge(table, LEVEL).judgement is CONTRADICTED
    assert NearUniform().judge(table, LEVEL).remark == "Z7: 1 (large ones 0.667)"


def test_relu_networks_have_every_frequency_too() -> None:
    """Asked of any activation, a ReLU network that lacks one contradicts [TH Fig. D.1a]."""
    full = modular_network(7)
    part = Neurons(full.inputs[:16], full.outputs[:16])
    whole_ones, parts = (
        [row(network, group="Z7", relu=True, seed=seed) for seed in range(3)]
        for network in (full, part)
    )

    rule = EveryFeature(activation=None)
    assert rule.judge(table_of(*whole_ones), LEVEL).judgement is SUPPORTED
    assert rule.judge(table_of(*parts), LEVEL).judgement is CONTRADICTED
    assert EveryFeature().judge(table_of(*parts), LEVEL).n == 0


def test_a_representation_that_is_left_out() -> None:
    """A5's construction has nothing in dimension 5; one with shares of Theorem 7.9 has much."""
    group = find_group("A5")
    sizes = np.array([1, 3, 3, 4, 5]) ** 2.5 * (np.arange(5) > 0)
    for network, judgement, there in (
        (group_network(group), SUPPORTED, 0),
        (group_network(group, sizes / sizes.sum()), CONTRADICTED, 250),
    ):
        table = table_of(*(row(network, group="A5", seed=seed) for seed in range(3)))
        finding = LeavesOut().judge(table, LEVEL)
        assert finding.judgement is judgement
        assert f"({there} of {network.width} neurons" in finding.remark
        assert finding.remark.endswith("nearest to it at the start)")
    assert LeavesOut().judge(table_of(*GROUP), LEVEL).remark == (
        "none of these runs is on a group of which a maximum margin leaves a representation out"
    )


def test_small_neurons_are_not_large() -> None:
    """A neuron with a millionth of the norm is not; one with a twentieth is."""
    full = modular_network(7)
    size = np.linalg.norm(np.concatenate([full.inputs, full.outputs], axis=1), axis=1)[0]
    odd_in, odd_out = np.ones((1, 14)), np.zeros((1, 7))
    for scale, counted in ((0.01, False), (1.1, True)):
        odd = scale * size / math.sqrt(14)
        both = Neurons(
            np.concatenate([full.inputs, odd * odd_in]), np.concatenate([full.outputs, odd_out])
        )
        (network,) = networks(table_of(row(both, group="Z7")))
        assert network.large[-1] == counted
        assert network.large[:-1].all()


def test_counts_of_representations_follow_the_dimension() -> None:
    """S4's construction has 2d³ neurons for each; one with as many for each is in no order."""
    (network,) = networks(table_of(GROUP[0]))
    assert np.bincount(network.home).tolist() == [0, 2, 16, 54, 54]
    assert network.counts.tolist() == [0, 2, 16, 54, 54]
    assert network.large_counts.sum() == 125  # a hundredth of the norm is one or two of the 126
    assert np.allclose(network.norm_shares, theory_shares(network.group))
    assert dimensions(network.group).tolist() == [1, 1, 2, 3, 3]
    few = np.concatenate([np.flatnonzero(network.home == place)[:2] for place in range(1, 5)])
    level = Neurons(network.inputs[few], network.outputs[few])
    flat = table_of(*(row(level, group="S4", seed=seed) for seed in range(3)))

    assert OrderedByDimension().judge(flat, LEVEL).judgement is CONTRADICTED
    assert OrderedByDimension().judge(flat, LEVEL).remark == (
        "S4: 0 (0 of 5 pairs; large neurons 0, norm 0)"
    )
    # All representations of a modular group but the trivial one have two dimensions.
    assert OrderedByDimension().judge(table_of(*ADDITION), LEVEL).remark == (
        "none of these runs is on a group with representations of several dimensions"
    )


def test_what_is_said_of_a_group_with_few_runs_leaves_the_others_judged() -> None:
    """One network on S3 leaves «on S3» undecided; what is said of S4 is decided, by S4 alone."""
    few = row(group_network(find_group("S3")), group="S3", seed=0)
    table, rule = table_of(*GROUP, few), OrderedByDimension()
    apart = {
        "both": rule.judge(table, LEVEL),
        "S3": OfGroups(rule, only=("S3",)).judge(table, LEVEL),
        "others": OfGroups(rule, but=("S3",)).judge(table, LEVEL),
    }

    assert [(f.judgement, f.n) for f in apart.values()] == [
        (UNDECIDED, 4),
        (UNDECIDED, 1),
        (SUPPORTED, 3),
    ]
    assert apart["S3"].remark.endswith(", 1 of 3 runs")
    assert apart["others"] == rule.judge(table_of(*GROUP), LEVEL)
    nowhere = OfGroups(rule, only=("S5",)).judge(table, LEVEL)
    assert (nowhere.n, nowhere.remark) == (0, "none of these runs is on S5")
    alone = OfGroups(rule, but=("S4",)).judge(table_of(*GROUP), LEVEL)
    assert (alone.n, alone.remark) == (0, "none of these runs is on another group than S4")


@pytest.mark.parametrize(("p", "frequencies"), [(7, 3), (6, 3), (8, 4)])
def test_the_theorys_shares_are_even_over_frequencies(p: int, frequencies: int) -> None:
    """Theorem 7.7 treats all alike; for an even p the last one has one dimension, and less."""
    shares = theory_shares(cyclic(p))

    assert shares[0] == 0
    assert shares.sum() == pytest.approx(1)
    assert len(shares) == frequencies + 1
    if p % 2:
        assert np.allclose(shares[1:], 1 / frequencies)


def test_phases_are_those_of_the_construction(seed: int) -> None:
    """A wave shifted in w alone misses the relation by its shift."""
    p, shift = 11, 0.3
    angle = 2 * np.pi * 4 * np.arange(p) / p
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-np.pi, np.pi, 2)
    waves = [np.cos(phase + angle) for phase in (u, v, u + v - shift)]
    neuron = Neurons(np.concatenate(waves[:2])[None], waves[2][None])
    (network,) = networks(table_of(row(neuron, group="Z11")))

    assert network.phase_errors[0] == pytest.approx(shift)
    assert network.home.tolist() == [4]


def test_the_signs_of_a_parity_are_checked() -> None:
    """Turning one neuron's outputs around breaks its sign and nothing else."""
    good = parity_network(6, 4)
    outputs = good.outputs.copy()
    outputs[0] *= -1
    (network,) = networks(
        table_of(row(Neurons(good.inputs, outputs, 4), n=6, k=4, support=[0, 1, 2, 3]))
    )

    assert network.has("signs").tolist() == [False] + [True] * 7
    assert network.has("sizes").all()
    assert network.has("support").all()


def test_a_drawn_support_is_the_runs_own(seed: int) -> None:
    """Without a support in the task, S is what the run drew."""
    (network,) = networks(table_of(row(parity_network(6, 4), n=6, k=4, seed=seed)))

    assert np.flatnonzero(network.support).tolist() == sorted(
        SparseParity(6, 4).supports([seed])[0].tolist()
    )


def test_starts_are_drawn_again(seed: int) -> None:
    """The network with which a run began has the weights that the engines draw."""
    sweep = whole(GroupProduct("Z7"), Homogeneous(24), NeuronNorm(), seeds=1, steps=1, every=1)
    spec = replace(sweep.base, seed=seed)
    first, second = initial_weights([spec])
    (network,) = networks(table_of(row(modular_network(7), group="Z7", seed=seed)))
    begun = starts(network)

    assert np.array_equal(begun.inputs, first[0])
    assert np.array_equal(begun.outputs, second[0].T)


def test_tables_for_reading() -> None:
    """Curves by look, features by run, neurons one by one."""
    table = table_of(*ADDITION)
    curves, features, neurons = margin_table(table), feature_table(table), neuron_table(table)

    assert curves["ratio"].to_list()[:3] == [-1.0, 0.98, 0.99]
    assert features.filter(pl.col("seed") == 0)["neurons"].to_list() == [0, 8, 8, 8]
    assert features.filter(pl.col("seed") == 0)["large_neurons"].to_list() == [0, 8, 8, 8]
    assert features["theory_share"].to_list()[:4] == [0.0, 0.33333, 0.33333, 0.33333]
    assert len(neurons) == 3 * 24
    assert neurons["power_w"].to_list() == [1.0] * 72
    assert neuron_table(table_of(*PARITY))["signs"].all()


def test_constructions_attain_and_the_dense_one_falls_short() -> None:
    """FE-4's rules build the networks themselves."""
    exact = ConstructionsAttain((5, 7), ((4, 2),), ("S3",), ("A4",)).judge(pl.DataFrame(), LEVEL)
    best = NoNeuronBeats(((4, 2),), ("S3",)).judge(pl.DataFrame(), LEVEL)
    dense = DenseFallsShort((5, 7)).judge(pl.DataFrame(), LEVEL)

    assert exact.judgement is SUPPORTED
    assert exact.estimate < 1e-12
    assert best.judgement is SUPPORTED
    assert best.estimate < 1e-9
    assert dense.judgement is SUPPORTED
    assert dense.estimate == pytest.approx(dense_ratio(5))
    assert dense_ratio(71) < dense_ratio(5) < 1


def test_the_dense_networks_ratio_by_hand() -> None:
    """Each of 2p² neurons has ‖ω‖² = 3·2^(−4/3), in the best balance; its margin is 1."""
    p = 5
    norm = 2 * p**2 * (3 * 2 ** (-4 / 3)) ** 1.5
    best = math.sqrt(2 / 27) / (math.sqrt(p) * (p - 1))

    assert dense_ratio(p) == pytest.approx(1 / norm / best)


@pytest.mark.parametrize(
    "draw",
    [
        drawings.margin_curves,
        drawings.embeddings,
        drawings.power_histograms,
        drawings.frequency_bars,
        drawings.phase_relation,
        drawings.representations,
        drawings.constructions,
    ],
)
def test_figures_of_groups_say_what_they_show(draw: Any) -> None:
    """Drawn from known networks; without weights there is nothing to draw, and why."""
    relu = [row(modular_network(7), group="Z7", relu=True, seed=seed) for seed in range(2)]
    figure = draw(table_of(*ADDITION, *relu), "FE, title")

    assert figure.get_suptitle() == "FE, title"
    with pytest.raises(NothingToDraw, match="kept its weights"):
        draw(table_of(*ADDITION).drop("weights"), "FE, title")


def test_figures_of_parities_put_the_relevant_bits_first() -> None:
    """The first columns are S, in ±1; the margin has its curve."""
    figure = drawings.parity_neurons(table_of(*PARITY), "FE-2")
    panel = figure.axes[0]
    values = np.asarray(panel.images[0].get_array())

    assert [tick.get_text() for tick in panel.get_xticklabels()][:4] == ["u0", "u1", "u2", "u3"]
    assert np.allclose(np.abs(values[:, :4]), 1)
    assert np.allclose(values[:, 4:6], 0)
    with pytest.raises(NothingToDraw, match="kept its weights"):
        drawings.parity_neurons(table_of(*ADDITION), "FE-2")


def test_untrained_networks_have_none_of_the_traits() -> None:
    """What a start has by chance, the rules do not count: features are those of settled neurons."""
    for group, width in (("Z23", 500), ("S4", 200), ("Q8", 100)):
        order = find_group(group).order
        rows = []
        for seed in range(3):
            zeros = Neurons(np.zeros((width, 2 * order)), np.zeros((width, order)))
            begun = starts(networks(table_of(row(zeros, group=group, seed=seed)))[0])
            rows.append(row(Neurons(begun.inputs, begun.outputs), group=group, seed=seed))
        table = table_of(*rows)
        for rule in (NeuronsShare("one feature"), EveryFeature(), NearUniform()):
            assert rule.judge(table, LEVEL).judgement is not SUPPORTED, (group, rule)
        if group != "Z23":
            assert OrderedByDimension().judge(table, LEVEL).judgement is not SUPPORTED


@pytest.mark.parametrize(("group", "width"), [("Z23", 500), ("Z71", 500), ("S3", 30), ("S4", 200)])
def test_power_is_spread_at_the_start(group: str, width: int, seed: int) -> None:
    """As Figs 7.4a, 7.6c, D.2c and D.3c show: as in a random direction [TH §7.4, §7.6].

    A representation of dimension d has d² of the |G| dimensions and, in the mean over the neurons'
    u, v and w, as large a part of the power, but for four standard errors; a frequency has 2 of p.
    """
    order = find_group(group).order
    zeros = Neurons(np.zeros((width, 2 * order)), np.zeros((width, order)))
    begun = starts(networks(table_of(row(zeros, group=group, seed=seed)))[0])
    shares = begun.spectra / begun.spectra.sum(axis=2, keepdims=True)
    parts = shares.reshape(3 * width, -1)
    sizes = dimensions(find_group(group))
    expected = (sizes if group[0] == "Z" else sizes**2) / order
    error = parts.std(axis=0) / np.sqrt(len(parts))

    assert np.all(np.abs(parts.mean(axis=0) - expected) < 4 * error)
    assert not begun.at_home(ONE_FEATURE).any()


def test_runs_that_differ_in_more_than_their_seed_are_kept_apart() -> None:
    """Two strengths of the regulariser are two tasks, and the label says which."""
    weak = [row(modular_network(7), group="Z7", seed=s, strength=1e-6, ratio=0.5) for s in range(3)]
    finding = ReachesMargin().judge(table_of(*ADDITION, *weak), LEVEL)

    assert finding.remark == (
        "Z7, strength 0.0001: 0.99 (+0.01 in the last tenth); "
        "Z7, strength 1e-06: 0.5 (+0.01 in the last tenth)"
    )
    assert set(margin_table(table_of(*ADDITION, *weak))["task"]) == {
        "Z7, strength 0.0001",
        "Z7, strength 1e-06",
    }


def test_tables_of_ones_own_are_kept_apart() -> None:
    """Two groups of four elements without names are two tasks, drawn and judged by themselves."""
    klein = ((0, 1, 2, 3), (1, 0, 3, 2), (2, 3, 0, 1), (3, 2, 1, 0))
    cycle = ((0, 1, 2, 3), (1, 3, 0, 2), (2, 0, 3, 1), (3, 2, 1, 0))
    rows = [
        row(group_network(GroupProduct(table).structure()), group=table, seed=seed)
        for table in (klein, cycle)
        for seed in range(3)
    ]
    found = with_cells(pl.DataFrame(rows, infer_schema_length=None))
    finding = NeuronsShare("one feature").judge(found, LEVEL)

    assert finding.judgement is SUPPORTED
    labels = re.findall(r"a table of 4, width \d+, group #[0-9a-f]{4}: 1 ", finding.remark)
    assert len(set(labels)) == 2
    drawings.representations(found, "FE-3")


def test_other_runs_in_a_table_are_passed_over() -> None:
    """Other models and tasks are no networks of these; a part of the inputs allows what it does."""
    (one,) = networks(table_of(ADDITION[0], ADDITION[1] | {"model": "mlp(24)"}))
    (part,) = networks(table_of(ADDITION[0] | {"data.m": 40.0}))
    (linear,) = networks(table_of(ADDITION[0] | {"model.activation": "identity"}))

    assert one.seed == 0
    assert math.isnan(part.allowed)
    assert linear.degree == 2
    table = table_of(*PARITY)
    assert NeuronsShare("phases").judge(table, LEVEL).remark == (
        "none of these runs has neurons of which the trait «phases» can be asked"
    )
    assert NeuronsShare("support").judge(table_of(*GROUP), LEVEL).n == 0


def test_starts_follow_the_runs_own_init() -> None:
    """A network that began with equal weights had one feature, the trivial one."""
    (network,) = networks(table_of(ADDITION[0] | {"init": "constant(0.1)"}))

    assert np.allclose(starts(network).shares, 1)


def test_the_line_through_even_groups_meets_the_dots() -> None:
    """The last of an even number of frequencies has no partner, and counts once."""
    rng = np.random.default_rng(0)
    drawn = Neurons(rng.normal(size=(6, 8)), rng.normal(size=(6, 4)))
    figure = drawings.embeddings(table_of(row(drawn, group="Z4")), "FE-1")
    line, dots = figure.axes[0].lines[:2]
    x, y = (np.asarray(values) for values in line.get_data())

    at, values = (np.asarray(found) for found in dots.get_data())
    for place, value in zip(at, values, strict=True):
        assert y[np.argmin(np.abs(x - place))] == pytest.approx(value, abs=1e-9)


def test_even_moduli_have_regularised_shares_of_their_own() -> None:
    """On Z4 the sign has 0.293 at λ = 10^-4, and 0.261 at the maximum margin."""
    (network,) = networks(table_of(row(group_network(cyclic(4)), group="Z4", strength=1e-4)))

    assert regularised_shares(network) == pytest.approx([0, 0.7068, 0.2932], abs=1e-4)
    assert theory_shares(network.group) == pytest.approx([0, 0.7388, 0.2612], abs=1e-4)


def test_the_condition_is_said_before_training() -> None:
    """S5 meets it, A5 does not and leaves a representation out, A4 has one of complex kind."""
    of = {
        name: conditions(
            whole(GroupProduct(name), Homogeneous(4), NeuronNorm(), seeds=1, steps=1, every=1)
        )
        for name in ("S3", "S4", "S5", "A5", "A4")
    }

    for name in ("S3", "S4", "S5"):
        assert of[name] == [f"{name}: Theorem 7.9 applies; its condition holds."]
    assert of["A5"] == [
        "A5: Theorem 7.9 does not apply: its condition fails, with +0.788 for a class. γ* = "
        "0.0004316 is that of a linear programme, which needs no neurons in 5d."
    ]
    assert of["A4"][0].startswith(
        "A4: Theorem 7.9 does not apply: it has representations that are not of real kind. γ* = "
    )
    for experiment in (GROUPS, BEYOND):
        assert experiment.before is conditions


def test_run_prints_the_condition_first(
    inside: Command, smoke_store: SmokeStore, tmp_path: Path
) -> None:
    """Before anything is trained, and not among JSON."""
    copy_runs(smoke_store("FE-3"), tmp_path / "s")
    asked = ("run", "FE-3", "--scale", "smoke", "--store", tmp_path / "s")

    assert inside(*asked).stdout.startswith("S3: Theorem 7.9 applies; its condition holds.\n")
    assert json.loads(inside(*asked, "--json").stdout)["id"] == "FE-3"
