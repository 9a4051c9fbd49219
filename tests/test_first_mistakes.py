"""What a user forgets in a first file of their own: each is said in one sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from petridish import (
    MLP,
    AtEnd,
    ByName,
    Claim,
    Data,
    Each,
    Evaluation,
    Experiment,
    From,
    Init,
    Instrument,
    Loss,
    Mean,
    MeanOfExamples,
    Metric,
    NeverDecreases,
    Reading,
    Rule,
    RunSpec,
    SparseParity,
    Sweep,
    Training,
    Uniform,
    run,
)
from petridish.errors import UserError
from petridish.sweeps import load_user_file

TASK = SparseParity(6, 2)
SPEC = RunSpec(task=TASK, data=Data(m=20, n_test=20), training=Training(steps=2))


def said(make: Any) -> str:
    """Return the sentence by which something is refused."""
    with pytest.raises(UserError) as error:
        make()
    return str(error.value)


@dataclass(frozen=True)
class Unnamed(MLP):
    """A model that takes its name away."""

    name: ClassVar[str] = None  # type: ignore[assignment] # as of a class that has none


@dataclass(frozen=True)
class UnnamedMetric(Metric):
    """A metric without a name."""

    def each(self, outputs: Any, labels: Any, facts: Any) -> Any:
        """Return the outputs."""
        return outputs[..., 0]


def test_a_class_without_a_name() -> None:
    """It was «a fault of petridish itself»."""
    assert said(lambda: RunSpec(task=TASK, model=Unnamed(3))) == (
        "RunSpec: the class Unnamed of its model has no name. Add a line to it: name: "
        'ClassVar[str] = "unnamed".'
    )
    assert said(lambda: RunSpec(task=TASK, evaluation=Evaluation(metrics=(UnnamedMetric(),)))) == (
        "RunSpec: the class UnnamedMetric of its evaluation has no name. Add a line to it: name: "
        'ClassVar[str] = "unnamedmetric".'
    )


@dataclass(frozen=True)
class Positive(Metric):
    """A metric that does not say on which sample it is measured."""

    name: ClassVar[str] = "positive"

    def each(self, outputs: Any, labels: Any, facts: Any) -> Any:
        """Return whether the first output is positive."""
        return (outputs[..., 0] > 0).float()


def test_a_metric_is_measured_on_the_test_sample_if_it_names_none(tmp_path: Path) -> None:
    """It was «a fault of petridish itself»."""
    spec = replace(SPEC, evaluation=Evaluation(metrics=(Positive(),)))
    runs = run(Sweep(spec, {"seed": (0,)}), store=tmp_path, executor="inline", progress="none")
    assert 0 <= runs.table["final.test_positive"][0] <= 1


@dataclass(frozen=True)
class Forgot(MLP):
    """A model whose new setting has no type hint."""

    omega = 2.0


def test_a_setting_without_a_type_hint_is_no_axis() -> None:
    """The message says why."""
    spec = RunSpec(task=TASK, model=Forgot(3))
    assert said(lambda: Sweep(spec, {"model.omega": (1.0, 2.0)})) == (
        "There is no axis called 'model.omega'. Forgot has omega, but not as a field: a field has "
        "a type hint, such as omega: float."
    )
    assert "not as a field" not in said(lambda: Sweep(spec, {"model.omgea": (1.0, 2.0)}))


@pytest.mark.parametrize(
    ("axis", "value", "several"),
    [("seed", 5, "range(5)"), ("data.m", 8, "a list"), ("data.m", "8,16", "a list")],
)
def test_an_axis_has_several_values(axis: str, value: Any, several: str) -> None:
    """It was a TypeError, and a text was taken letter by letter."""
    assert said(lambda: Sweep(SPEC, {axis: value})) == (
        f"The axis {axis} has the one value {value!r}. Give {several}, or ({value!r},) if no other "
        "is meant."
    )


def test_an_axis_does_not_replace_those_before_it() -> None:
    """Three of four settings were the same run, and nothing was said."""
    sweep = Sweep(SPEC, {"model.width": (3, 6), "model.deeper": ((), (3,)), "seed": (0, 1)})
    assert said(lambda: sweep.narrowed(["model=mlp(8)"])) == (
        "The axis model replaces what model.width and model.deeper before it set, which would have "
        "no effect. Set its fields one by one, such as model.width, or name model first in the "
        "sweep."
    )
    assert len(Sweep(SPEC, {"model": (MLP(8),), "model.width": (3, 6)})) == 2


@dataclass(frozen=True)
class Countless(Loss):
    """A loss that does not say how many outputs it needs."""

    name: ClassVar[str] = "countless"

    def __call__(self, outputs: Any, labels: Any) -> Any:
        """Return the size of the outputs."""
        return outputs.flatten(1).norm(dim=1)


def test_a_loss_says_how_many_outputs_it_needs() -> None:
    """It was the model that failed in build."""
    spec = replace(SPEC, training=Training(loss=Countless()))  # type: ignore[abstract] # as no checker reads it
    found = re.sub(r" \(.*\.py:\d+\)", "", said(lambda: spec.n_outputs))
    assert found == (
        "The loss countless returned None from n_outputs for Domain(Bits(6), Classes(2)). Define "
        "n_outputs(self, domain): how many outputs the network needs."
    )


@dataclass(frozen=True)
class PerOutput(MeanOfExamples):
    """A loss with one number per output in the place of one per label."""

    name: ClassVar[str] = "per_output"

    def n_outputs(self, domain: Any) -> int:
        """Return the number of classes."""
        return int(domain.target.k)

    def each(self, outputs: Any, labels: Any) -> Any:
        """Return the squares of all outputs."""
        return outputs**2


@dataclass(frozen=True)
class Impure(Init):
    """A start whose numbers are not the run's."""

    name: ClassVar[str] = "impure"

    def draw(self, parameters: Any, seeds: Any) -> Any:
        """Draw from NumPy's own stream."""
        numbers = np.random.default_rng()
        return [numbers.normal(size=(len(seeds), *p.shape)).astype("f4") for p in parameters]


