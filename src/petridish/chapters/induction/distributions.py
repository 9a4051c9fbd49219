"""IH-4: whether unigrams slow learning down [TH Fig. 8.4a]."""

from __future__ import annotations

from petridish.chapters.induction.arm_figures import distributions
from petridish.chapters.induction.learning import learning
from petridish.chapters.induction.plateaus import HalfwayDown
from petridish.experiment import Experiment
from petridish.models import AttentionOnly
from petridish.rules import Claim, PairedBySeed, Rule
from petridish.statistics.estimators import Median
from petridish.sweeps import Arms, Sweep
from petridish.tasks import MarkovChains, Mixed
from petridish.training import (
    KL,
    Data,
    Evaluation,
    Held,
    RunSpec,
)

ORIGINAL, DOUBLY = "original_kl_truth", "doubly_kl_truth"


def mixtures(
    *, length: int, rate: float, steps: int, every: int, seeds: int, n_test: int, k: int = 4
) -> Arms:
    """Declare training on doubly stochastic chains, and on these with independent tokens.

    «half»: 32 and 32 sequences a step, so that half as many doubly stochastic ones are seen in a
    step. «extra»: 64 and 64, so that as many are. They are measured on the original distribution,
    Dirichlet rows, and on doubly stochastic chains.
    """
    doubly = MarkovChains(k, length, "doubly")
    mixed = Mixed(doubly, MarkovChains(k, length, "unigram"), 0.5)
    samples = {"original": MarkovChains(k, length), "doubly": doubly}

    def arm(task: MarkovChains | Mixed, batch: int, length_of_run: int) -> Sweep:
        base = RunSpec(
            task=task,
            data=Data(n_test=n_test),
            model=AttentionOnly(d=16, layers=2),
            training=learning(rate=rate, steps=length_of_run, batch_size=batch),
            evaluation=Evaluation(
                every=every,
                curves=True,
                fitted_error=None,
                metrics=tuple(KL("truth", on=name) for name in samples),
                samples=tuple(Held(name, each, n_test) for name, each in samples.items()),
            ),
        )
        return Sweep(base, {"seed": range(seeds)})

    return Arms(
        {
            "doubly alone": arm(doubly, 64, steps),
            "half": arm(mixed, 64, 2 * steps),
            "extra": arm(mixed, 128, 2 * steps),
        }
    )


def slower(arm: str, curve: str, *, per_step: bool) -> Rule:
    """Return the rule that an arm is later than training without unigrams, seed by seed."""
    return Rule(
        HalfwayDown(curve, per_step),
        PairedBySeed(arm, "doubly alone", by="ratio"),
        Median(),
        above=1.0,
    )


SAID = (
    "Transformers trained without a unigram signal learn faster, also on the original "
    "distribution; additional unigram samples slow learning. The figure counts doubly stochastic "
    "samples."
)
MIXTURES = Experiment(
    id="IH-4",
    title="Independent tokens among doubly stochastic chains: whether unigrams slow learning",
    source="TH §8.3.1, §8.3.2, Fig. 8.4a",
    scales={
        "smoke": mixtures(length=30, rate=3e-3, steps=150, every=30, seeds=2, n_test=128, k=3),
        "laptop": mixtures(length=100, rate=1e-3, steps=1_200, every=25, seeds=12, n_test=256),
        "paper": mixtures(length=100, rate=5e-4, steps=3_000, every=25, seeds=40, n_test=768),
    },
    claims=(
        Claim(
            "extra",
            "With as many sequences of independent tokens added to each batch, the loss on the "
            "original distribution takes more doubly stochastic sequences until it is half-way "
            "between its own plateaus.",
            "TH §8.3.1, Fig. 8.4a",
            slower("extra", ORIGINAL, per_step=True),
            SAID,
            kind="paper",
        ),
        Claim(
            "half",
            "With half of each batch replaced by independent tokens, it takes more doubly "
            "stochastic sequences.",
            "TH §8.3.1, Fig. 8.4a",
            slower("half", ORIGINAL, per_step=True),
            SAID,
            kind="paper",
        ),
        Claim(
            "half-steps",
            "With half of each batch replaced, it takes more steps.",
            "TH §8.3.1",
            slower("half", ORIGINAL, per_step=False),
            "Learning without a unigram signal is faster; in which unit is not said in the text.",
            kind="ours",
        ),
        Claim(
            "extra-doubly",
            "With independent tokens added, the loss on doubly stochastic chains takes more of "
            "them.",
            "TH §8.3.1",
            slower("extra", DOUBLY, per_step=True),
            "As above, on another distribution.",
            kind="ours",
        ),
    ),
    figures={"distributions": distributions},
)
