"""What TH Chapter 4 proves, checked by building it: no runs take part."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, nearest
from petridish.rules.claims import Finding, Judgement, Simulated
from petridish.theory.variables.constructions import Embeddings

Floats = NDArray[np.float64]
LENGTH, SUPPORT = 7, (1, 4, 5)  # all 128 strings, three relevant bits


@dataclass(frozen=True)
class Checked:
    """A number that must not exceed a limit, how often it was looked at, and what it is."""

    worst: float
    limit: float
    quantity: str
    n: int
    remark: str


@dataclass(frozen=True)
class Check(Simulated):
    """One of the checks below, by its name."""

    what: str

    def __post_init__(self) -> None:
        if self.what not in CHECKS:
            raise UserError(
                f"Check: there is no check called {self.what!r}. {nearest(self.what, CHECKS)}"
            )

    def simulate(self, level: float) -> Finding:
        """Build, and compare."""
        found = CHECKS[self.what]()
        judgement = Judgement.SUPPORTED if found.worst <= found.limit else Judgement.CONTRADICTED
        nan = math.nan
        return Finding(judgement, found.worst, nan, nan, found.quantity, found.n, found.remark)


def exact_functions() -> Checked:
    """Build every symmetric function by one head, every one by s heads or a bag, on all strings."""
    from petridish.theory.variables import constructions as built
    from petridish.theory.variables.readouts import any_readout, symmetric_readout

    rng = np.random.default_rng(0)
    bits = np.array(list(itertools.product((0, 1), repeat=LENGTH)))
    codes = np.array(list(itertools.product((0, 1), repeat=3)))
    chosen = bits[:, list(SUPPORT)]
    r, place = chosen.sum(axis=1), chosen @ (4, 2, 1)
    means, bags = 2 * np.arange(4) / 3 - 1, (np.arange(4) - 3) / (np.arange(4) + 1)
    bag_codes = (codes - 1) / (codes.sum(axis=1) + 1)[:, None]
    fixed = built.embeddings(LENGTH, 60, rng)
    trained = built.chosen_positions(fixed, SUPPORT)
    own = _own_positions(fixed)
    worst, n = 0.0, 0

    def compare(found: Floats, wanted: NDArray[np.int64]) -> None:
        nonlocal worst, n
        worst, n = max(worst, float(np.abs(found - wanted).max())), n + 1

    one = {
        "fixed": built.mean_head(fixed, SUPPORT)(built.tokens_of(fixed, bits), fixed.cls),
        "trained": built.mean_head(trained, SUPPORT)(built.tokens_of(trained, bits), trained.cls),
        "bag": built.bag_head(fixed, SUPPORT, output="sum")(built.bag_of(fixed, bits), fixed.cls),
    }
    several = {
        name: np.sum(
            [
                head(built.tokens_of(given, bits), given.cls)
                for head in built.bit_heads(given, SUPPORT)
            ],
            axis=0,
        )
        for name, given in (("fixed", fixed), ("trained", own))
    }
    several["bag"] = built.bag_head(fixed, SUPPORT)(built.bag_of(fixed, bits), fixed.cls)
    for values in itertools.product((0, 1), repeat=4):
        for name, out in one.items():
            points, gamma = (bags, 1 / 3) if name == "bag" else (means, 2 / 3)
            readout = symmetric_readout(points, values, gamma)
            compare(readout(out[:, :1]), np.array(values)[r])
    for table in range(256):
        values_of = (table >> np.arange(8)) & 1
        for name, out in several.items():
            points, gamma = (bag_codes, 1 / 3) if name == "bag" else (2.0 * codes - 1, 2.0)
            compare(any_readout(points, values_of, gamma)(out[:, :3]), values_of[place])
    return Checked(
        worst,
        1e-6,
        "largest error of any of 16 symmetric functions and 256 tables on 128 strings",
        n,
        "fixed, trained and no positions; one head, s heads, one head on a bag of vectors",
    )


def _own_positions(given: Embeddings) -> Embeddings:
    """Return trained positions of several heads: a vector for each of I and 0 elsewhere."""
    positions = np.zeros_like(given.positions)
    for order, i in enumerate(SUPPORT):
        positions[i, 3 + order] = 1.0
    return Embeddings(positions, given.tokens, given.cls)


def approximations() -> Checked:
    """Compare the worst string of T = 7, 100, 500 and 1000 bits with the γ/4 allowed."""
    from petridish.theory.variables import adversary
    from petridish.theory.variables import constructions as built

    found = []
    for length, d in ((LENGTH, 60), (100, 300), (500, 300), (1000, 600)):
        given = built.embeddings(length, d, np.random.default_rng(length))
        mean = built.mean_head(given, SUPPORT)
        found.append(adversary.worst_mean_error(mean, given, SUPPORT) / (2 / 3 / 4))
        bag = built.bag_head(given, SUPPORT, output="sum")
        found.append(adversary.worst_bag_error(bag, given, SUPPORT) / (1 / 3 / 4))
    return Checked(
        max(found),
        1.0,
        "largest error over the γ/4 that Lemmas A.19 and A.21 allow",
        len(found),
        "worst strings found exactly; random directions as positions",
    )


def norms() -> Checked:
    """Compare the norms of the repaired heads with those of the statements, Δ = 0."""
    from petridish.theory.variables import constructions as built

    s, found = len(SUPPORT), {}
    for length in (20, 200):
        given = built.embeddings(length, length + 3)
        rate, bag_rate = math.log(8 * length / (2 / s)), math.log(8 * length * s / (1 / s))
        bounds = {
            "A.19": (built.mean_head(given, SUPPORT), (rate, s, 2, 1)),
            "A.19, a head of s": (built.bit_heads(given, SUPPORT)[0], (rate, 1, 2, 1)),
            "A.21": (
                built.bag_head(given, SUPPORT, output="sum"),
                (bag_rate, s + 1, 2 * s, s),
            ),
        }
        for name, (head, limits) in bounds.items():
            for (matrix, norm), limit in zip(head.norms.items(), limits, strict=True):
                found[f"{matrix} of {name} at T = {length}"] = norm / limit
    largest = max(found, key=lambda name: found[name])
    return Checked(
        found[largest],
        1.0 + 1e-9,
        "largest norm over its bound",
        len(found),
        f"{largest}; ‖W_K‖ = √s ≤ s cannot fail",
    )


def printed_failures() -> Checked:
    """Count the printed places that hold, of six that are said to fail."""
    from petridish.theory.variables import adversary
    from petridish.theory.variables import constructions as built
    from petridish.theory.variables.readouts import exact_near

    means, gamma = 2 * np.arange(4) / 3 - 1, 2 / 3
    errors = []
    for seed in range(10):
        given = built.embeddings(50, 600, np.random.default_rng(seed))
        head = built.mean_head(given, SUPPORT, key="sum")
        errors.append(adversary.worst_mean_error(head, given, SUPPORT))
    known = means[:, None] + np.linspace(-1, 1, 41) * gamma / 4
    narrow = exact_near(means[:, None], np.arange(4.0), gamma / 8)(known[..., None])
    x = np.linspace(0, 2, 9)
    bump = _ramp(x) - _ramp(2 - x)
    tokens = np.eye(4)[:2]
    value = np.outer(tokens[0] - tokens[1], np.eye(3)[1])  # e_2
    falling = [sum(1 if bit == 0 else -1 for bit in bits) for bits in ((0, 0), (0, 1), (1, 1))]
    # With R = log(8T/γ)/(1 − sΔ) the proof's 2T/exp(R − 2RsΔ) is above γ/4 wherever Δ > 0.
    delta, s, t = 0.1, 3, 50
    rate = math.log(8 * t / gamma) / (1 - s * delta)
    fails = {
        "A.19's key Σ v_i, near-orthogonal": float(np.median(errors)) > gamma / 4,
        "A.19's 1 − sΔ": 2 * t / math.exp(rate - 2 * rate * s * delta) > gamma / 4,
        "A.19's direction": falling == sorted(falling, reverse=True),
        "A.19's e_2 and e_1": not (value @ np.outer(np.eye(3)[0], np.eye(4)[0])).any(),
        "A.22's γ/8": bool((np.abs(narrow - np.arange(4.0)[:, None]) > 1e-6).any()),
        "A.25's bump": not bump.any(),
    }
    holds = [name for name, failed in fails.items() if not failed]
    return Checked(
        float(len(holds)),
        0.0,
        "printed places that hold, of those said to fail",
        len(fails),
        "; ".join(fails),
    )


def _ramp(x: Floats) -> Floats:
    found: Floats = np.maximum(x + 1, 0) - np.maximum(x, 0)
    return found


def lipschitz() -> Checked:
    """Compare how far random networks move with what the lemmas allow."""
    from petridish.theory.variables.lipschitz import RATIOS

    found, trials = {}, 300
    for name, ratio in RATIOS.items():
        rng = np.random.default_rng(0)
        found[name] = max(ratio(rng) for _ in range(trials))
    told = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
    quantity = "largest movement over its bound"
    return Checked(max(found.values()), 1 + 1e-9, quantity, trials * len(found), told)


def vacuous() -> Checked:
    """Count the decades by which the implied sample is beyond the text's 70 at T = 300."""
    from petridish.theory.variables.bounds import implied_sample

    implied = {length: implied_sample(length) for length in (30, 300)}
    decades = math.log10(implied[300] / 70)
    told = ", ".join(f"m = {m:.2g} at T = {length}" for length, m in implied.items())
    return Checked(
        -decades,
        0.0,
        "log₁₀ of 70 over the sample that Cor. 4.9 asks for, at T = 300",
        len(implied),
        f"{told}; vacuous by {decades:.1f} decades, with a gap of ½ and a Lipschitz constant of 1",
    )


