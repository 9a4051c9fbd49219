"""IH-5 and IH-6: trigrams, and what one layer or one head cannot do [TH Fig. 8.5, E.8]."""

from __future__ import annotations

from petridish.chapters.induction.arm_figures import losses_of_arms, stages
from petridish.chapters.induction.learning import learning
from petridish.chapters.induction.measures import GapAtEnd
from petridish.chapters.induction.strategies import EndBetween, InOrderOf
from petridish.experiment import Experiment
from petridish.models import AttentionOnly, CausalTransformer, Model
from petridish.rules import Claim, Each, Rule
from petridish.statistics.estimators import Median, Share
from petridish.sweeps import Arms, Sweep
from petridish.tasks import MarkovChains, NGrams, Task
from petridish.training import (
    KL,
    Adam,
    AdamW,
    Data,
    Evaluation,
    RunSpec,
    StrategyLoss,
)

TRIGRAMS = ("uniform", "unigram", "bigram", "trigram")


def learners(
    task: Task,
    model: Model,
    optimiser: Adam,
    strategies: tuple[str, ...],
    *,
    rate: float,
    steps: int,
    every: int,
    seeds: int,
    n_test: int,
) -> Sweep:
    """Sweep the seeds of a model on sequences, with its distances to strategies."""
    base = RunSpec(
        task=task,
        data=Data(n_test=n_test),
        model=model,
        training=learning(rate=rate, steps=steps, optimiser=optimiser),
        evaluation=Evaluation(
            every=every,
            curves=True,
            fitted_error=None,
            metrics=tuple(KL(strategy) for strategy in (*strategies, "truth")),
            instruments=tuple(StrategyLoss(strategy) for strategy in strategies[1:]),
        ),
    )
    return Sweep(base, {"seed": range(seeds)})


def trigrams(
    *, k: int, length: int, steps: int, every: int, seeds: int, n_test: int, longer: int
) -> dict[str, Sweep]:
    """Declare three heads at the printed rate and a smaller one, and one head for longer.

    Adam at 3 · 10^-2 is App. E.2's. The numbers of states and steps are not printed.
    """

    def heads(count: int, rate: float, times: int) -> Sweep:
        return learners(
            NGrams(k, length, 3),
            AttentionOnly(heads=count),
            Adam(),
            TRIGRAMS,
            rate=rate,
            steps=times * steps,
            every=times * every,
            seeds=seeds,
            n_test=n_test,
        )

    return {
        "three heads": heads(3, 3e-2, 1),
        "three heads, rate 3e-3": heads(3, 3e-3, 2),
        "one head": heads(1, 3e-2, longer),
        "one head, rate 3e-3": heads(1, 3e-3, 2 * longer),
    }


def of_arms(*names: str) -> Each:
    """Return the layout that judges these arms, each by itself."""
    return Each(("arm",), only={"arm": names})


THREE = of_arms("three heads", "three heads, rate 3e-3")
ONE = of_arms("one head", "one head, rate 3e-3")
NGRAMS = Experiment(
    id="IH-5",
    title="Trigrams are learned in four stages, by three heads",
    source="TH §8.3.3, Fig. 8.5",
    scales={
        "smoke": Arms(trigrams(k=2, length=40, steps=100, every=10, seeds=2, n_test=128, longer=2)),
        "laptop": Arms(
            trigrams(k=2, length=200, steps=800, every=10, seeds=14, n_test=256, longer=4)
        ),
        "paper": Arms(
            trigrams(k=3, length=200, steps=3_000, every=20, seeds=20, n_test=768, longer=4)
        ),
    },
    claims=(
        Claim(
            "stages",
            "Of the uniform, the unigram, the bigram and the trigram strategy, the predictions of "
            "three heads come nearest to one after the other, in this order, in more than half of "
            "the seeds.",
            "TH §8.3.3, Fig. 8.5",
            Rule(InOrderOf(TRIGRAMS), of_arms("three heads"), Share(), above=0.5),
            "There are four stages of learning, each of them corresponding to a different "
            "algorithm implemented by the model.",
            kind="paper",
        ),
        Claim(
            "stages-smaller-rate",
            "So they do at a rate ten times smaller than the printed one.",
            "TH §8.3.3",
            Rule(InOrderOf(TRIGRAMS), of_arms("three heads, rate 3e-3"), Share(), above=0.5),
            "As above; the rate is ours.",
            kind="ours",
        ),
        Claim(
            "near",
            "In the end their loss lies above that of trigrams by less than a quarter of the gap "
            "between bigrams and trigrams.",
            "TH §8.3.3, Fig. 8.5",
            Rule(EndBetween("bigram", "trigram"), THREE, Median(), below=0.25),
            "The model converges close to the Bayes optimal solution; how close is ours.",
            kind="ours",
        ),
        Claim(
            "one-head",
            "One head does not come below bigrams, in four times the steps: its loss ends less "
            "than a tenth of that gap below that of bigrams.",
            "TH §8.3.3",
            Rule(EndBetween("bigram", "trigram"), of_arms("one head"), Median(), above=0.9),
            "Single attention headed models could not achieve better performance than bigrams; "
            "the tenth is ours.",
            kind="paper",
        ),
        Claim(
            "one-head-smaller-rate",
            "Nor does it at a rate ten times smaller, in four times the steps of three heads.",
            "TH §8.3.3",
            Rule(
                EndBetween("bigram", "trigram"),
                of_arms("one head, rate 3e-3"),
                Median(),
                above=0.9,
            ),
            "As above; the rate is ours.",
            kind="ours",
        ),
        Claim(
            "one-head-bigrams",
            "One head comes to bigrams or below: its loss ends less than a quarter of the gap "
            "between unigrams and bigrams above that of bigrams.",
            "TH §8.3.3",
            Rule(EndBetween("unigram", "bigram"), ONE, Median(), below=0.25),
            "Not said; without it one head that learned nothing would stop above trigrams too.",
            kind="ours",
        ),
    ),
    figures={"stages": stages},
)


