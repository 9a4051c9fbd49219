"""PF-6: wide and sparsely initialised MLPs on real tables, beside forests and boosting.

The protocol is PF's [App. C.3]: a table is standardised as a whole, a tenth of its rows is the test
sample, and each trial draws anew that tenth and the training rows, a fraction of the others.
Networks train for 100 epochs of batches of 256 at η = 10^-3. PF takes over «the same architectural
choices» of its App. C.1, which lists hyperparameters for SGD: that is the scale «sgd», at which
(2T) and (3T) are to be judged. Momentum and Adam, at the other scales, are arms beside it: Adam
comes nearest to PF's Table 2 at width 300 (docs/results/tables.md). Cross entropy is our choice.

Which tables there are depends on where petridish looks for them, so that the experiments are made
for the tables found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from petridish.chapters.tables.figures import gain_by_sample, tabular_curves
from petridish.chapters.tables.method_figures import critical_difference, method_errors
from petridish.chapters.tables.published import TABLE_2
from petridish.chapters.tables.rules import (
    Competitive,
    LowerError,
    MostAtSmallSamples,
    SometimesBeats,
    SparseHelps,
    WidthHelps,
)
from petridish.chapters.tables.samples import at, at_fractions
from petridish.chapters.tables.sometimes import SparseSometimesHelps
from petridish.chapters.tables.summaries import fit_seconds, mean_errors, table_2
from petridish.estimator.contenders import (
    Contender,
    RandomForest,
    RealMLP,
    SparseMLP,
    TabM,
)
from petridish.estimator.rival_settings import FOREST_GRID, FOREST_LAPTOP, SEARCH
from petridish.experiment import Experiment
from petridish.models import MLP, Init, Sparse, Uniform
from petridish.rules.claims import Claim
from petridish.sweeps import Sweep, joined
from petridish.tasks import Table
from petridish.tasks.benchmark_tables import BENCHMARK
from petridish.tasks.table import find_tables
from petridish.training import SGD, Adam, AdamW, CrossEntropy, Data, Evaluation, RunSpec, Training

EPOCHS, BATCH = 100, 256
RECIPE = ("sgd", "paper")
"""The scales with the paper's optimiser; the paper's claims are judged as such at these alone."""
MOST_ROWS = 20_000  # of a sample at the scale «fractions»: 100 epochs on more take minutes
DENSE_AND_SPARSE: tuple[Init, ...] = (Uniform(), Sparse(2))
RIVALS: tuple[Contender, ...] = (
    *(forest for forest in FOREST_LAPTOP if forest.max_depth != 10),
    *(configurations[0] for configurations in SEARCH.values()),
)
"""Eight forests of 100 trees, and the default of each library of boosting."""
CHOICE = ("credit", "covertype", "MagicTelescope", "MiniBooNE", "jannis", "Bioresponse")
CONFIRMATION = (
    *("electricity", "pol", "bank-marketing", "Diabetes130US"),
    *("default-of-credit-card-clients", "california"),
)
"""The estimator's defaults were chosen on every other table, and are judged on the rest."""
BUNDLED = (
    Table("breast_cancer", 569, 30, "dcd8ab80c6bc2526"),
    Table("wine", 178, 13, "d993106c432fc6c9", 3),
    Table("iris", 150, 4, "d4801f206977d554", 3),
)
UNSEEN = "a" * 16  # the digest of a table that is not there
PUBLISHED = tuple(Table(t.name, t.rows, t.features, UNSEEN) for t in BENCHMARK)
"""The tables as OpenML has them, for a list of what could be run."""


def networks(
    table: Table,
    m: int,
    *,
    widths: Sequence[int],
    trials: range,
    depths: Sequence[int] = (2,),
    inits: Sequence[Init] = DENSE_AND_SPARSE,
    decays: Sequence[float] = (0.0,),
    optimisers: Sequence[SGD | Adam | AdamW] = (Adam(),),
) -> Sweep:
    """Sweep MLPs on m rows of a table; the hidden layers of a deeper one are all of its width."""
    axes = {
        "training.optimiser": tuple(optimisers),
        "training.weight_decay": tuple(decays),
        "model": _mlps(tuple(widths), tuple(depths)),
        "init": tuple(inits),
        "seed": trials,
    }
    return Sweep(fit(table, m), axes)


@cache
def _mlps(widths: tuple[int, ...], depths: tuple[int, ...]) -> list[MLP]:
    return [MLP(width, deeper=(width,) * (depth - 1)) for depth in depths for width in widths]


def contenders(table: Table, m: int, *, models: Sequence[Contender], trials: range) -> Sweep:
    """Sweep models that fit themselves on m rows of a table."""
    training = Training(loss=CrossEntropy(), steps=1, target_error=None)
    base = replace(fit(table, m), model=models[0], training=training)
    return Sweep(base, {"model": tuple(models), "seed": trials})


