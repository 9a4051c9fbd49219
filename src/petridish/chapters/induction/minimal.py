"""IH-3: the minimal model trained by gradient descent [TH (8.8), Fig. 8.3 bottom, 8.4b, E.7]."""

from __future__ import annotations

from functools import partial

from petridish.chapters.induction.arm_figures import minimal_model
from petridish.chapters.induction.figures import positions
from petridish.chapters.induction.learning import learning
from petridish.chapters.induction.measures import AtGap, GapAtEnd
from petridish.chapters.induction.phases import LAPTOP, STRATEGIES, chains
from petridish.chapters.induction.plateaus import (
    CurveAt,
    HalfOfOwn,
    TimeNearUnigram,
)
from petridish.chapters.induction.weight_figures import first_steps, minimal_weights
from petridish.experiment import Experiment
from petridish.models import ByName, Constant, MinimalAttention
from petridish.rules import Claim, Each, Over, PairedBySeed, Rule
from petridish.rules.curve_measures import LeastOf
from petridish.statistics.estimators import Median
from petridish.sweeps import Arms, Sweep
from petridish.tasks import MarkovChains
from petridish.training import (
    KL,
    SGD,
    Data,
    DiagonalShare,
    EffectivePositions,
    Evaluation,
    EvenOdd,
    Held,
    KeyMatrix,
    MultiMargin,
    PeakRatio,
    PositionShare,
    RunSpec,
    StrategyLoss,
)

RATE, START = 2e-3, 0.02  # App. E.2; Fig. E.1 and an early file of the published code
LEMMA_RATE = 0.03  # Fig. E.1, E.2
RATIO_AT = 200  # steps after which v_4 is compared with v_2


def minimal(
    k: int,
    *,
    length: int,
    steps: int,
    every: int,
    seeds: int,
    n_test: int,
    rate: float = RATE,
    start: float = START,
) -> Sweep:
    """Sweep the seeds of the minimal model from W_k = 0 and constant v, by SGD on cross entropy.

    The start is the same in every run: seeds differ in their data alone.
    """
    others = {
        "iid": MarkovChains(k, length, "unigram"),
        "doubly": MarkovChains(k, length, "doubly"),
    }
    base = RunSpec(
        task=MarkovChains(k, length),
        data=Data(n_test=n_test),
        model=MinimalAttention(),
        init=ByName((("key", Constant(0.0)), ("positions", Constant(start)))),
        training=learning(rate=rate, steps=steps, optimiser=SGD()),
        evaluation=Evaluation(
            every=every,
            curves=True,
            fitted_error=None,
            weights=True,
            metrics=(
                *(KL(strategy) for strategy in (*STRATEGIES, "truth")),
                *(KL("truth", on=name) for name in others),
            ),
            samples=tuple(Held(name, task, n_test) for name, task in others.items()),
            instruments=(
                *(StrategyLoss(strategy) for strategy in STRATEGIES[1:]),
                PositionShare(1),
                PositionShare(2),
                DiagonalShare(),
                EvenOdd(),
                PeakRatio(),
                EffectivePositions(),
                KeyMatrix(),
            ),
        ),
    )
    return Sweep(base, {"seed": range(seeds)})


def several(*, length: int, steps: int, every: int, seeds: int, n_test: int) -> dict[str, Sweep]:
    """Declare two and three states, and from two a smaller start and a smaller rate."""
    sized = partial(minimal, length=length, every=every, seeds=seeds, n_test=n_test)
    return {
        "minimal": sized(2, steps=steps),
        "minimal, k = 3": sized(3, steps=steps),
        "small start": sized(2, steps=steps, start=START / 10),
        "small rate": sized(2, steps=2 * steps, rate=RATE / 4),
    }


def two_steps(*, length: int, seeds: int, batch: int) -> Sweep:
    """Sweep two large steps on the margin loss from the constant start [TH Fig. E.1, E.2].

    c = 0.02, η = 0.03 and 10 000 sequences a step are the figures'. Outputs stay below 10, and Δ
    is so large that no term of (8.7) is 0.
    """
    base = RunSpec(
        task=MarkovChains(2, length),
        data=Data(n_test=64),
        model=MinimalAttention(),
        init=Constant(START),
        training=learning(
            rate=LEMMA_RATE,
            steps=2,
            loss=MultiMargin(100.0),
            optimiser=SGD(),
            batch_size=batch,
        ),
        evaluation=Evaluation(
            every=1,
            curves=True,
            fitted_error=None,
            instruments=(EffectivePositions(size=length), KeyMatrix()),
        ),
    )
    return Sweep(base, {"seed": range(seeds)})


