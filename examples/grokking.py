"""Grokking: the training error falls long before the test error does, where data are scarce."""

from petridish import MLP, Data, Evaluation, RunSpec, Sparse, SparseParity, Sweep, Training

SWEEP = Sweep(
    base=RunSpec(
        task=SparseParity(30, 3),
        data=Data(n_test=2_000),
        model=MLP(width=100),
        init=Sparse(2),
        training=Training(steps=10_000),
        evaluation=Evaluation(every=100, curves=True),
    ),
    axes={"data.m": (300, 500, 1_000), "seed": range(10)},
)
