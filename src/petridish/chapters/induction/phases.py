"""IH-1 and IH-2: the phases of learning Markov chains in context, and attention through them."""

from __future__ import annotations

from functools import partial

from petridish.chapters.induction.figures import attention_maps, phases, positions
from petridish.chapters.induction.learning import learning
from petridish.chapters.induction.measures import (
    AtGap,
    ChangeOverDrop,
    GapAtEnd,
    GapTime,
    ShareOfTime,
    Stages,
)
from petridish.experiment import Experiment
from petridish.models import AttentionOnly
from petridish.rules import Claim, Each, InOrder, LastOf, Over, Rule, TimeTo
from petridish.statistics.estimators import Median, Share
from petridish.sweeps import Arms, Sweep
from petridish.tasks import MarkovChains
from petridish.training import (
    KL,
    AttentionMap,
    BackAttention,
    Data,
    EffectivePositions,
    Evaluation,
    EvenOdd,
    Held,
    LossByPosition,
    RunSpec,
    StrategyLoss,
    SuccessorAttention,
    TokenSpread,
)

STRATEGIES = ("uniform", "unigram", "bigram")
KLS = tuple(f"test_kl_{name}" for name in STRATEGIES)
SHOWN = 10  # parts of a run, at whose ends maps of attention are kept
READ = 32  # sequences on which attention is read
MOST_STATES_OF_BAYES = 3  # of more, the Bayes predictor takes longer than a run


