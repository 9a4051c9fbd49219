"""How much data a network of each width needs to find three relevant bits of thirty."""

import sys

import petridish
from petridish import MLP, Data, RunSpec, Sparse, SparseParity, Sweep, Training

SWEEP = Sweep(
    RunSpec(
        task=SparseParity(30, 3),
        data=Data(n_test=2_000),
        model=MLP(width=100),
        init=Sparse(2),
        training=Training(steps=5_000),
    ),
    {
        "model.width": (10, 30, 100, 300),
        "data.m": (200, 300, 500, 700, 1_000, 2_000),
        "seed": range(20),
    },
)

if __name__ == "__main__":
    runs = petridish.run(SWEEP, settings=sys.argv[1:])
    print(runs.success(rows="width", columns="m"))
    print(runs.frontier(target=0.9).select("m", "width", "steps", "restarts", "compute"))
    runs.figure().savefig("frontier.png")
