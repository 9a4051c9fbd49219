"""PF-6 and PF-6B as declared: the paper's protocol, and which tables take part."""

from __future__ import annotations

import pytest

from petridish.chapters.tables.experiments import (
    CHOICE,
    CONFIRMATION,
    PUBLISHED,
    fit,
    pf6,
    pf6b,
)
from petridish.chapters.tables.recipe_choices import pf6c
from petridish.chapters.tables.samples import samples
from petridish.estimator.contenders import SparseMLP
from petridish.models import MLP, Sparse, Uniform
from petridish.tasks import Table
from petridish.tasks.benchmark_tables import BENCHMARK
from petridish.training import SGD, Adam

NAMED = {table.dataset: table for table in PUBLISHED}


def test_a_run_follows_the_papers_protocol() -> None:
    """Of 15 043 rows 150 for 100 epochs of one batch, and 1504 of six [PF App. C.3]."""
    table = Table("credit", 16_714, 10, "a" * 16)
    for m, steps in ((150, 100), (1504, 600)):
        spec = fit(table, m)

        assert (spec.training.batch_size, spec.training.batches) == (256, "epochs")
        assert (spec.training.learning_rate, spec.training.weight_decay) == (1e-3, 0.0)
        assert (spec.training.optimiser, spec.training.steps) == (Adam(), steps)
        assert spec.data.n_test == 1671


def test_the_papers_claims_are_judged_with_the_papers_optimiser() -> None:
    """SGD, from C.1, in every network of a scale at which a claim counts as the paper's."""
    table = (Table("credit", 16_714, 10, "a" * 16),)
    for experiment in (pf6(table), pf6c(table)):
        scales = {name for claim in experiment.claims for name in claim.judged_at}
        assert "paper" in scales
        for name in scales:
            networks = [
                spec for spec, _ in experiment.scales[name].cells() if isinstance(spec.model, MLP)
            ]
            assert networks
            assert {spec.training.optimiser for spec in networks} == {SGD()}


def test_what_is_said_of_all_settings_is_judged_in_all_of_them() -> None:
    """App. C.3's depths 1 to 3, sparsities and decays, on every fraction of a table."""
    table = Table("credit", 16_714, 10, "a" * 16)
    cells = [spec for spec, _ in pf6c((table,)).scales["paper"].cells()]
    networks = [spec for spec in cells if isinstance(spec.model, MLP)]

    assert {spec.data.m for spec in networks} == {float(m) for m in samples(table)}
    models = [spec.model for spec in cells]
    assert {1 + len(each.deeper) for each in models if isinstance(each, MLP)} == {1, 2, 3}
    assert {spec.training.weight_decay for spec in networks} == {0.0, 0.01}
    assert {spec.init for spec in networks} == {Uniform(), Sparse(2), Sparse(4)}


def test_samples_are_fractions_of_the_papers() -> None:
    """0.3 %, 1 %, 6 % and 10 % of 15 043 rows are nearest to 60, 200, 600 and 2000."""
    table = Table("credit", 16_714, 10, "a" * 16)

    assert samples(table, (60, 200, 600, 2000)) == [90, 150, 451, 1504]
    assert samples(table)[-1] == table.n_train_rows


def test_no_table_both_chooses_and_confirms() -> None:
    """Both are of the benchmark; together they are the twelve that were there."""
    assert not {*CHOICE} & {*CONFIRMATION}
    assert {*CHOICE, *CONFIRMATION} < {table.name for table in BENCHMARK}
    assert (len(CHOICE), len(CONFIRMATION)) == (6, 6)


def test_the_default_meets_no_table_of_its_choice_and_no_trial_seen_before() -> None:
    """In every scale on real tables: the trials start at 10."""
    scales = pf6b(PUBLISHED).scales
    for name in ("laptop", "search", "nets"):
        cells = list(scales[name].cells())
        tables = [spec.task for spec, _ in cells if isinstance(spec.task, Table)]
        assert len(tables) == len(cells)
        assert not {table.dataset for table in tables} & {*CHOICE}
        assert min(seed for _, seeds in cells for seed in seeds) == 10
        assert any(spec.model == SparseMLP() for spec, _ in cells)


@pytest.mark.parametrize(
    ("experiment", "table", "scales"),
    [
        (pf6, "electricity", ["smoke", "laptop", "fractions", "sgd", "momentum", "paper"]),
        (pf6, "credit", ["smoke", "laptop", "fractions", "optimisers", "sgd", "momentum", "paper"]),
        (pf6b, "credit", ["smoke"]),
        (pf6b, "pol", ["smoke", "laptop", "search", "nets"]),
    ],
)
def test_one_table_is_enough(experiment: object, table: str, scales: list[str]) -> None:
    """A scale for which the tables that are there have no part is left out, and no other."""
    assert [*experiment([NAMED[table]]).scales] == scales  # type: ignore[operator] # a function