@dataclass(frozen=True)
class Confusion(Instrument):
    """How often each class was given for each, as an array."""

    name: ClassVar[str] = "confusion"

    def read(self, reading: Reading) -> Any:
        """Count pairs of labels and answers."""
        pairs = 2 * reading.labels().long() + (reading.outputs().flatten() < 0)
        return pairs.bincount(minlength=4).reshape(2, 2).numpy()


def test_an_instrument_reads_labels(tmp_path: Path) -> None:
    """As a trained model does: inputs, labels and outputs of a sample."""
    spec = replace(SPEC, evaluation=Evaluation(every=2, curves=True, instruments=(Confusion(),)))
    runs = run(Sweep(spec, {}), store=tmp_path, executor="inline", progress="none")
    (counts,) = runs.store.read(columns=("array.confusion",)).table["array.confusion"].to_list()
    assert sum(counts["values"][-4:]) == 20


@dataclass(frozen=True)
class Homeless:
    """A task without a domain."""

    name: ClassVar[str] = "homeless"


def test_what_would_be_trained_in_silence_is_refused() -> None:
    """Means over outputs were taken for a loss, and other weights at every call for a start."""
    sentence = said(replace(SPEC, training=Training(loss=PerOutput())).check)
    assert sentence.startswith("The loss per_output (")
    assert sentence.endswith(
        "returned Tensor of shape (2, 3, 2) from each, for outputs of shape (2, 3, 2). Return one "
        "number per label, shape (2, 3)."
    )
    assert said(replace(SPEC, init=Impure()).check) == (
        "impure: layer1.weight, drawn again for the same runs, is another: it is drawn by random "
        "numbers that are not the run's. Draw it from Streams(seeds, name)."
    )


def test_a_task_without_a_domain_is_the_users() -> None:
    """It was «a fault of petridish itself»."""
    task: Any = Homeless()
    sentence = said(lambda: replace(SPEC, task=task).n_outputs)
    assert sentence.startswith("The task homeless (")
    assert sentence.endswith(
        " failed in domain: AttributeError: 'Homeless' object has no attribute 'domain'."
    )


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("optimiser", "adam", "optimiser='adam'. Give for example Adam()."),
        ("loss", "hinge", "loss='hinge'. Give for example CrossEntropy()."),
        ("schedule", 0.5, "schedule=0.5. Give for example Schedule()."),
    ],
)
def test_choices_of_training_are_values(name: str, value: Any, sentence: str) -> None:
    """A text was «a fault of petridish itself» at the first step."""
    assert said(lambda: Training(**{name: value})) == f"Training: {sentence}"


def test_the_scales_of_an_experiment_have_names() -> None:
    """It was «a fault of petridish itself»."""
    for scales, what in ((Sweep(SPEC, {}), "a sweep. Give it a name"), ({}, "empty. Give a sweep")):
        assert said(lambda scales=scales: Experiment("own", "t", "s", scales)) == (
            f'Experiment own: scales is {what}: scales={{"own": SWEEP}}.'
        )


RULE = NeverDecreases(along="model.width", within=())
CLAIM = Claim("a", "t", "s", RULE)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (
            {"claims": CLAIM},
            "claims holds what is no Claim. Give a tuple, such as "
            'claims=(Claim("a", text, source, rule),).',
        ),
        (
            {"claims": ("wider is better",)},
            "claims holds what is no Claim. Give a tuple, such as "
            'claims=(Claim("a", text, source, rule),).',
        ),
        ({"claims": (CLAIM, CLAIM)}, "two claims are called 'a'. Give each its own name."),
        (
            {"figures": {"f": 3}},
            "the figure f is 3, which takes no table and title (3 is not a callable object). Give "
            "a function of both, such as def drawn(table, title).",
        ),
        (
            {"figures": {"f": said}},
            "the figure f is said, which takes no table and title (too many positional "
            "arguments). Give a function of both, such as def drawn(table, title).",
        ),
    ],
)
def test_claims_and_figures_are_what_they_should_be(parts: Any, sentence: str) -> None:
    """Each was «a fault of petridish itself» once it was judged or drawn."""
    found = said(lambda: Experiment("own", "t", "s", {"own": Sweep(SPEC, {})}, **parts))
    assert found == f"Experiment own: {sentence}"


