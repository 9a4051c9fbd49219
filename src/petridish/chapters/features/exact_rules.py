"""Rules about constructions of TH Ch. 7, which are built and measured: no runs take part."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from petridish.rules.claims import Finding, Judgement, Simulated

Floats = NDArray[np.float64]


def _checked(worst: float, tolerance: float, quantity: str, n: int, remark: str) -> Finding:
    judgement = Judgement.SUPPORTED if worst < tolerance else Judgement.CONTRADICTED
    return Finding(judgement, worst, math.nan, math.nan, quantity, n, remark)


@dataclass(frozen=True)
class ConstructionsAttain(Simulated):
    """The networks of Theorems 7.7 to 7.9 have their formula's margin and width.

    The estimate is the largest relative deviation of any input's margin from γ*: the theorem's
    formula, and for the groups of `beyond`, to which no formula applies, the linear programme's.
    For the theorems' own all wrong answers are on the margin too, which is condition C.1; for the
    others those that weigh something. A width that is not the theorem's counts as 1.
    """

    moduli: tuple[int, ...]
    parities: tuple[tuple[int, int], ...]
    groups: tuple[str, ...]
    beyond: tuple[str, ...]
    tolerance: float = 1e-6

    def simulate(self, level: float) -> Finding:
        """Build them, and take the margins over all inputs."""
        from petridish.groups import cyclic, find_group, real_irreps
        from petridish.theory.features import margin_networks as built
        from petridish.theory.features import margins as theory

        found: list[float] = []

        def compare(network: built.Neurons, inputs: built.Inputs, best: float, width: int) -> None:
            off = np.abs(built.margins(network, *inputs) / best - 1).max()
            found.append(float(off) if network.width == width else 1.0)

        for p in self.moduli:
            pairs, best = built.all_pairs(cyclic(p)), theory.modular_margin(p)
            compare(built.modular_network(p), pairs, best, 4 * (p - 1))
        for n, k in self.parities:
            bits, best = built.all_bits(n, k), theory.parity_margin(k)
            compare(built.parity_network(n, k), bits, best, 2 ** (k - 1))
        for group in map(find_group, self.groups):
            width = 2 * sum(irrep.dimension**3 for irrep in real_irreps(group)[1:])
            pairs, best = built.all_pairs(group), theory.theorem_margin(group)
            compare(built.group_network(group), pairs, best, width)
        for group in map(find_group, self.beyond):
            known = theory.group_margin(group)
            margins = built.margins(built.group_network(group), *built.all_pairs(group))
            on_it = margins.min(axis=1) / known.margin - 1
            found.append(float(np.abs(on_it).max()))
        return _checked(
            max(found),
            self.tolerance,
            "largest relative deviation of an input's margin from γ*",
            len(found),
            f"p = {', '.join(map(str, self.moduli))}; (n, k) = "
            f"{', '.join(f'({n}, {k})' for n, k in self.parities)}; {', '.join(self.groups)}; "
            f"beyond Theorem 7.9: {', '.join(self.beyond)}",
        )


@dataclass(frozen=True)
class NoNeuronBeats(Simulated):
    """No network has a larger margin than γ*: its best single neuron has γ* on average.

    The mean margin is a sum over neurons, so that the best neuron of norm 1 bounds every network
    [TH Lemmas 7.3 to 7.6]. It is found by climbing from random starts; the estimate is the largest
    relative deviation of its mean from γ*.
    """

    parities: tuple[tuple[int, int], ...]
    groups: tuple[str, ...]
    tolerance: float = 1e-6

    def simulate(self, level: float) -> Finding:
        """Climb, and compare."""
        from petridish.groups import find_group
        from petridish.theory.features import certificates, margin_networks, margins

        found = []
        for n, k in self.parities:
            x, y = margin_networks.all_bits(n, k)
            even = certificates.even_weights(y, 2)
            best = certificates.best_neuron(x, y, even, power=k)
            mean = certificates.neuron_means(best, x, y, even)[0]
            found.append(abs(mean / margins.parity_margin(k) - 1))
        for group in map(find_group, self.groups):
            x, y = margin_networks.all_pairs(group)
            known = margins.group_margin(group)
            weights = certificates.class_weights(group, known.weights)
            best = certificates.best_neuron(x, y, weights, power=2)
            mean = certificates.neuron_means(best, x, y, weights)[0]
            found.append(abs(mean / known.margin - 1))
        return _checked(
            float(max(found)),
            self.tolerance,
            "largest relative deviation of the best neuron's mean margin from γ*",
            len(found),
            f"(n, k) = {', '.join(f'({n}, {k})' for n, k in self.parities)}; "
            f"{', '.join(self.groups)}",
        )


def dense_ratio(p: int) -> float:
    """Return γ/γ* of the network of §D.4 for addition modulo p, its layers in the best balance.

    It stores each pair in two neurons of the sizes 1, 1 and ¼. With inputs α times as large and
    outputs α^-2 times, it computes the same; its norm is least where 2α² + α^-4/16 is.
    """
    from petridish.groups import cyclic
    from petridish.theory.features import margin_networks as built
    from petridish.theory.features.margins import modular_margin

    dense, scale = built.memorising_network(cyclic(p).table), 16 ** (-1 / 6)
    balanced = built.Neurons(dense.inputs * scale, dense.outputs / scale**2)
    return float(built.margins(balanced, *built.all_pairs(cyclic(p))).min() / modular_margin(p))


@dataclass(frozen=True)
class DenseFallsShort(Simulated):
    """The network of §D.4 is right everywhere, dense in frequencies, and has a smaller margin.

    The estimate is its largest γ/γ*, or 1 where it is wrong somewhere or a weight vector has more
    power in one frequency than in another.
    """

    moduli: tuple[int, ...]

    def simulate(self, level: float) -> Finding:
        """Build them, and take the margins over all inputs."""
        from petridish.groups import cyclic
        from petridish.theory.features import margin_networks as built

        def ratio(p: int) -> float:
            dense = built.memorising_network(cyclic(p).table)
            parts = dense.inputs[:, :p], dense.inputs[:, p:], dense.outputs
            powers = np.concatenate([np.abs(np.fft.fft(part)) ** 2 for part in parts])
            flat = np.allclose(powers, powers[:, :1])
            right = built.margins(dense, *built.all_pairs(cyclic(p))).min() > 0
            return dense_ratio(p) if flat and right else 1.0

        ratios = [ratio(p) for p in self.moduli]
        said = "; ".join(f"p = {p}: {r:.3f}" for p, r in zip(self.moduli, ratios, strict=True))
        return _checked(max(ratios), 1.0, "largest γ/γ*", len(ratios), said)