def influence() -> Checked:
    """Fit the exponents of a token's influence at constant norms and at norms of log T."""
    from petridish.theory.variables.constructions import influence as moves

    lengths = np.array([1e3, 1e4, 1e5])
    ranks = np.log(lengths)
    constant = [math.log(moves(int(length), 3, 2.0)) for length in lengths]
    growing = [math.log(moves(int(length), 3, math.log(length))) for length in lengths]
    slopes = [float(np.polyfit(ranks, heights, 1)[0]) for heights in (constant, growing)]
    return Checked(
        max(abs(slopes[0] + 1), abs(slopes[1])),
        0.02,
        "largest distance of the exponents of T from −1 and 0",
        2 * len(lengths),
        f"exponents {slopes[0]:.3f} at R = 2 and {slopes[1]:.3f} at R = log T",
    )


def symbols() -> Checked:
    """Build all functions of two of four places with M = 3 symbols, on 81 strings [TH A.2.4]."""
    from petridish.theory.variables import constructions as built
    from petridish.theory.variables.readouts import any_readout

    count, places = 3, (1, 3)
    given = built.embeddings(4, 40, np.random.default_rng(0), symbols=count)
    words = np.array(list(itertools.product(range(count), repeat=4)))
    heads = built.bit_heads(given, places, gamma=1.0)
    out = np.sum([head(built.tokens_of(given, words), given.cls) for head in heads], axis=0)
    codes = np.array(list(itertools.product(np.linspace(-1, 1, count), repeat=2)))
    place, worst = words[:, 1] * count + words[:, 3], 0.0
    for table in range(2**9):
        values = (table >> np.arange(9)) & 1
        found = any_readout(codes, values, 1.0)(out[:, :2])
        worst = max(worst, float(np.abs(found - values[place]).max()))
    return Checked(worst, 1e-6, "largest error of any of 512 functions", 512, "M = 3, s = 2")


def shattering() -> Checked:
    """Count the ways of sorting sequences that no head has, up to T = 256 [TH Prop. 4.8]."""
    from petridish.theory.variables.shattering import selecting_outputs, shattered_sequences

    lengths, missing = (2, 4, 16, 64, 256), 0
    for length in lengths:
        x = shattered_sequences(length)
        sides = {tuple(selecting_outputs(x, place) > 0.5) for place in range(length)}
        missing += 2 ** len(x) - len(sides)
    told = f"T = {', '.join(map(str, lengths))}"
    return Checked(float(missing), 0.0, "ways of sorting that no head has", sum(lengths), told)


CHECKS: dict[str, Callable[[], Checked]] = {
    "exact functions": exact_functions,
    "approximations": approximations,
    "norms": norms,
    "printed failures": printed_failures,
    "lipschitz": lipschitz,
    "vacuous": vacuous,
    "influence": influence,
    "symbols": symbols,
    "shattering": shattering,
}
