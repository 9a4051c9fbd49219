"""IH-9: which findings hold in the published code's variant, and with a logarithmic readout."""

from __future__ import annotations

from dataclasses import replace

from petridish.chapters.induction.arm_figures import losses_of_arms
from petridish.chapters.induction.figures import phases, positions
from petridish.chapters.induction.measures import AtGap, GapAtEnd, GapTime, ShareOfTime
from petridish.chapters.induction.phases import GIVEN, KLS, LOOKED_AT, ONE_BACK, chains
from petridish.experiment import Experiment
from petridish.models import CausalTransformer, Model, PublishedInduction
from petridish.rules import Claim, Each, InOrder, Over, PairedBySeed, Rule, TimeTo
from petridish.statistics.estimators import Median, Share
from petridish.sweeps import Arms, Sweep
from petridish.training import AdamW, Piece, Schedule, Training

TEXT, PUBLISHED, LOG = "the text's", "published", "logarithmic readout"
LINEAR = ("attention*.weight", "output.weight")  # neither embeddings nor layer norms decay
DECAY = Schedule((Piece(decay=(*((name, 1.0) for name in LINEAR), ("*", 0.0))),))


def of_the_code(training: Training) -> Training:
    """Return the published code's training: β₂ = 0.95, and a decay of 0.1 on linear maps."""
    return replace(training, optimiser=AdamW(beta2=0.95), weight_decay=0.1, schedule=DECAY)


def variants(base: Sweep) -> Arms:
    """Declare the text's model, the published code's with its training, and another readout."""

    def with_model(model: Model, training: Training) -> Sweep:
        return replace(base, base=replace(base.base, model=model, training=training))

    own = base.base.training
    return Arms(
        {
            TEXT: base,
            PUBLISHED: with_model(PublishedInduction(), of_the_code(own)),
            LOG: with_model(CausalTransformer(readout="log"), own),
        }
    )


THERE = Each(("arm",), only={"arm": PUBLISHED})
SOURCE = "TH §8.2.3, §8.3"
VARIANTS = Experiment(
    id="IH-9",
    title="Variants of the transformer: what depends on them",
    source=SOURCE,
    scales={
        "smoke": variants(chains(3, 30, rate=3e-3, steps=100, every=10, seeds=2, n_test=64)),
        "laptop": variants(
            chains(3, 100, rate=5e-4, steps=2_000, every=50, seeds=10, first=LOOKED_AT)
        ),
        "paper": variants(
            chains(3, 100, rate=5e-4, steps=2_000, every=50, seeds=40, first=LOOKED_AT)
        ),
    },
    claims=(
        Claim(
            "order",
            "The published variant too comes nearest to uniform, unigrams and bigrams one after "
            "the other, in more than half of the seeds.",
            SOURCE,
            Rule(InOrder(KLS), THERE, Share(), above=0.5),
            "The figures are the published code's.",
        ),
        Claim(
            "later",
            "It is half-way from unigrams to bigrams later than the text's model, seed by seed.",
            SOURCE,
            Rule(GapTime(0.5), PairedBySeed(PUBLISHED, TEXT, by="ratio"), Median(), above=1.0),
            "Not said; first looks had its plateau last longer.",
        ),
        Claim(
            "near",
            "In the end its loss lies above that of bigrams by less than a quarter of the gap.",
            SOURCE,
            Rule(GapAtEnd(), THERE, Median(), below=0.25),
            "All models converge near the Bayes optimal solution; how near is ours.",
        ),
        Claim(
            "second-first",
            "In it too the second layer is learned first: given exact attention to the previous "
            "token in the first, it is half-way to the successors before the first is half-way.",
            "TH §8.3.2",
            Rule(
                Over(TimeTo(GIVEN, above=0.5), TimeTo(ONE_BACK, above=0.5)),
                THERE,
                Median(),
                below=1.0,
            ),
            "Not so clear in transformers as in the minimal model.",
        ),
        Claim(
            "odd-back",
            "In it too, when the second drop begins, v̂ has more on an odd number of tokens back: "
            "even entries from the fourth to the eighth exceed odd ones by more than 0.05 of their "
            "sum.",
            "TH §8.3.2, Fig. 8.3",
            Rule(AtGap("attention1_even_odd", 0.75), THERE, Median(), above=0.05),
            "Shortly before the second drop the positional embeddings show the pattern.",
        ),
        Claim(
            "any-token",
            "In it too v̂ hardly depends on the token: at more than half of the evaluations no two "
            "tokens' differ by more than 0.2 (total variation).",
            "TH §8.3.2",
            Rule(ShareOfTime("attention1_token_spread", 0.2), THERE, Median(), above=0.5),
            "During most of training it is similar regardless of the token.",
        ),
        Claim(
            "log-nearer",
            "With outputs that can take logarithms the text's model ends nearer to bigrams, seed "
            "by seed.",
            "TH §8.2.3",
            Rule(GapAtEnd(), PairedBySeed(LOG, TEXT), Median(), below=0.0),
            "An affine readout can come close to the Bayes optimal loss (footnote).",
        ),
    ),
    figures={"losses": losses_of_arms, "phases": phases, "positions": positions},
)
