"""The methods that FL's tables compare, at the paper's sizes or at others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from petridish.chapters.inputs.trainings import (
    CLASSIFIER,
    Patterned,
    after,
    seeded,
    start,
    tangent,
    then,
    two_steps,
)
from petridish.sweeps import Arms
from petridish.tasks import Dictionary
from petridish.training import RunSpec

DIMENSIONS = ("fewer dimensions", "more dimensions")
EIGHT_TENTHS, NINE_TENTHS = "80 % of y = −1", "90 % of y = −1"
SHARES = {EIGHT_TENTHS: 0.8, NINE_TENTHS: 0.9}
SAMPLES = ("fewer examples", "fewest examples")
"""The settings of Tables 3, 4 and 5, by their names in arms."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a task, a sample, a network and its training; by default those of Table 1.

    `steps`, `batch_size` and `rate` are of what follows the two steps on the whole sample.
    """

    d: int = 500
    patterns: int = 100
    k: int = 5
    m: int = 50_000
    width: int = 600
    steps: int = 600
    batch_size: int = 1_000
    rate: float = 1.0
    n_test: int = 10_000
    seeds: int = 12

    @property
    def literal_rate(self) -> float:
        """Theorem 26's η after the two steps: k²/(T m^⅓), for 2m neurons."""
        return float(self.k**2 / (self.steps * (self.width / 2) ** (1 / 3)))

    def parity(self, **more: Any) -> Dictionary:
        """Return the parity, in the coordinates of its patterns if no other space is named."""
        return Dictionary(self.d, self.patterns, self.k, **{"space": "patterns", **more})

    def start(self, task: Patterned, *, zero: bool = False) -> RunSpec:
        """Return the network before training."""
        return start(task, m=self.m, width=self.width, n_test=self.n_test, zero=zero)

    def network(self, run: RunSpec, rate: float | None = None, **how: Any) -> RunSpec:
        """Go on with minibatches, and train everything."""
        rate = self.rate if rate is None else rate
        return then(run, steps=self.steps, batch_size=self.batch_size, rate=rate, **how)

    def classifier(self, run: RunSpec, rate: float | None = None, **how: Any) -> RunSpec:
        """Go on with minibatches, and train the second layer alone."""
        return self.network(run, rate, schedule=CLASSIFIER, **how)

    def compared(
        self,
        task: Dictionary,
        bare: Dictionary,
        *,
        kernel: float,
        random: float,
        rates_of: Dictionary | None = None,
        probe: bool = False,
    ) -> dict[str, RunSpec]:
        """Return the methods of Tables 1 to 5 on a task, and on one without structure.

        `kernel` and `random` are the rates of fixed features. The two steps without structure have
        the rates of the task with it, or those of `rates_of`. `probe`: look for the best linear
        classifier on features as well.
        """
        begun, without = self.start(task), self.start(bare)
        one, two = two_steps(begun)
        last = two_steps(without, rates_of or task)[1]
        on_one = self.classifier(after(begun, one), precision="float64", probe=probe)
        return {
            "network": self.network(after(begun, two)),
            "two step": self.classifier(after(begun, two), probe=probe),
            "one step": on_one,
            "tangent kernel": self.network(tangent(begun), kernel),
            "random features": self.classifier(begun, random),
            "no structure": self.network(after(without, last)),
            "kernel without structure": self.network(tangent(without), kernel),
            "random features without structure": self.classifier(without, random),
        }

    def arms(
        self, runs: Mapping[str, RunSpec], rates: Mapping[str, tuple[float, ...]] | None = None
    ) -> Arms:
        """Return the runs of all seeds; `rates` has those of the arms that try several."""
        several = rates or {}
        return Arms(
            {name: seeded(run, self.seeds, several.get(name, ())) for name, run in runs.items()}
        )
