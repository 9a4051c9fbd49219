"""Networks are less sure of themselves where labels are noisy: a claim, and how it is judged."""

import sys
from dataclasses import dataclass
from typing import ClassVar

import petridish
from petridish import (
    MLP,
    AtEnd,
    Claim,
    Data,
    Evaluation,
    Experiment,
    Median,
    Metric,
    Rule,
    RunSpec,
    SparseParity,
    Sweep,
    Training,
    Trend,
)


@dataclass(frozen=True)
class Sureness(Metric):
    """How far the output is from undecided, from 0 to 1."""

    name: ClassVar[str] = "sureness"

    on: str = "test"

    def each(self, outputs, labels, facts):
        return outputs.squeeze(-1).tanh().abs()  # (run, example)


EXPERIMENT = Experiment(
    id="sureness",
    title="how sure networks are, against the noise of their labels",
    source="this file",
    scales={
        "own": Sweep(
            RunSpec(
                task=SparseParity(15, 2),
                data=Data(m=2_000, n_test=1_000),
                model=MLP(width=50),
                training=Training(steps=500, target_error=None),
                evaluation=Evaluation(every=50, metrics=(Sureness(),)),
            ),
            {"data.label_noise": (0.0, 0.1, 0.2, 0.3), "seed": range(10)},
        )
    },
    claims=(
        Claim(
            name="a",
            text="The more labels are wrong, the less sure a network is in the end.",
            source="this file",
            rule=Rule(AtEnd("test_sureness"), Trend("data.label_noise"), Median(), below=0.0),
        ),
    ),
)

if __name__ == "__main__":
    runs = petridish.run(EXPERIMENT, settings=sys.argv[1:])
    print(runs.outcomes(value="test_sureness"))
    print(runs.verdicts())
