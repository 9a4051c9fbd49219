"""Forests, boosting and networks as models of runs, and the engine that fits them."""

from __future__ import annotations

import importlib.util
import inspect
import logging
import math
import threading
import warnings
from collections import Counter
from dataclasses import fields, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.choices import describe, parse
from petridish.errors import UserError
from petridish.estimator import contenders
from petridish.estimator.contenders import (
    Contender,
    HistGradientBoosting,
    LightGBM,
    LogisticRegression,
    RandomForest,
    RealMLP,
    SparseMLP,
    TabM,
    XGBoost,
)
from petridish.estimator.rival_settings import FOREST_GRID, FOREST_LAPTOP, SEARCH
from petridish.models import Model, parameters_of
from petridish.store.schema import to_table
from petridish.tasks import Domain, Reals, SparseParity, Values
from petridish.tasks.table import Table, find_table
from petridish.training import (
    CrossEntropy,
    Data,
    Outcome,
    RunSpec,
    Silent,
    Training,
    load_engine,
    run_key,
)
from petridish.training.engines.fit import train
from tests.cell_tables import CONTENDERS
from tests.domains import bits

HAS_PYTABKIT = importlib.util.find_spec("pytabkit") is not None
NETS: list[Contender] = [RealMLP(), TabM()]
QUICK: list[Contender] = [
    LogisticRegression(),
    RandomForest(20),
    HistGradientBoosting(20, min_samples_leaf=5),
    XGBoost(20, sampled=0.7),
    LightGBM(20, min_child_samples=5, sampled=0.7),
    SparseMLP(32, n_members=2, learning_rate=3e-3, batch_size=16, epochs=20),
]
HERE: list[Any] = [
    *QUICK,
    *(pytest.param(net, marks=pytest.mark.slow) for net in NETS if HAS_PYTABKIT),
]


