"""A question of one's own in a notebook: a regression, in cells that begin with `# %%`."""

# %%
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from torch import Tensor, nn

from petridish.experiment import Experiment
from petridish.rules import AtEnd, Claim, Median, Rule, Trend
from petridish.seeds import Streams
from petridish.store import Store
from petridish.sweeps import Sweep, run_sweep
from petridish.tasks import Domain, Examples, Reals, Values
from petridish.training import (
    AdamW,
    Below,
    Data,
    Evaluation,
    Metric,
    RunSpec,
    Square,
    Training,
)


# %%
@dataclass(frozen=True)
class Wave:
    """The sine of a sum of `n` normal numbers, `frequency` times as quick."""

    name: ClassVar[str] = "wave"

    n: int
    frequency: float = 1.0

    @property
    def domain(self) -> Domain:
        """Real numbers to one real number."""
        return Domain(Reals((self.n,)), Values(1))

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw inputs and their targets."""
        numbers = Streams(seeds, purpose).normals(start * self.n, count * self.n)
        x = numbers.reshape(len(seeds), count, self.n).astype(np.float32)
        return Examples(np.sin(self.frequency * x.sum(axis=2, keepdims=True)), dense=x)


# %%
@dataclass(frozen=True)
class Noisy:
    """A network with dropout."""

    name: ClassVar[str] = "noisy"

    width: int
    dropout: float = 0.1

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return a plain module."""
        return nn.Sequential(
            nn.Linear(domain.n_inputs, self.width),
            nn.Tanh(),
            nn.Dropout(self.dropout),
            nn.Linear(self.width, n_outputs),
        )


# %%
@dataclass(frozen=True)
class Far(Metric):
    """The share of predictions that are further than `by` from their targets."""

    name: ClassVar[str] = "far"

    by: float = 0.5
    on: str = "test"

    def each(self, outputs: Tensor, labels: Tensor, facts: Mapping[str, Tensor]) -> Tensor:
        """Return 1 for each example that is far."""
        return ((outputs - labels).abs().amax(dim=-1) > self.by).to(outputs.dtype)


# %%
SWEEP = Sweep(
    RunSpec(
        task=Wave(2),
        data=Data(m=200, n_test=200),
        model=Noisy(20),
        training=Training(
            loss=Square(),
            optimiser=AdamW(),
            learning_rate=0.01,
            steps=200,
            stop=Below(Far(), 0.02),
        ),
        evaluation=Evaluation(every=50, curves=True, fitted_error=None),
    ),
    {
        "model.width": (4, 40),
        "task.frequency": (0.5, 3.0),
        "model.dropout": (0.0, 0.2),
        "seed": range(8),
    },
)
QUESTION = Experiment(
    "wave",
    "A quicker wave is harder",
    "my own",
    {"own": SWEEP},
    claims=(
        Claim(
            "a",
            "The quicker the wave, the more predictions are far off, in every network.",
            "mine",
            Rule(
                AtEnd("test_far"),
                Trend("task.frequency", within=("model.width", "model.dropout")),
                Median(),
                above=0.0,
            ),
        ),
    ),
)

# %%
STORE = Store(Path("waves"))
summary = run_sweep(SWEEP, STORE, executor="inline")
print(summary.done)

# %%
runs = SWEEP.among(STORE.read(columns=QUESTION.columns).table)
print(len(runs), sorted(set(runs["task"])))

# %%
for verdict in QUESTION.judge(runs):
    print(verdict)

# %%
print(run_sweep(SWEEP, STORE, executor="inline").done)