@cache  # every grid asks for each several times
def fit(table: Table, m: int) -> RunSpec:
    """Return the run that a table's sweeps start from."""
    steps = EPOCHS * -(-m // BATCH)
    return RunSpec(
        task=table,
        data=Data(m=m, n_test=table.n_test_rows),
        model=MLP(100, deeper=(100,)),
        training=Training(
            loss=CrossEntropy(),
            optimiser=Adam(),
            learning_rate=1e-3,
            weight_decay=0.0,
            batch_size=BATCH,
            batches="epochs",
            steps=steps,
            target_error=None,
        ),
        evaluation=Evaluation(every=steps, fitted_error=None),
    )


def compared(
    cells: Iterable[tuple[Table, int]],
    models: Sequence[Contender],
    *,
    trials: range,
    widths: Sequence[int] | None = None,
) -> Iterator[Sweep]:
    """Sweep networks and other models on the same splits of every table and m.

    The default widths are those that a laptop can train: 1000 only on small samples, where the
    paper sees the effects.
    """
    for table, m in cells:
        feasible = (100, 300, 1000) if m <= 400 else (100, 300)
        yield networks(table, m, widths=widths or feasible, trials=trials)
        yield contenders(table, m, models=models, trials=trials)


def whole_grid(tables: Sequence[Table]) -> Iterator[Sweep]:
    """Sweep all that the paper did: fractions, widths, depths, starts, decays, forests.

    With the SGD that App. C.3 takes over from C.1, as at the scale `sgd`.
    """
    trials = range(100)
    very_wide = [MLP(100_000, deeper=(10_000,)), MLP(10_000, deeper=(100_000,))]
    for table, m in at(tables):
        yield networks(
            table,
            m,
            widths=(100, 300, 1000, 3000, 10_000, 30_000),
            depths=(1, 2, 3),
            inits=(*DENSE_AND_SPARSE, Sparse(4)),
            decays=(0.0, 0.01),
            optimisers=(SGD(),),
            trials=trials,
        )
        yield contenders(table, m, models=FOREST_GRID, trials=trials)
        if table.dataset not in ("electricity", "Higgs"):  # as the paper: tasks 2 and 9
            axes = {
                "training.optimiser": (SGD(),),
                "model": very_wide,
                "init": DENSE_AND_SPARSE,
                "seed": trials,
            }
            yield Sweep(fit(table, m), axes)


def optimisers(tables: Sequence[Table]) -> Iterator[Sweep]:
    """Sweep the optimisers that the paper may have meant, at 1 % and 10 % of small tables."""
    # Of MiniBooNE only a part is available.
    small = [t for t in tables if t.rows <= 25_000 and t.dataset != "MiniBooNE"]
    for table, m in at_fractions(small, (0.01, 0.1)):
        yield networks(
            table,
            m,
            widths=(300,),
            depths=(2, 3),
            inits=(Sparse(2),),
            optimisers=(SGD(), SGD(0.9), Adam()),
            trials=range(5),
        )


def descended(tables: Sequence[Table], optimiser: SGD) -> Iterator[Sweep]:
    """Sweep widths and starts under SGD, with which width may help more than with Adam."""
    for table, m in at(tables, (60, 200)):
        widths = (100, 300, 1000)
        yield networks(table, m, widths=widths, optimisers=(optimiser,), trials=range(10))


def smoke(models: Sequence[Contender]) -> Iterator[Sweep]:
    """Sweep tiny networks and a few other models on tables that come with scikit-learn."""
    cells = [(table, m) for table in BUNDLED for m in (30, 120)]
    return compared(cells, models, widths=(8, 32), trials=range(4))


def there(**scales: Iterable[Sweep]) -> dict[str, Sweep]:
    """Return the scales that have runs on some table, each as one sweep."""
    found = {name: list(parts) for name, parts in scales.items()}
    return {name: joined(parts) for name, parts in found.items() if parts}


def pf6(tables: Sequence[Table]) -> Experiment:
    """Make the experiment of PF §4.2 for the tables that are there."""
    return Experiment(
        id="PF-6",
        title="Real tables: width, sparse starts, and forests",
        source="PF §4.2, App. C.3, Fig. 3, Fig. 6, Table 2",
        scales=there(
            smoke=smoke((RandomForest(20), RandomForest(20, 3))),
            laptop=compared(at(tables, (60, 200, 600, 2000)), RIVALS, trials=range(10)),
            # The fractions of Table 2, with a width, forests and samples that a laptop can train.
            fractions=compared(
                at_fractions(tables, (1, 0.1, 0.01), MOST_ROWS),
                RIVALS[:4],
                widths=(300,),
                trials=range(3),
            ),
            optimisers=optimisers(tables),
            sgd=descended(tables, SGD()),
            momentum=descended(tables, SGD(0.9)),
            paper=whole_grid(tables),
        ),
        claims=(
            Claim(
                "2T",
                "Wider networks err less on small tables, nearly monotonically.",
                "PF §4.2 (2T)",
                WidthHelps(),
                "Width yields nearly monotonic end-to-end benefits (Fig. 3, Fig. 6).",
                kind="paper",
                judged_at=RECIPE,
            ),
            Claim(
                "3T",
                "The sparse start sometimes lowers the error of the widest networks.",
                "PF §4.2 (3T)",
                SparseSometimesHelps(),
                "Sparse axis-aligned initialisation sometimes improves performance.",
                kind="paper",
                judged_at=RECIPE,
            ),
            Claim(
                "3M",
                "The sparse start lowers the error of the widest networks on average over tables.",
                "beyond PF §4.2 (3T)",
                SparseHelps(),
                "Sparse axis-aligned initialisation sometimes improves performance.",
                kind="ours",
            ),
            Claim(
                "3S",
                "It does so most at the smallest samples.",
                "PF §4.2 (3T)",
                MostAtSmallSamples(),
                "The effect is especially pronounced on tables downsampled by orders of magnitude.",
                kind="paper",
                judged_at=RECIPE,
            ),
            Claim(
                "RF",
                "The best network is at most one percentage point worse than the best forest.",
                "PF App. C.3, Table 2",
                Competitive(family="mlp", than="random_forest"),
                "Wide or sparsely initialised MLPs are competitive with tree-based methods, in "
                "some (but not all) cases. Its Table 2 gives by this rule −0.41 points "
                "[−3.28, 2.45] on full tables, +0.75 [−1.01, 2.51] at 10 % and +1.88 "
                "[−0.10, 3.85] at 1 %.",
                kind="ours",
            ),
            Claim(
                "RB",
                "On some table and sample size it is better.",
                "PF §4.2, Fig. 3",
                SometimesBeats(family="mlp", than="random_forest"),
                "In some settings the best MLPs outperform tuned random forests: in 14 of the 48 "
                "cells of Table 2.",
                kind="paper",
                judged_at=("paper",),  # `sgd` has no forests
            ),
        ),
        figures={"curves": tabular_curves, "gains": gain_by_sample, "ranks": critical_difference},
        tables={
            "table-2": lambda runs: table_2(runs, TABLE_2),
            "mean-errors": mean_errors,
            "seconds": fit_seconds,
        },
        located=pf6_here,
    )


def pf6_here() -> Experiment:
    """Return PF-6 on the tables that are there."""
    return pf6(find_tables() or PUBLISHED)


def default_against(
    tables: Sequence[Table], models: Sequence[Contender], *, trials: int
) -> Iterator[Sweep]:
    """Sweep the estimator's default, the paper's recipe and rivals on 100 to 2000 rows.

    Tables that took part in the choice of the default do not take part here. The first ten trials
    are left out: they were seen with an earlier default before this one was chosen.
    """
    others = [table for table in tables if table.dataset not in CHOICE]
    cells = at(others, (200, 600, 2000))
    return compared(cells, (SparseMLP(), *models), trials=range(10, 10 + trials))


SEARCHED = tuple(model for configurations in SEARCH.values() for model in configurations)
TUNED: tuple[Contender, ...] = (
    *RIVALS,
    RandomForest(1000),
    *(configurations[place] for configurations in SEARCH.values() for place in (2, 5)),
)
"""Nine forests, one of 1000 trees, and three configurations of each library of boosting."""


def pf6b(tables: Sequence[Table]) -> Experiment:
    """Make the comparison of the estimator's default with its rivals."""

    def than(rival: str, margin: float = 0.0) -> LowerError:
        return LowerError("sparse_mlp", rival, CONFIRMATION, (100.0, 2000.0), margin)

    return Experiment(
        id="PF-6B",
        title="One default for small tables, against the paper's recipe, forests and boosting",
        source="beyond PF §4.2",
        scales=there(
            smoke=smoke((SparseMLP(n_members=2), RandomForest(20), RandomForest(20, 3))),
            laptop=default_against(tables, TUNED, trials=10),
            search=default_against(
                tables, (*TUNED, *(m for m in SEARCHED if m not in TUNED)), trials=30
            ),
            nets=default_against(tables, (RealMLP(), TabM()), trials=3),
        ),
        claims=(
            Claim(
                "F",
                "The default errs less than the best of the forests run, chosen in hindsight, on "
                "tables that took no part in its choice.",
                "beyond PF §4.2",
                than("random_forest"),
                kind="ours",
            ),
            Claim(
                "P",
                "It errs less there than the best of the paper's networks that were run.",
                "beyond PF §4.2",
                than("mlp"),
                kind="ours",
            ),
            Claim(
                "B",
                "It is within one percentage point there of the best LightGBM that was run.",
                "beyond PF §4.2",
                than("lightgbm", margin=1.0),
                kind="ours",
            ),
            Claim(
                "N",
                "It is within one percentage point there of RealMLP with its tuned defaults.",
                "beyond PF §4.2",
                than("realmlp", margin=1.0),
                kind="ours",
            ),
        ),
        figures={"errors": method_errors, "ranks": critical_difference},
        tables={"mean-errors": mean_errors, "seconds": fit_seconds},
        located=pf6b_here,
    )


def pf6b_here() -> Experiment:
    """Return PF-6B on the tables that are there."""
    return pf6b(find_tables() or PUBLISHED)


TABULAR = pf6(PUBLISHED)
DEFAULT = pf6b(PUBLISHED)
