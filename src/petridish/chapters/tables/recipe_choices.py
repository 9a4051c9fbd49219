"""PF-6C: what PF says of the grid of its networks on tables: depth, sparsity, decay [PF App. C.3].

With the SGD that App. C.3 takes over from C.1, at the smallest samples, where PF's effects are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from petridish.chapters.tables.choice_rules import HardlyMatters, NearlyUniformlyWorse
from petridish.chapters.tables.experiments import BUNDLED, PUBLISHED, networks, there, whole_grid
from petridish.chapters.tables.figures import tabular_curves
from petridish.chapters.tables.samples import at
from petridish.chapters.tables.summaries import mean_errors
from petridish.experiment import Experiment
from petridish.models import Sparse
from petridish.rules.claims import Claim
from petridish.sweeps import Sweep
from petridish.tasks import Table
from petridish.tasks.table import find_tables
from petridish.training import SGD

# «In all of these settings»: of the paper's grid. In a corner of it, where 100 steps leave every
# network near chance, a verdict would be one on how slowly our reading of the recipe starts.
WHOLE = ("paper",)


def grid(cells: Sequence[tuple[Table, int]], *, width: int, trials: range) -> Iterator[Sweep]:
    """Sweep depths 1 to 3 and two sparsities, without decay and, for one network, with it."""
    choices = [
        ((1, 2, 3), (Sparse(2), Sparse(4)), 0.0),
        ((2,), (Sparse(2),), 0.01),
    ]
    for table, m in cells:
        for depths, inits, decay in choices:
            yield networks(
                table,
                m,
                widths=(width,),
                depths=depths,
                inits=inits,
                decays=(decay,),
                optimisers=(SGD(),),
                trials=trials,
            )


def pf6c(tables: Sequence[Table]) -> Experiment:
    """Make the experiment for the tables that are there."""
    bundled = [(table, m) for table in BUNDLED for m in (30, 120)]
    return Experiment(
        id="PF-6C",
        title="Networks on real tables: depth, sparsity and weight decay",
        source="PF App. C.3",
        scales=there(
            smoke=grid(bundled, width=8, trials=range(4)),
            laptop=grid(at(tables, (60, 200)), width=100, trials=range(10)),
            wide=grid(at(tables, (60, 200)), width=1000, trials=range(10)),
            paper=whole_grid(tables),
        ),
        claims=(
            Claim(
                "depth",
                "Networks of depth 1 are nearly uniformly worse than deeper ones of their width.",
                "PF App. C.3",
                NearlyUniformlyWorse("depth", 1, (2, 3)),
                "Depth-1 networks are nearly uniformly outperformed by deeper ones of the same "
                "width.",
                kind="paper",
                judged_at=WHOLE,
            ),
            Claim(
                "s=4",
                "4-sparse starts are nearly uniformly worse than 2-sparse ones.",
                "PF App. C.3",
                NearlyUniformlyWorse("init", "sparse(4)", ("sparse(2)",)),
                "4-sparse initialisation is nearly uniformly outperformed by 2-sparse.",
                kind="paper",
                judged_at=WHOLE,
            ),
            Claim(
                "decay",
                "Weight decay of 0 and of 0.01 lead to the same error, up to one point.",
                "PF App. C.3",
                HardlyMatters("training.weight_decay", 0.01, (0.0,)),
                "In these settings, this hyperparameter had a minimal effect.",
                # η λ times the 100 steps of a small sample is 0.001: the recipe itself implies it.
                kind="check",
            ),
        ),
        figures={"curves": tabular_curves},
        tables={"mean-errors": mean_errors},
        located=pf6c_here,
    )


def pf6c_here() -> Experiment:
    """Return PF-6C on the tables that are there."""
    return pf6c(find_tables() or PUBLISHED)


CHOICES = pf6c(PUBLISHED)
