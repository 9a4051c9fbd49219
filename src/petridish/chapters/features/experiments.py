"""TH Ch. 7: features that emerge because they maximise a margin (FE-1, FE-2, FE-4)."""

from __future__ import annotations

from petridish.chapters.features.exact_rules import (
    ConstructionsAttain,
    DenseFallsShort,
    NoNeuronBeats,
)
from petridish.chapters.features.feature_rules import (
    EveryFeature,
    FeatureNorms,
    NearUniform,
)
from petridish.chapters.features.figures import (
    constructions,
    embeddings,
    frequency_bars,
    margin_curves,
    parity_neurons,
    phase_relation,
    power_histograms,
)
from petridish.chapters.features.rules import (
    NeuronsShare,
    OnTheMargin,
    PowerNear,
    ReachesMargin,
    TrainedBeatDense,
)
from petridish.chapters.features.summaries import (
    feature_table,
    margin_table,
    neuron_table,
)
from petridish.chapters.features.trainings import (
    addition,
    moduli,
    parity,
)
from petridish.experiment import Experiment
from petridish.rules import Claim

ON_THE_MARGIN = "All points are on the margin for any maximum margin solution."
TABLES = {"margins": margin_table, "features": feature_table, "neurons": neuron_table}

ADDITION = Experiment(
    id="FE-1",
    title="Modular addition: neurons become single frequencies, which maximises the margin",
    source="TH §7.4, Fig. 7.1, 7.4, D.1",
    scales={
        "smoke": addition(
            5, width=40, seeds=2, steps=3_000, every=100, doubled=(200, 400, 600, 800)
        ),
        "laptop": addition(23),
        "paper": addition(71),
    },
    claims=(
        Claim(
            "M",
            "The normalised L_{2,3} margin of trained networks with squares approaches γ*.",
            "TH Theorem 7.7, Fig. 7.1",
            ReachesMargin(),
            "The network asymptotically reaches the maximum margin √(2/27) / (√p (p − 1)).",
            kind="paper",
        ),
        Claim(
            "F",
            "With squares, every neuron has one frequency.",
            "TH Theorem 7.7, Fig. 7.4c",
            NeuronsShare("one feature", by="number"),
            "The final maximum power is almost exactly 1 for all the neurons.",
            kind="paper",
        ),
        Claim(
            "R",
            "With ReLU, neurons are nearly of one frequency, but not quite.",
            "TH Fig. 7.4b",
            PowerNear(0.85, 0.95),
            "The final maximum power is concentrated around 0.9.",
            kind="paper",
        ),
        Claim(
            "P",
            "With squares, the phases of a neuron have θ_u + θ_v = θ_w.",
            "TH Theorem 7.7",
            NeuronsShare("phases"),
            "Every network of maximum margin has it; no figure.",
            kind="paper",
        ),
        Claim(
            "E",
            "With squares, u, v and w of a neuron have one size.",
            "TH Theorem 7.7",
            NeuronsShare("amplitudes"),
            "u, v and w are cosines with one scaling constant λ.",
            kind="paper",
        ),
        Claim(
            "A",
            "Every frequency has a neuron, with squares and with ReLU.",
            "TH Theorem 7.7, Fig. D.1",
            EveryFeature(activation=None),
            "At least one neuron in the network uses each frequency.",
            kind="paper",
        ),
        Claim(
            "N",
            "With squares, every frequency has at least a tenth of its share of the norm.",
            "TH Theorem 7.7",
            FeatureNorms(),
            "At least one neuron in the network uses each frequency.",
            kind="ours",
        ),
        Claim(
            "U",
            "Neurons are spread over the frequencies about evenly, with squares and with ReLU.",
            "TH Fig. D.1",
            NearUniform(),
            "The final distribution across frequencies is close to uniform.",
            kind="paper",
        ),
        Claim(
            "L",
            "With squares, every input comes to be on the margin.",
            "TH Lemma 7.6",
            OnTheMargin(),
            ON_THE_MARGIN,
            kind="ours",
        ),
    ),
    figures={
        "embeddings": embeddings,
        "margin": margin_curves,
        "power": power_histograms,
        "frequencies": frequency_bars,
        "phases": phase_relation,
    },
    tables=TABLES,
)

