"""A residual network of your own beside a plain one of the same width: steps to a parity."""

import sys
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

import petridish
from petridish import MLP, Data, Evaluation, Own, RunSpec, SparseParity, Sweep, Training


class Residual(nn.Module):
    """Two layers, each added to what it is given."""

    def __init__(self, n_inputs, width, n_outputs):
        super().__init__()
        self.embed = nn.Linear(n_inputs, width)
        self.layer1, self.layer2 = nn.Linear(width, width), nn.Linear(width, width)
        self.output = nn.Linear(width, n_outputs)

    def forward(self, x):
        z = self.embed(x)
        for layer in (self.layer1, self.layer2):
            z = z + layer(z.relu())
        return self.output(z)


@dataclass(frozen=True)
class Residuals:
    """What a run's spec says of it: the module is built for the task at hand."""

    name: ClassVar[str] = "residual"

    width: int

    def build(self, domain, n_outputs):
        return Residual(domain.n_inputs, self.width, n_outputs)


SWEEP = Sweep(
    RunSpec(
        task=SparseParity(15, 3),
        data=Data(m=1_000, n_test=1_000),
        model=Residuals(32),
        training=Training(steps=1_000, learning_rate=0.1),
        evaluation=Evaluation(every=20, curves=True, weights=True),
    ),
    {
        "model": (Residuals(32), MLP(width=32, deeper=(32, 32))),
        "init": (Own(),),
        "seed": range(10),
    },
)

if __name__ == "__main__":
    runs = petridish.run(SWEEP, settings=sys.argv[1:])
    print(runs.outcomes(value="time"))
    best = petridish.load(runs.table.filter(model="residual(32)").sort("test_error")["key"][0])
    relevant = abs(best.weights["embed.weight"]).mean(axis=0)
    print("mean size of the weights of each bit:", relevant.round(2))
