"""IH-8: more than three states [TH Fig. E.4], with bands that mean the same for any number."""

from __future__ import annotations

from petridish.chapters.induction.figures import phases
from petridish.chapters.induction.measures import ChangeOverDrop, GapAtEnd, GapTime
from petridish.chapters.induction.phases import EACH, KLS, LOOKED_AT, MORE, chains, of_more_states
from petridish.chapters.induction.rungs import AtRung, RungTime
from petridish.experiment import Experiment
from petridish.rules import Claim, Each, InOrder, Over, Rule
from petridish.statistics.estimators import Median, Share
from petridish.sweeps import Arms

FEWER = Each(("arm",), only={"arm": ("k = 4", "k = 5")})
EIGHT = Each(("arm",), only={"arm": "k = 8"})
SMALL = {
    f"k = {k}": chains(k, 30, rate=3e-3, steps=100, every=10, seeds=2, n_test=64) for k in (4, 5, 8)
}
SOURCE = "TH Fig. E.4"
SAID = (
    "The results extend to more symbols than two or three, with more than 100 tokens; in either "
    "case there was a plateau. How many symbols is not printed."
)
MORE_STATES = Experiment(
    id="IH-8",
    title="More than three states: which of the phases are seen",
    source=SOURCE,
    scales={
        "smoke": Arms(SMALL),
        "laptop": Arms(MORE),
        "paper": Arms(of_more_states(60, LOOKED_AT)),
    },
    claims=(
        Claim(
            "order",
            "Of the uniform, the unigram and the bigram strategy, the predictions of four and of "
            "five states come nearest to one after the other, in this order, in more than two of "
            "three seeds.",
            SOURCE,
            Rule(InOrder(KLS), FEWER, Share(), above=2 / 3),
            SAID,
        ),
        Claim(
            "order-eight",
            "So do those of eight states at 200 tokens.",
            SOURCE,
            Rule(InOrder(KLS), EIGHT, Share(), above=2 / 3),
            f"{SAID} With seeds 0 to 19 it had been contradicted.",
        ),
        Claim(
            "plateau",
            "More than half of the time until the loss has left the unigrams' is spent near it: "
            "above by less than a quarter of the way from the start, below by less than a quarter "
            "of the gap to bigrams.",
            SOURCE,
            Rule(Over(RungTime(1.25), GapTime(0.75)), EACH, Median(), below=0.5),
            f"{SAID} How long is long, and how near, is ours.",
        ),
        Claim(
            "leaves",
            "Over the second drop KL(unigram ‖ network) rises.",
            SOURCE,
            Rule(ChangeOverDrop("test_kl_unigram"), EACH, Median(), above=0.0),
            "Around the second drop one of the two distances decreases, while the other increases.",
        ),
        Claim(
            "comes",
            "Over the second drop KL(bigram ‖ network) falls.",
            SOURCE,
            Rule(ChangeOverDrop("test_kl_bigram"), EACH, Median(), below=0.0),
            "As above.",
        ),
        Claim(
            "near",
            "In the end the loss of four and of five states lies above that of bigrams by less "
            "than a quarter of the gap between unigrams and bigrams.",
            SOURCE,
            Rule(GapAtEnd(), FEWER, Median(), below=0.25),
            "All models converge near the Bayes optimal solution; how near is ours.",
        ),
        Claim(
            "near-eight",
            "So does that of eight states at 200 tokens.",
            SOURCE,
            Rule(GapAtEnd(), EIGHT, Median(), below=0.25),
            "As above. With seeds 0 to 19 it had been contradicted.",
        ),
        Claim(
            "independent",
            "When the loss has come three quarters of the way from its start to the unigrams', "
            "that on independent tokens has fallen by more than three quarters of what it was.",
            "TH Fig. E.6",
            Rule(AtRung("iid_kl_truth", 1.25, relative=True), EACH, Median(), below=0.25),
            "The loss quickly drops to the level of the unigram algorithm.",
        ),
        Claim(
            "doubly",
            "At that time the loss on doubly stochastic chains is still more than nine tenths of "
            "what it was.",
            "TH Fig. E.6",
            Rule(AtRung("doubly_kl_truth", 1.25, relative=True), EACH, Median(), above=0.9),
            "As above; unigram based guesses are as good as guessing uniformly.",
        ),
    ),
    figures={"phases": phases},
)