def chains(
    k: int,
    length: int,
    *,
    rate: float,
    steps: int,
    every: int,
    seeds: int,
    first: int = 0,
    n_test: int = 768,
) -> Sweep:
    """Sweep seeds, from `first` on, of two layers of attention on chains [TH §8.3.1, App. E.2].

    Batches of 64 are the paper's. Its decay is not printed, and is 0 here. A network is also
    measured on independent tokens and on doubly stochastic chains [TH Fig. E.6].
    """
    others = {
        "iid": MarkovChains(k, length, "unigram"),
        "doubly": MarkovChains(k, length, "doubly"),
    }
    best = ("bayes",) if k <= MOST_STATES_OF_BAYES else ()
    shown = tuple(sorted({steps * part // SHOWN // every * every for part in range(SHOWN + 1)}))
    base = RunSpec(
        task=MarkovChains(k, length),
        data=Data(n_test=n_test),
        model=AttentionOnly(d=16, layers=2),
        training=learning(rate=rate, steps=steps),
        evaluation=Evaluation(
            every=every,
            curves=True,
            fitted_error=None,
            metrics=(
                *(KL(strategy) for strategy in (*STRATEGIES, "truth")),
                *(KL("truth", on=name) for name in others),
                KL("truth", positions="all"),
            ),
            samples=tuple(Held(name, task, n_test) for name, task in others.items()),
            instruments=(
                *(StrategyLoss(strategy) for strategy in (*STRATEGIES[1:], *best)),
                BackAttention("attention1.pattern", n=READ),
                SuccessorAttention(n=READ),
                SuccessorAttention(given="attention1.pattern", n=READ),
                EvenOdd(),
                TokenSpread(),
                EffectivePositions(),
                LossByPosition(at=(shown[SHOWN // 2], steps)),
                *(AttentionMap(f"attention{layer}.pattern", 12, at=shown) for layer in (1, 2)),
            ),
        ),
    )
    return Sweep(base, {"seed": range(first, first + seeds)})


def of_the_figures(seeds: int, first: int = 0) -> dict[str, Sweep]:
    """Declare chains of 2 and 3 states at the rate of Figure 8.3, 5 · 10^-4."""
    sized = partial(chains, rate=5e-4, steps=2_000, every=50, seeds=seeds, first=first)
    return {"k = 2": sized(2, 100), "k = 3": sized(3, 100)}


def of_more_states(seeds: int, first: int) -> dict[str, Sweep]:
    """Declare chains of 4, 5 and 8 states, whose number the text does not print.

    At twice the figures' rate: their plateau is longer.
    """
    sized = partial(chains, rate=1e-3, every=50, seeds=seeds, first=first, n_test=384)
    return {
        "k = 4": sized(4, 200, steps=2_000),
        "k = 5": sized(5, 200, steps=2_000),
        "k = 8": sized(8, 200, steps=2_000),
        "k = 8, t = 100": sized(8, 100, steps=2_500),
    }


def at_the_printed_rate(seeds: int) -> dict[str, Sweep]:
    """Declare chains at App. E.2's rate 3 · 10^-5."""
    printed = partial(chains, rate=3e-5, every=250, seeds=seeds)
    return {
        "k = 2, rate 3e-5": printed(2, 100, steps=25_000),
        "k = 3, rate 3e-5": printed(3, 100, steps=35_000),
    }


LOOKED_AT = 20  # the seeds below were seen before the claims spoke of two and three states alone
SMOKE = {"k = 3": chains(3, 40, rate=3e-3, steps=400, every=20, seeds=3, n_test=256)}
FIGURES = of_the_figures(20)
MORE = of_more_states(20, LOOKED_AT)
LAPTOP = of_the_figures(40, LOOKED_AT) | {"k = 8": MORE["k = 8"]}
PRINTED = at_the_printed_rate(20)
EACH = Each(("arm",))
PRINTED_STATES = Each(("arm",), only={"task.k": (2, 3)})

PHASES = Experiment(
    id="IH-1",
    title="Markov chains are learned in phases: uniform, unigrams, bigrams",
    source="TH §8.3.1, Fig. 8.1, 8.3, E.3, E.4, E.6",
    scales={"smoke": Arms(SMOKE), "laptop": Arms(LAPTOP), "paper": Arms(LAPTOP | PRINTED)},
    claims=(
        Claim(
            "order",
            "Of the uniform, the unigram and the bigram strategy, a network's predictions come "
            "nearest to one after the other, in this order (KL at the last token), in more than "
            "two of three seeds.",
            "TH §8.3.1, Fig. 8.3, E.3, E.4",
            Rule(InOrder(KLS), PRINTED_STATES, Share(), above=2 / 3),
            "After the initial drop the strategy is very similar to unigrams, before it is "
            "overtaken by bigrams; consistent over ten seeds, and for more states.",
            kind="paper",
        ),
        Claim(
            "stages",
            "They stay for a while: nearest to uniform for a hundredth of the time until bigrams "
            "are nearest, to unigrams for half of it, never going back, and to bigrams for nine "
            "tenths of the rest, in more than two of three seeds.",
            "TH §8.3.1, Fig. 8.3, E.3, E.4",
            Rule(Stages(KLS, (0.01, 0.5)), PRINTED_STATES, Share(), above=2 / 3),
            "Three stages; how long each has to last is ours.",
            kind="ours",
        ),
        Claim(
            "leaves",
            "Over the second drop the predictions leave those of unigrams: KL(unigram ‖ network) "
            "rises.",
            "TH §8.3.1, Fig. 8.3",
            Rule(ChangeOverDrop("test_kl_unigram"), PRINTED_STATES, Median(), above=0.0),
            "Around the second drop one of the two distances decreases, while the other increases.",
            kind="paper",
        ),
        Claim(
            "comes",
            "Over the second drop the predictions come to those of bigrams: KL(bigram ‖ network) "
            "falls.",
            "TH §8.3.1, Fig. 8.3",
            Rule(ChangeOverDrop("test_kl_bigram"), PRINTED_STATES, Median(), below=0.0),
            "See above.",
            kind="paper",
        ),
        Claim(
            "plateau",
            "More than half of the time until the loss has left the unigrams' is spent near it: "
            "within a quarter of the gap between unigrams and bigrams.",
            "TH §8.3.1, Fig. 8.3, E.4",
            Rule(Over(GapTime(1.25), GapTime(0.75)), PRINTED_STATES, Median(), below=0.5),
            "A rapid drop, then a long period of only slight improvement at the unigram baseline, "
            "then a second rapid drop; for more states a plateau in either case. How long is long, "
            "and how near, is ours.",
            kind="ours",
        ),
        Claim(
            "near",
            "In the end the loss lies above that of bigrams by less than a quarter of the gap "
            "between unigrams and bigrams.",
            "TH §8.3.1, Fig. 8.3",
            Rule(GapAtEnd(), PRINTED_STATES, Median(), below=0.25),
            "All models converge near the Bayes optimal solution; how near is ours.",
            kind="ours",
        ),
        Claim(
            "bayes",
            "For two and three states it lies above that of the exact Bayes predictor by less than "
            "a quarter of its gap to unigrams.",
            "TH §8.3.1, Remark 8.1",
            Rule(
                GapAtEnd("bayes"),
                PRINTED_STATES,
                Median(),
                below=0.25,
            ),
            "As above; Remark 8.1 has the bigram strategy near Bayes.",
            kind="ours",
        ),
        Claim(
            "independent",
            "When the loss has come within a quarter of the gap of the unigrams', that on "
            "independent tokens has fallen by more than three quarters of what it was.",
            "TH Fig. E.6",
            Rule(AtGap("iid_kl_truth", 1.25, relative=True), PRINTED_STATES, Median(), below=0.25),
            "The loss quickly drops to the level of the unigram algorithm.",
            kind="ours",
        ),
        Claim(
            "doubly",
            "At that time the loss on doubly stochastic chains, of which unigrams say nothing, is "
            "still more than nine tenths of what it was.",
            "TH Fig. E.6",
            Rule(
                AtGap("doubly_kl_truth", 1.25, relative=True), PRINTED_STATES, Median(), above=0.9
            ),
            "As above; unigram based guesses are as good as guessing uniformly.",
            kind="ours",
        ),
    ),
    figures={"phases": phases, "positions": positions},
)

ONE_BACK, SUCCESSORS = "attention1_back1", "attention2_successors"
GIVEN = f"{SUCCESSORS}_given_one_back"
LAYERS = Experiment(
    id="IH-2",
    title="Induction heads: the first layer looks one token back, the second at successors",
    source="TH §8.3.1, §8.3.2, Fig. 8.2, E.5",
    scales={
        "smoke": Arms(SMOKE),
        "laptop": Arms(FIGURES),
        "paper": Arms(FIGURES | PRINTED),
    },
    claims=(
        Claim(
            "back",
            "In the end the first layer attends to the previous token: more than 0.8 above chance, "
            "on a scale from even attention (0) to that token alone (1).",
            "TH §8.3.1, Fig. 8.2",
            Rule(LastOf(ONE_BACK), EACH, Median(), above=0.8),
            "By the end of training the attention consistently matches the construction; how "
            "closely is ours.",
            kind="ours",
        ),
        Claim(
            "successors",
            "In the end the second layer attends to tokens that followed the current one: more "
            "than 0.8 above chance.",
            "TH §8.3.1, Fig. 8.2",
            Rule(LastOf(SUCCESSORS), EACH, Median(), above=0.8),
            "As above.",
            kind="ours",
        ),
        Claim(
            "even",
            "Attention starts even: both layers begin within 0.05 of chance.",
            "TH Fig. 8.2",
            Rule(AtGap(ONE_BACK, 1e9), EACH, Median(), between=(-0.05, 0.05)),
            "Attention starts off uniform; with a small start it does.",
            kind="check",
        ),
        Claim(
            "second-first",
            "The second layer is learned first: given exact attention to the previous token in the "
            "first, it is half-way to the successors before the first is half-way to the previous "
            "token.",
            "TH §8.3.2",
            Rule(
                Over(TimeTo(GIVEN, above=0.5), TimeTo(ONE_BACK, above=0.5)),
                EACH,
                Median(),
                below=1.0,
            ),
            "The second layer is learned first in the minimal model and in transformers, although "
            "the evidence is not so clear in the latter.",
            kind="paper",
        ),
        Claim(
            "attention",
            "The first layer has come half-way from even attention to attending the previous token "
            "alone before the loss has come half-way from unigrams to bigrams.",
            "TH §8.3.1, Fig. 8.2",
            Rule(Over(TimeTo(ONE_BACK, above=0.5), GapTime(0.5)), EACH, Median(), below=1.0),
            "The second drop is associated with the forming of induction heads; which comes first "
            "is not said.",
            kind="ours",
        ),
        Claim(
            "any-token",
            "The effective positional encoding hardly depends on the token: at more than half of "
            "the evaluations no two tokens' differ by more than 0.2 (total variation).",
            "TH §8.3.2",
            Rule(ShareOfTime("attention1_token_spread", 0.2), EACH, Median(), above=0.5),
            "During most of training it is similar regardless of the token; how similar is ours.",
            kind="ours",
        ),
        Claim(
            "odd-back",
            "When the second drop begins, a quarter of the gap below unigrams, the effective "
            "positional encoding has more on an odd number of tokens back: even entries from the "
            "fourth to the eighth exceed odd ones by more than 0.05 of their sum.",
            "TH §8.3.2, Fig. 8.3, E.7",
            Rule(AtGap("attention1_even_odd", 0.75), EACH, Median(), above=0.05),
            "Shortly before the second drop the positional embeddings show the even/odd pattern "
            "for the first positions; the margin is ours.",
            kind="paper",
        ),
    ),
    figures={"attention": attention_maps, "positions": positions},
)