@pytest.fixture(autouse=True)
def apart(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test see the user's own tables."""
    monkeypatch.delenv("PETRIDISH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def sample(m: int, seed: int = 0, dataset: str = "breast_cancer") -> tuple[Any, Any, Any, Any]:
    """Return training inputs and labels, test inputs and labels."""
    task = find_table(dataset)
    some = task.draw([seed], "train", 0, m)
    rest = task.draw([seed], "test", 0, task.n_test_rows)
    return some.x[0], some.labels[0], rest.x[0], rest.labels[0]


def spec_of(model: object, **changes: Any) -> RunSpec:
    """Return a run on the table that comes with scikit-learn."""
    task = find_table("breast_cancer")
    parts: dict[str, Any] = {
        "task": task,
        "data": Data(m=60, n_test=task.n_test_rows),
        "model": model,
        "training": Training(loss=CrossEntropy(), steps=1, target_error=None),
    }
    return RunSpec(**parts | changes)


def test_the_suite_covers_every_contender() -> None:
    """A new contender must join the lists above."""
    assert {type(model) for model in QUICK + NETS} == set(CONTENDERS.values())


@pytest.mark.parametrize("model", HERE, ids=lambda model: model.name)
def test_it_beats_chance_and_is_the_same_twice(model: Contender, seed: int) -> None:
    """On breast_cancer, where 37 % are of the smaller class, 200 rows give under 15 % error.

    The classes come back in the labels' own type, and a second fit gives the same answers,
    whatever random numbers were drawn between.
    """
    x, y, x_test, y_test = sample(200, seed)
    first = model.fit_predict(x, y, x_test, seed=seed, n_classes=2)
    np.random.seed(5)  # noqa: NPY002 - the generator that careless libraries draw from
    second = model.fit_predict(x, y, x_test, seed=seed, n_classes=2)

    assert first.shape == y_test.shape
    assert first.dtype == y.dtype
    assert np.mean(first != y_test) < 0.15
    assert np.array_equal(first, second)


@pytest.mark.parametrize("model", [QUICK[1], QUICK[3], QUICK[4]], ids=lambda model: model.name)
def test_the_seed_is_used(model: Contender) -> None:
    """Another seed gives other trees where they are drawn at random; large seeds are taken too."""
    x, y, x_test, _ = sample(60, dataset="digits")
    answers = {
        tuple(model.fit_predict(x, y, x_test, seed=seed, n_classes=10))
        for seed in (0, 1, 2**31, 2**64 - 1)
    }

    assert len(answers) == 3  # 0 and 2^31 are the same 31 bits


@pytest.mark.parametrize("model", HERE, ids=lambda model: model.name)
def test_one_class_alone_is_the_answer(model: Contender) -> None:
    """A sample of three rows of class 1 has nothing else to say."""
    x, _, x_test, _ = sample(3)
    predicted = model.fit_predict(x, np.ones(3, np.uint8), x_test, seed=0, n_classes=2)

    assert np.array_equal(predicted, np.ones(len(x_test), np.uint8))


@pytest.mark.parametrize("m", [2, 3, 5, 9])
@pytest.mark.parametrize("model", HERE, ids=lambda model: model.name)
def test_tiny_samples_are_answered(model: Contender, m: int) -> None:
    """Two rows of two classes are enough for an answer, and warnings stay inside."""
    x, _, x_test, _ = sample(m)
    y = np.arange(m, dtype=np.uint8) % 2
    predicted = model.fit_predict(x, y, x_test, seed=0, n_classes=2)

    assert predicted.shape == (len(x_test),)
    assert set(predicted.tolist()) <= {0, 1}


@pytest.mark.parametrize("model", HERE, ids=lambda model: model.name)
def test_a_class_that_the_sample_lacks(model: Contender) -> None:
    """Of ten classes the sample has 2, 5 and 9: these come back under their own numbers."""
    x, y, x_test, y_test = sample(400, dataset="digits")
    kept, asked = np.isin(y, (2, 5, 9)), np.isin(y_test, (2, 5, 9))
    predicted = model.fit_predict(x[kept], y[kept], x_test[asked], seed=0, n_classes=10)

    assert set(predicted.tolist()) == {2, 5, 9}
    assert np.mean(predicted != y_test[asked]) < 0.3  # chance is 2/3


def test_constant_and_single_columns_are_answered() -> None:
    """One column that decides is found (chance is 0.5), and constant columns are no error."""
    x = np.linspace(-1, 1, 30, dtype=np.float32)[:, None]
    y = (x[:, 0] > 0).astype(np.uint8)
    for model in QUICK:
        assert np.mean(model.fit_predict(x, y, x, seed=0, n_classes=2) != y) < 0.25
        assert len(model.fit_predict(0 * x, y, 0 * x, seed=0, n_classes=2)) == 30


def test_a_forest_looks_at_no_more_columns_than_there_are() -> None:
    """Four of two columns are both of them; fewer, a word and none are handed on."""
    x, y, _, _ = sample(100)
    looked_at = {
        asked: RandomForest(2, None, asked).fitted(x[:, :2], y, seed=0).max_features
        for asked in (1, 2, 4, "sqrt", None)
    }

    assert looked_at == {1: 1, 2: 2, 4: 2, "sqrt": "sqrt", None: None}


@pytest.mark.parametrize("model", HERE, ids=lambda model: model.name)
def test_it_is_silent_and_leaves_settings_alone(
    model: Contender, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing is printed, by Python or below it; warnings, logging and threads come back."""
    import torch
    from threadpoolctl import threadpool_info

    def settings() -> list[Any]:
        threads = {info["filepath"]: info["num_threads"] for info in threadpool_info()}
        return [torch.get_num_threads(), logging.root.manager.disable, [*warnings.filters], threads]

    x, y, x_test, _ = sample(40)
    model.fit_predict(x, y, x_test, seed=0, n_classes=2)  # loads its libraries
    capfd.readouterr()
    before = settings()
    model.fit_predict(x, y, x_test, seed=0, n_classes=2)

    assert capfd.readouterr() == ("", "")
    assert settings() == before
    assert logging.root.manager.disable == 0


class Loud(Contender):
    """A model that speaks in every way, and notes the threads that it may use."""

    name: ClassVar[str] = "loud"
    on_torch: ClassVar[bool] = True
    threads: ClassVar[list[int]] = []

    def fitted(self, x: Any, codes: Any, *, seed: int) -> Any:
        """Speak, and look around."""
        import torch
        from sklearn.dummy import DummyClassifier
        from threadpoolctl import threadpool_info

        warnings.warn("of a tiny sample", stacklevel=1)
        print("of an epoch")
        logging.getLogger("lightning").critical("of a tip")
        found = [info["num_threads"] for info in threadpool_info()]
        self.threads[:] = [torch.get_num_threads(), *found]
        return DummyClassifier().fit(x, codes)


def test_a_fit_is_silent_and_has_one_thread(capfd: pytest.CaptureFixture[str]) -> None:
    """Warnings (errors here), prints and logs stay inside, and every library may use one thread."""
    import torch
    from threadpoolctl import threadpool_limits

    x, y, x_test, _ = sample(20)
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with threadpool_limits(limits=3):
            Loud().fit_predict(x, y, x_test, seed=0, n_classes=2)
    finally:
        torch.set_num_threads(threads)

    assert capfd.readouterr() == ("", "")
    assert len(Loud.threads) > 1
    assert set(Loud.threads) == {1}


@pytest.mark.parametrize("model", [QUICK[1], QUICK[3], QUICK[4]], ids=lambda model: model.name)
def test_libraries_with_threads_of_their_own_are_given_one(model: Contender) -> None:
    """What counts its own threads is told to take one."""
    x, y, _, _ = sample(20)

    assert model.fitted(x, y, seed=0).get_params()["n_jobs"] == 1


@pytest.mark.skipif(HAS_PYTABKIT, reason="the message is for those without pytabkit")
@pytest.mark.parametrize("model", NETS, ids=lambda model: model.name)
def test_a_package_that_is_not_installed(model: Contender) -> None:
    """The message says what to install, before anything is trained and at a fit alike."""
    x, y, x_test, _ = sample(20)
    sentence = (
        f"The model {model.name} needs the package pytabkit, which is not installed. "
        "Run pip install 'petridish[nets]'."
    )

    with pytest.raises(UserError) as error:
        spec_of(model).check()
    assert str(error.value) == sentence
    with pytest.raises(UserError) as error:
        model.fit_predict(x, y, x_test, seed=0, n_classes=2)
    assert str(error.value) == sentence


def test_it_has_no_module() -> None:
    """Whoever would step it is told which engine to use."""
    model = RandomForest()

    assert parameters_of(model, bits(10), 2) == ()
    with pytest.raises(UserError) as error:
        model.build(bits(10), 2)
    assert str(error.value) == (
        "The model random_forest is fitted whole and has no module. Use the engine fit."
    )


def test_a_task_without_classes() -> None:
    """Real-valued labels are refused before the run."""

    class Line:
        name: ClassVar[str] = "line"
        domain = Domain(Reals((1,)), Values())

    with pytest.raises(UserError) as error:
        RandomForest().check_task(Line())  # type: ignore[arg-type] # it draws nothing
    assert str(error.value) == (
        "The model random_forest predicts classes, and the task line has none. Give a task with "
        "classes."
    )


@pytest.mark.parametrize(
    ("kind", "values", "sentence"),
    [
        (RandomForest, (0,), "RandomForest: n_estimators=0. Give a whole number of at least 1."),
        (RandomForest, (1, 0), "RandomForest: max_depth=0. Give a whole number of at least 1."),
        (
            RandomForest,
            (1, 1, "log2"),
            "RandomForest (or sqrt, or none): max_features='log2'. Give a whole number of at least "
            "1.",
        ),
        (
            HistGradientBoosting,
            (10, 0.1, 1),
            "HistGradientBoosting: max_leaf_nodes=1. Give a whole number of at least 2.",
        ),
        (XGBoost, (10, 0.0), "XGBoost: learning_rate=0.0. Give a number above 0."),
        (
            LightGBM,
            (10, 0.1, 31, 20, 1.5),
            "LightGBM: sampled=1.5. Give a share above 0 and up to 1.",
        ),
        (
            LogisticRegression,
            (-1.0,),
            "LogisticRegression: inverse_penalty=-1.0. Give a number above 0.",
        ),
    ],
)
def test_settings_that_make_no_sense(kind: Any, values: tuple[Any, ...], sentence: str) -> None:
    """The message says what was given and what to give."""
    with pytest.raises(UserError) as error:
        kind(*values)
    assert str(error.value) == sentence


def test_the_forests_are_the_papers() -> None:
    """90 of 5 depths, 6 numbers of columns and 3 of trees; the laptop's 12 are among them."""
    assert len(set(FOREST_GRID)) == 5 * 6 * 3
    assert {forest.max_depth for forest in FOREST_GRID} == {None, 2, 3, 4, 10}
    assert {forest.max_features for forest in FOREST_GRID} == {1, 2, 3, 4, "sqrt", None}
    assert {forest.n_estimators for forest in FOREST_GRID} == {10, 100, 1000}
    assert len(set(FOREST_LAPTOP)) == 12
    assert set(FOREST_LAPTOP) <= set(FOREST_GRID)


def test_every_search_has_its_librarys_default() -> None:
    """Six each, all of the model they stand under, the first as its library comes."""
    for name, models in SEARCH.items():
        assert {type(model) for model in models} == {CONTENDERS[name]}
        assert len(set(models)) == 6
        assert models[0] == CONTENDERS[name]()


def test_defaults_are_their_libraries() -> None:
    """A contender without arguments is what its library gives without arguments."""
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

    from petridish.estimator import SparseMLPClassifier

    for model, kind, unlike in (
        (RandomForest(), RandomForestClassifier, set()),
        (HistGradientBoosting(), HistGradientBoostingClassifier, set()),
        (LightGBM(), LGBMClassifier, {"sampled"}),
        (SparseMLP(), SparseMLPClassifier, {"patience"}),  # that of the runs that are stored
    ):
        theirs = inspect.signature(kind).parameters
        ours = {part.name: getattr(model, part.name) for part in fields(model)}
        assert {name: theirs[name].default for name in ours if name not in unlike} == {
            name: value for name, value in ours.items() if name not in unlike
        }


def test_a_sparse_mlp_names_all_that_it_is_fitted_with() -> None:
    """A parameter that joins the estimator joins the contender: else two fits share one name."""
    from petridish.estimator import SparseMLPClassifier

    others = {"class_weight", "random_state", "verbose"}

    assert {part.name for part in fields(SparseMLP)} == {
        *inspect.signature(SparseMLPClassifier).parameters
    } - others


@pytest.mark.parametrize("model", [*FOREST_LAPTOP, *sum(SEARCH.values(), ()), *QUICK, *NETS])
def test_a_contender_is_read_back_from_its_text(model: Contender) -> None:
    """Names and settings survive the store's columns and the command line."""
    assert parse(describe(model), "model", Model, {Model: CONTENDERS}) == model


# The engine


def test_the_engines_record(seed: int) -> None:
    """One step, no curves, and the error of the fit on the run's own held-out rows, by hand."""
    specs = [spec_of(RandomForest(10), seed=seed + trial) for trial in range(3)]
    records = list(load_engine("fit").run(specs, Silent()))

    assert [record.spec for record in records] == specs
    for spec, record in zip(specs, records, strict=True):
        x, y, x_test, y_test = sample(60, spec.seed)
        predicted = spec.model.fit_predict(x, y, x_test, seed=spec.seed, n_classes=2)  # type: ignore[attr-defined] # contenders have it
        assert record.test_error == np.mean(predicted != y_test)
        assert (record.outcome, record.steps, record.engine) == (Outcome.OUT_OF_STEPS, 1, "fit")
        assert (record.solved_at, record.fitted_at, record.curves.step) == (None, None, [])
        assert math.isnan(record.train_loss)
        assert record.seconds > 0


class Echo(Contender):
    """A model that keeps what it is given."""

    name: ClassVar[str] = "echo"
    given: ClassVar[list[Any]] = []

    def fitted(self, x: Any, codes: Any, *, seed: int) -> Any:
        """Never reached."""
        raise AssertionError

    def fit_predict(self, x: Any, y: Any, x_test: Any, *, seed: int, n_classes: int) -> Any:
        """Answer with class 0."""
        self.given.append((x, y, x_test, seed, n_classes))
        return np.zeros(len(x_test), np.uint8)


def test_label_noise_reaches_the_training_rows_alone() -> None:
    """With certain noise every training label is flipped, and the test is judged clean."""
    Echo.given.clear()
    clean = spec_of(Echo())
    noisy = replace(clean, data=replace(clean.data, label_noise=1.0))
    records = list(train([clean, noisy], Silent()))
    (x, y, x_test, seed, n_classes), (_, flipped, *_) = Echo.given

    assert x.shape == (60, 30)
    assert x_test.shape == (56, 30)
    assert (seed, n_classes) == (0, 2)
    assert np.array_equal(flipped, 1 - y)
    assert records[0].test_error == records[1].test_error == np.mean(sample(60)[3] != 0)


def test_it_stops_between_two_fits() -> None:
    """The monitor hears of each fit, and nothing is fitted after it says stop."""

    class After(Silent):
        heard = 0

        def stopped(self) -> bool:
            return self.heard == 2

        def stepped(self, model_steps: int) -> None:
            self.heard += model_steps

    monitor = After()
    specs = [spec_of(Echo(), seed=seed) for seed in range(5)]

    assert [record.spec.seed for record in train(specs, monitor)] == [0, 1]
    assert monitor.heard == 2


def test_any_task_with_classes_will_do() -> None:
    """A tree finds a parity of two of two bits, and a logistic regression cannot."""
    task = SparseParity(2, 2)
    errors = [
        next(train([spec_of(model, task=task, data=Data(m=50, n_test=200))], Silent())).test_error
        for model in (RandomForest(10), LogisticRegression())
    ]

    assert errors[0] == 0
    assert errors[1] > 0.2


def test_records_go_into_one_table() -> None:
    """Forests with a number, a word and none of columns make one table, their texts beside it."""
    forests = [RandomForest(2, None, looked_at) for looked_at in (1, "sqrt", None)]
    models: list[Contender] = [*forests, LightGBM(2), SparseMLP(4, n_members=1, epochs=1)]
    records = list(train([spec_of(model) for model in models], Silent()))
    table = to_table(records)

    assert table["model"].to_list() == [describe(model) for model in models]
    assert table["task.dataset"].unique().to_list() == ["breast_cancer"]
    assert table["key"].n_unique() == len(models)


@given(st.sampled_from(["dataset", "rows", "features", "digest", "classes"]))
def test_a_runs_name_holds_its_table(field: str) -> None:
    """Any change to the table makes another run: a subset is never taken for the whole."""
    task = Table("small", 400, 3, "a" * 16)
    other = {
        "dataset": "tiny",
        "rows": 401,
        "features": 4,
        "digest": "b" * 16,
        "classes": 3,
    }[field]
    changes: dict[str, Any] = {field: other}
    specs = [
        RunSpec(task=table, data=Data(m=60, n_test=40), model=RandomForest())
        for table in (task, replace(task, **changes))
    ]

    assert Counter(map(run_key, specs)).most_common(1)[0][1] == 1


def test_a_fit_leaves_no_thread_behind() -> None:
    """After the first fit of a kind, another adds none."""
    x, y, x_test, _ = sample(40)
    model = QUICK[-1]
    model.fit_predict(x, y, x_test, seed=0, n_classes=2)
    before = {*threading.enumerate()}
    model.fit_predict(x, y, x_test, seed=1, n_classes=2)

    assert {*threading.enumerate()} <= before


def test_the_module_is_light() -> None:
    """Importing it loads no library that fits: the command line stays quick."""
    import subprocess
    import sys

    heavy = "{'torch', 'sklearn', 'xgboost', 'lightgbm', 'polars', 'pandas'}"
    code = f"import sys, {contenders.__name__}; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )

    assert found.stdout == "[]\n"