PARITY = Experiment(
    id="FE-2",
    title="Sparse parity: neurons come to see the relevant bits alone, all of one size",
    source="TH §7.5, Fig. 7.5",
    scales={
        "smoke": parity(5, 2, width=12, seeds=3, steps=2_000, every=100),
        "laptop": parity(10, 4, width=40, seeds=10),
        "paper": parity(10, 4, width=40, seeds=10),
    },
    claims=(
        Claim(
            "M",
            "The normalised L_{2,k+1} margin approaches γ* = k! √(2 (k+1)^−(k+1)).",
            "TH Theorem 7.8, Fig. 7.5b",
            ReachesMargin(),
            "The network approaches the theoretical maximum margin.",
            kind="paper",
        ),
        Claim(
            "S",
            "Neurons see the bits of S alone.",
            "TH Theorem 7.8, Fig. 7.5a",
            NeuronsShare("support"),
            "The support of every u is S.",
            kind="paper",
        ),
        Claim(
            "E",
            "On S, every |u_j| is the size of w.",
            "TH Theorem 7.8",
            NeuronsShare("sizes"),
            "|u_j| = ‖w‖ for every j in S.",
            kind="paper",
        ),
        Claim(
            "C",
            "w lies along ±(1, −1), with the sign of the product of u on S.",
            "TH Theorem 7.8",
            NeuronsShare("signs"),
            "w lies in the span of (1, −1), and (Π u_j)(w · (1, −1)) ≥ 0.",
            kind="paper",
        ),
        Claim(
            "L",
            "Every input comes to be on the margin.",
            "TH Lemma 7.4",
            OnTheMargin(),
            ON_THE_MARGIN,
            kind="ours",
        ),
    ),
    figures={"neurons": parity_neurons, "margin": margin_curves},
    tables={"margins": margin_table, "neurons": neuron_table},
)

EXACT = (3, 5, 7, 11, 23, 71)
PARITIES = ((3, 1), (5, 2), (6, 3), (10, 4), (8, 5))
CONSTRUCTIONS = Experiment(
    id="FE-4",
    title="Constructions: networks of maximum margin as exact weights, and what training finds",
    source="TH Theorems 7.7 to 7.9, §D.4, §D.6 to §D.9",
    scales={
        "smoke": moduli((5,), (1, 4), seeds=2, steps=3_000, every=100),
        "laptop": moduli((5, 7, 11, 13), (1, 2, 8), seeds=5, steps=20_000, every=200),
        "large": moduli(
            (5, 7, 11, 13, 17, 19, 23), (1, 2, 4, 8), seeds=10, steps=40_000, every=200
        ),
    },
    claims=(
        Claim(
            "C",
            "The constructions have their theorem's margin and width, every input on the margin.",
            "TH Theorems 7.7 to 7.9, §D.6.2, §D.7, Lemma D.16",
            ConstructionsAttain(
                EXACT, PARITIES, ("S3", "S4", "S5", "D5", "Z2xS3"), ("A4", "A5", "Q8")
            ),
            "For this network, every datapoint is on the margin.",
            kind="check",
        ),
        Claim(
            "B",
            "No network has a larger margin than γ*: no single neuron has more on average.",
            "TH Lemmas 7.2 to 7.6",
            NoNeuronBeats(PARITIES, ("Z7", "S3", "S4", "D5", "A4", "A5", "Q8")),
            "The neurons found are the exhaustive set of neurons for any maximum margin network.",
            kind="check",
        ),
        Claim(
            "D",
            "A dense network that is right everywhere has a smaller margin.",
            "TH §7.1, §D.4",
            DenseFallsShort(EXACT),
            "Such solutions have lower margin.",
            kind="check",
        ),
        Claim(
            "T",
            "Trained networks have larger margins than the dense one.",
            "TH §7.1",
            TrainedBeatDense(),
            "Such solutions have lower margin and thus are not reached by training.",
            kind="paper",
        ),
        Claim(
            "S",
            "Neurons of trained networks are sparse in Fourier space: each has one frequency.",
            "TH §7.1",
            NeuronsShare("one feature", by="number"),
            "Such solutions have lower margin and thus are not reached by training.",
            kind="paper",
        ),
    ),
    figures={"constructions": constructions, "margin": margin_curves},
    tables=TABLES,
)