def test_a_claim_has_a_rule() -> None:
    """A text cannot judge."""
    rule: Any = "wider"
    assert said(lambda: Claim("a", "t", "s", rule)) == (
        "Claim: rule='wider' cannot judge. Give a rule, such as "
        'NeverDecreases(along="model.width", within=()).'
    )


def test_a_rule_over_one_axis_needs_nothing_within(tmp_path: Path) -> None:
    """`within=()` was a ValueError; runs that differ in more are still refused."""
    spec = {"model.width": (3, 6), "seed": range(4)}
    runs = run(Sweep(SPEC, spec), store=tmp_path, executor="inline", progress="none").table
    assert RULE.judge(runs, 0.05).n == 8
    assert said(lambda: RULE.judge(pl.concat([runs, runs]), 0.05)).startswith(
        "Several runs share model.width, seed: "
    )


@pytest.mark.parametrize(
    ("asked", "kind"), [(SPEC, "RunSpec"), ([SPEC], "list"), (None, "NoneType")]
)
def test_what_is_no_sweep_is_not_run(asked: Any, kind: str) -> None:
    """Its whole text was taken for the id of an experiment."""
    assert said(lambda: run(asked)) == (
        f"petridish.run was given a {kind}. Give a Sweep, such as "
        'Sweep(spec, {"seed": range(5)}), an Experiment, the id of one, or the path of a file.'
    )


def test_a_file_that_was_edited_is_read_again(tmp_path: Path) -> None:
    """In one Python, as of a notebook: also within a second, and by a text of the same length."""
    path = tmp_path / "mine.py"
    for steps in (2, 3):
        path.write_text(
            "from petridish import *\n"
            f"BASE = RunSpec(task=SparseParity(6, 2), training=Training(steps={steps}))\n"
            "SWEEP = Sweep(BASE, {})",
            encoding="utf-8",
        )
        assert load_user_file(path).SWEEP.base.training.steps == steps
        assert load_user_file(path) is load_user_file(path)
    path.write_text("1 / 0", encoding="utf-8")
    assert "ZeroDivisionError" in said(lambda: load_user_file(path))


def test_a_store_may_be_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From Python no shell has replaced the tilde."""
    monkeypatch.setenv("HOME", str(tmp_path))
    found = run(Sweep(SPEC, {}), store="~/runs", executor="inline", progress="none")
    assert found.store.folder == tmp_path / "runs"


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            "from petridish import *\nMean()",
            "{path} cannot be imported at mine.py:2: NameError: name 'Mean' is not defined. Add "
            "`from petridish import Mean`.",
        ),
        (
            "nowhere()",
            "{path} cannot be imported at mine.py:1: NameError: name 'nowhere' is not defined.",
        ),
        (
            "from petridish import *\nSweep(RunSpec(task=SparseParity(6, 2)), {'data.n': (1,)})",
            "{path} cannot be imported at mine.py:2: There is no axis called 'data.n'. Did you "
            "mean data or data.m?",
        ),
        (
            "from .parts import Net",
            "{path} cannot be imported at mine.py:1: ImportError: attempted relative import with "
            "no known parent package. Name modules as Python finds them from the file's folder: "
            "`from parts import Net`.",
        ),
    ],
)
def test_a_file_that_cannot_be_imported(code: str, sentence: str, tmp_path: Path) -> None:
    """A name that `import *` leaves out on purpose is named, and a question ends in one mark."""
    path = tmp_path / "mine.py"
    path.write_text(code, encoding="utf-8")
    assert said(lambda: load_user_file(path)) == sentence.format(path=path)


@pytest.mark.parametrize("name", ["lr", "learning_rate"])
def test_a_rule_names_columns_by_their_whole_path(name: str) -> None:
    """A short name is answered by the path that it stands for."""
    rule = Rule(AtEnd("test_error"), Each(best_over=(name,)), Mean(), below=0.5)
    sweep = Sweep(SPEC, {"training.learning_rate": (0.1, 1.0), "seed": (0, 1)})
    own = Experiment("own", "t", "s", {"own": sweep}, (Claim("a", "t", "s", rule),))
    assert said(lambda: own.check(sweep)) == (
        f"own (a): There is no column {name!r} among the runs of this sweep, which its rule reads. "
        "Give its whole path, training.learning_rate."
    )


def test_a_start_from_a_run_fits_no_pattern() -> None:
    """It was an IndexError; the part is named by the start itself."""
    child = replace(SPEC, init=ByName((("layer1.*", From(SPEC)), ("*", Uniform()))))
    assert said(child.check) == (
        "ByName: from draws no single parameter, and fits no pattern. Begin with another start "
        "here; From(run, take=…, base=ByName(…)) takes a part over from a run."
    )
    replace(SPEC, init=From(SPEC, ("layer1.*",), ByName((("*", Uniform()),)))).check()