def one_layer(
    *, k: int, length: int, rate: float, steps: int, every: int, seeds: int, n_test: int
) -> Arms:
    """Declare two layers, and one layer with and without an MLP, with both kinds of positions.

    One layer is trained for eight times the steps in which two layers have learned bigrams.
    """
    variants: dict[str, Model] = {
        "relative": AttentionOnly(layers=1),
        "relative, MLP": CausalTransformer(layers=1, mlp=64),
        "absolute": CausalTransformer(layers=1, positions="absolute"),
        "absolute, MLP": CausalTransformer(layers=1, positions="absolute", mlp=64),
    }

    def sized(model: Model, times: int) -> Sweep:
        return learners(
            MarkovChains(k, length),
            model,
            AdamW(),
            TRIGRAMS[:3],
            rate=rate,
            steps=times * steps,
            every=times * every,
            seeds=seeds,
            n_test=n_test,
        )

    arms = {"two layers": sized(AttentionOnly(), 1)}
    return Arms(arms | {name: sized(model, 8) for name, model in variants.items()})


VARIANTS = ("relative", "relative, MLP", "absolute", "absolute, MLP")
ONE_LAYER = Experiment(
    id="IH-6",
    title="One layer of attention does not come below unigrams",
    source="TH §8.3.1, Fig. E.8",
    scales={
        "smoke": one_layer(k=2, length=20, rate=3e-3, steps=25, every=25, seeds=2, n_test=128),
        "laptop": one_layer(k=3, length=40, rate=3e-3, steps=500, every=50, seeds=10, n_test=512),
        "paper": one_layer(k=3, length=100, rate=5e-4, steps=2_500, every=50, seeds=10, n_test=768),
    },
    claims=(
        Claim(
            "one-layer",
            "With or without an MLP, with absolute or relative positions, one layer ends less than "
            "a tenth of the gap between unigrams and bigrams below the loss of unigrams, in eight "
            "times the steps.",
            "TH §8.3.1, Fig. E.8",
            Rule(GapAtEnd(), Each(("arm",), only={"arm": VARIANTS}), Median(), above=0.9),
            "Even trained 8 times longer there is no notable increase in performance beyond the "
            "unigram strategy; the tenth is ours.",
            kind="paper",
            judged_at=("paper",),  # App. E.2 has 100 tokens
        ),
        Claim(
            "unigrams",
            "One layer comes to unigrams: its loss ends less than a tenth of the gap above theirs.",
            "TH §8.3.1, Fig. E.8",
            Rule(GapAtEnd(), Each(("arm",), only={"arm": VARIANTS}), Median(), below=1.1),
            "The curves end at the line of unigrams; without it a layer that learned nothing would "
            "stay above them too.",
            kind="ours",
        ),
        Claim(
            "two-layers",
            "In an eighth of these steps two layers have come more than half-way to bigrams.",
            "TH §8.3.1",
            Rule(GapAtEnd(), Each(("arm",), only={"arm": "two layers"}), Median(), below=0.5),
            "Two layers learn the task.",
            kind="check",
        ),
    ),
    figures={"losses": losses_of_arms},
)