LEMMA = {"two steps": two_steps(length=100, seeds=3, batch=10_000)}
LARGE = several(length=100, steps=2_000, every=20, seeds=12, n_test=512)
FIGURES = ("minimal", "minimal, k = 3")
ALONE = Each(("arm",), only={"arm": FIGURES})
MINIMAL = Experiment(
    id="IH-3",
    title="The minimal model: the second layer first, and an even/odd pattern of positions",
    source="TH §8.3.2, App. E.1, Fig. 8.3, 8.4b, E.1, E.2, E.6, E.7",
    scales={
        "smoke": Arms(
            {
                **several(length=24, steps=300, every=20, seeds=2, n_test=128),
                "two steps": two_steps(length=24, seeds=2, batch=512),
                "transformer": chains(2, 24, rate=3e-3, steps=100, every=20, seeds=2, n_test=128),
            }
        ),
        "laptop": Arms({**LARGE, **LEMMA, "transformer": LAPTOP["k = 2"]}),
        "paper": Arms(
            {
                **several(length=100, steps=10_000, every=50, seeds=20, n_test=768),
                **LEMMA,
                "transformer": LAPTOP["k = 2"],
            }
        ),
    },
    claims=(
        Claim(
            "diagonal-first",
            "The second layer is learned first: the diagonal's share of W_k is half of what it is "
            "in the end before the share of v_2 is.",
            "TH §8.3.2, Lemma 8.4",
            Rule(
                Over(HalfOfOwn("key_diagonal_share"), HalfOfOwn("position2_share")),
                ALONE,
                Median(),
                below=1.0,
            ),
            "It is only the second layer that quickly picks up the right solution.",
            kind="paper",
        ),
        Claim(
            "odd-back",
            "When the loss has fallen a quarter of the gap below that of unigrams, even entries "
            "of v from the fourth to the eighth exceed odd ones by more than 0.05 of their sum.",
            "TH §8.3.2, Fig. 8.3, 8.4b, E.7",
            Rule(AtGap("attention1_even_odd", 0.75), ALONE, Median(), above=0.05),
            "The positional embeddings display the curious even/odd pattern; the margin is ours.",
            kind="paper",
        ),
        Claim(
            "ratio",
            f"After {RATIO_AT} steps the peak of v_4 above its neighbours is between 0.3 and 0.5 "
            "of that of v_2: near E[λ⁴]/E[λ²] = 0.4, k = 2.",
            "TH §8.3.2, (E.40)",
            Rule(
                CurveAt("attention1_peak_ratio", RATIO_AT),
                Each(("arm",), only={"arm": "minimal"}),
                Median(),
                between=(0.3, 0.5),
            ),
            "The ratio is closely related to the moments of the eigenvalue of the transition "
            "matrix; how closely is ours. The bounds were chosen after one run.",
            kind="ours",
        ),
        Claim(
            "near",
            "In the end the loss lies above that of bigrams by less than a quarter of the gap "
            "between unigrams and bigrams, k = 2.",
            "TH §8.3.2, Fig. 8.3",
            Rule(GapAtEnd(), Each(("arm",), only={"arm": "minimal"}), Median(), below=0.25),
            "The model converges to the bigram solution; how near is ours.",
            kind="ours",
        ),
        Claim(
            "short-stay",
            "Of the time until its loss falls below ¾ of the gap the minimal model spends a "
            "smaller share near the unigrams' loss than the transformer does, seed by seed, k = 2.",
            "TH §8.3.2, Fig. 8.3",
            Rule(
                TimeNearUnigram(),
                PairedBySeed("minimal", "transformer"),
                Median(),
                below=0.0,
            ),
            "It spends significantly less time, if any, at the unigram solution.",
            kind="paper",
        ),
        Claim(
            "small-start",
            "From a start ten times smaller the predictions pass nearer to those of unigrams: the "
            "least KL(unigram ‖ model) is smaller.",
            "TH §8.3.2",
            Rule(
                LeastOf("test_kl_unigram"),
                PairedBySeed("small start", "minimal", by="ratio"),
                Median(),
                below=1.0,
            ),
            "If the gradient of the second layer is small, which can happen due to the "
            "initialization of v or to a small learning rate, the model is biased to unigrams.",
            kind="paper",
        ),
        Claim(
            "small-rate",
            "So they do at a rate four times smaller.",
            "TH §8.3.2",
            Rule(
                LeastOf("test_kl_unigram"),
                PairedBySeed("small rate", "minimal", by="ratio"),
                Median(),
                below=1.0,
            ),
            "As above.",
            kind="paper",
        ),
        Claim(
            "doubly",
            "When the loss first comes within a quarter of the gap of the unigrams', that on "
            "doubly stochastic chains is still more than nine tenths of what it was.",
            "TH Fig. E.6",
            Rule(AtGap("doubly_kl_truth", 1.25, relative=True), ALONE, Median(), above=0.9),
            "For both models the loss in distribution quickly drops to the level of unigrams.",
            kind="ours",
        ),
    ),
    figures={
        "minimal": minimal_model,
        "positions": positions,
        "weights": minimal_weights,
        "first-steps": first_steps,
    },
)
