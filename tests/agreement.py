"""When a number computed here is the one that another processor computed and wrote down.

NumPy, SciPy, BLAS and PyTorch choose their kernels by the processor, and kernels differ in the
order of their sums: the same call returns another last digit elsewhere. Our own C++ kernels promise
the same bits everywhere and are compared exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

# Sums of up to 10^6 terms, fits and linear programmes lose a few digits of float64's sixteen; a
# change of a rule, a seed or a formula shows long before the ninth.
RELATIVE = 1e-9
# A quantity whose exact value is 0 consists of rounding alone, with no relative accuracy. Its rule
# draws the line at 10^-9 or above. A test holds that every number below SMALL that is written down
# is one.
ABSOLUTE = 1e-12
SMALL = 1e-10
ROUNDING = {
    "largest relative deviation of an input's margin from γ*",
    "largest relative deviation of the best neuron's mean margin from γ*",
    "largest error of any of 16 symmetric functions and 256 tables on 128 strings",
    "largest error of any of 512 functions",
}
# What a search with a tolerance of its own finds: `random_effects` ends where the likelihood hardly
# changes, and its interval within 0.01 of a logit. Another last digit may cost it one step more.
SEARCHED = {
    "share of the variance of log t_c between initialisations, r = 10",
    "share of the variance of log t_c between initialisations, r = 100",
}
FOUND = 1e-3
# Of a printed number: two digits that a tie separates, such as 0.12 and 0.13 of 1/8, differ by 8 %.
PRINTED = 0.1

# Of arrays, relative to their mean size: float32 sums of another order, after two steps.
TOLERANCE = 1e-5
# Weights whose gradient is exactly 0, such as the bias of an attention's keys, hold rounding alone
# (10^-14 after two steps), which every processor's kernels make differently.
NOTHING = 1e-11
# A share above chance, (mass − chance) / (1 − chance), has the rounding of a mass in float32.
ABOVE_CHANCE = 1e-7

NUMBER = re.compile(r"(?<![\w.])[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


def same_number(here: float, there: float, quantity: object = "") -> bool:
    """Return whether two results of one computation of a quantity differ by rounding at most."""
    relative = FOUND if quantity in SEARCHED else RELATIVE
    absolute = ABSOLUTE if quantity in ROUNDING else 0.0
    return math.isclose(here, there, rel_tol=relative, abs_tol=absolute)


def allowed(size: float, path: str = "") -> float:
    """Return by how much golden numbers of a mean size may differ, at a place such as /movement."""
    least = ABOVE_CHANCE if path.startswith("/successor_attention") else NOTHING
    return max(TOLERANCE * abs(size), least)


def same_words(here: str, there: str) -> bool:
    """Return whether two texts have the same words, and numbers equal to one in the last place.

    A value halfway between two printed numbers is printed as either: 0.125 as 0.12 or 0.13.
    """
    if NUMBER.sub("#", here) != NUMBER.sub("#", there):
        return False
    pairs = zip(NUMBER.findall(here), NUMBER.findall(there), strict=True)
    return all(one == other or _neighbours(one, other) for one, other in pairs)


def _neighbours(one: str, other: str) -> bool:
    """Return whether two printed numbers are next to each other, and no counts.

    Of 0.999 and 1, or 9.99 and 10, as three digits print them, the longer one shows the distance.
    """
    first, second = (float(text.replace("−", "-").replace(",", "")) for text in (one, other))
    place = min(_last_place(one), _last_place(other))
    return (
        place < 1
        and abs(first - second) <= 1.001 * place
        and math.isclose(first, second, rel_tol=PRINTED)
    )


def _last_place(text: str) -> float:
    """Return the unit of the last printed digit: 0.01 for 0.12, 1e-7 for 3e-07, 1 for a count."""
    digits, _, exponent = text.partition("e")
    _, _, decimals = digits.partition(".")
    return float(10.0 ** (int(exponent or 0) - len(decimals)))


def differences(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    """Name the fields in which two verdicts, as JSON has them, differ by more than rounding."""
    found = [name for name in {*here, *there} if (name in here) != (name in there)]
    for name in here.keys() & there.keys():
        one, other = here[name], there[name]
        if isinstance(one, float) and isinstance(other, float):
            same = same_number(one, other, here.get("quantity"))
        elif name == "remark" and isinstance(one, str) and isinstance(other, str):
            same = same_words(one, other)
        else:
            same = one == other and type(one) is type(other)
        if not same:
            found.append(name)
    return sorted(found)
