"""What is to be learned, one file per family."""

from petridish.tasks.base import (
    Examples,
    Finite,
    HasCentres,
    HasDirections,
    HasHypotheses,
    HasParts,
    HasStrategies,
    LimitsData,
    Task,
)
from petridish.tasks.biased import BiasedAnd, BiasedBits
from petridish.tasks.boolean import SparseAnd, SparseMajority, SparseOr, TruthTable
from petridish.tasks.clusters import HiddenLabels, Hypercube
from petridish.tasks.dictionary import Dictionary
from petridish.tasks.domain import Bits, Classes, Domain, OneHot, Reals, Tokens, Values
from petridish.tasks.group import GroupProduct
from petridish.tasks.images import Images, find_images
from petridish.tasks.injected import Injected
from petridish.tasks.markov import MarkovChains
from petridish.tasks.mixed import Mixed
from petridish.tasks.ngrams import NGrams
from petridish.tasks.parity import SparseParity
from petridish.tasks.table import Table

TASKS: dict[str, type] = {
    task.name: task
    for task in (
        *(SparseParity, SparseAnd, SparseOr, SparseMajority, TruthTable, Table, GroupProduct),
        *(
            BiasedAnd,
            BiasedBits,
            Dictionary,
            MarkovChains,
            HiddenLabels,
            Hypercube,
            Images,
            Injected,
        ),
        *(Mixed, NGrams),
    )
}

__all__ = [
    "TASKS",
    "BiasedAnd",
    "BiasedBits",
    "Bits",
    "Classes",
    "Dictionary",
    "Domain",
    "Examples",
    "Finite",
    "GroupProduct",
    "HasCentres",
    "HasDirections",
    "HasHypotheses",
    "HasParts",
    "HasStrategies",
    "HiddenLabels",
    "Hypercube",
    "Images",
    "Injected",
    "LimitsData",
    "MarkovChains",
    "Mixed",
    "NGrams",
    "OneHot",
    "Reals",
    "SparseAnd",
    "SparseMajority",
    "SparseOr",
    "SparseParity",
    "Table",
    "Task",
    "Tokens",
    "TruthTable",
    "Values",
    "find_images",
]
