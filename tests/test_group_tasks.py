"""Groups as tasks, distinct inputs, and labels that are wrong in several ways."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.choices import describe, parse
from petridish.errors import UserError
from petridish.groups import cyclic, find_group, symmetric
from petridish.models import MLP, Homogeneous, ParityTransformer, PolyNet, Power, Sine
from petridish.sweeps.sweep import OFFERED
from petridish.tasks import (
    Classes,
    Domain,
    GroupProduct,
    OneHot,
    SparseMajority,
    SparseParity,
    Task,
    TruthTable,
)
from petridish.training import Data, NeuronNorm, NormPower, RunSpec, Training, run_key
from petridish.training.data import test_examples as held_out
from petridish.training.data import training_examples
from tests.domains import bits

TWO = ((0, 1), (1, 0))
GROUPS = ("Z2", "Z7", "S3", "Q8", "Z2xS3")


@pytest.mark.parametrize("name", GROUPS)
def test_a_label_is_the_product_of_the_pair(name: str, seed: int) -> None:
    """Inputs are two one-hot vectors, and the label is the place of ab in the table."""
    task, group = GroupProduct(name), find_group(name)
    examples = task.draw([seed, seed + 1], "train", 0, 200)
    left, right = np.split(examples.x, 2, axis=2)

    assert task.domain == Domain(OneHot(2 * group.order, 2), Classes(group.order))
    assert (left.sum(axis=2) == 1).all()
    assert (right.sum(axis=2) == 1).all()
    assert np.array_equal(examples.labels, group.table[left.argmax(axis=2), right.argmax(axis=2)])
    part = task.draw([seed + 1], "train", 50, 10)
    assert np.array_equal(part.x[0], examples.x[1, 50:60])


def test_pairs_are_drawn_uniformly() -> None:
    """Of 40 000 draws each of 25 pairs has its share: χ² on 24 degrees, at 1e-6."""
    drawn = GroupProduct("Z5").draw([3], "train", 0, 40_000)
    assert drawn.hot is not None
    a, b = drawn.hot[0].T
    counts = np.bincount(5 * a + b - 5, minlength=25)

    assert ((counts - 1_600) ** 2 / 1_600).sum() < 77.0


def test_a_table_of_ones_own_is_a_group() -> None:
    """A table may stand for the name; it is checked, and written as text and back."""
    task = GroupProduct(TWO)
    text = describe(task)

    assert task.order == 2
    assert text == "group_product(((0, 1), (1, 0)))"
    assert parse(text, "task", Task, OFFERED) == task
    assert parse("group_product(Z23)", "task", Task, OFFERED) == GroupProduct("Z23")
    assert np.array_equal(
        task.at([0], np.arange(4)[None]).labels,
        GroupProduct("Z2").at([0], np.arange(4)[None]).labels,
    )


def test_tables_of_numpy_are_tables() -> None:
    """Their numbers become Python's, so that the run has a name."""
    task = GroupProduct(np.array(TWO))  # type: ignore[arg-type]

    assert task == GroupProduct(TWO)
    assert run_key(RunSpec(task=task)) == run_key(RunSpec(task=GroupProduct(TWO)))


WRONG: list[tuple[Any, str]] = [
    (
        5,
        "GroupProduct: group=5 is neither a name nor a table. Give a name such as S4, or rows of "
        "whole numbers.",
    ),
    (
        ((0, 1), (1,)),
        "GroupProduct: the rows of the table differ in length. Give as many rows as columns, or a "
        "name such as S4.",
    ),
    (
        ((0, 1), (1, 1)),
        "own is no group: 1 has no inverse, no b with 1 · b = b · 1 = 0. Mend the table.",
    ),
    (
        ((0, 2), (2, 0)),
        "own is not closed: 0 · 1 is 2, but its elements are 0 to 1. Give a table of these.",
    ),
]


@pytest.mark.parametrize(("table", "sentence"), WRONG)
def test_what_is_no_group_is_refused(table: Any, sentence: str) -> None:
    """The message names the elements."""
    with pytest.raises(UserError) as error:
        GroupProduct(table)

    assert str(error.value) == sentence


FINITE: list[Any] = [SparseParity(6, 2), SparseMajority(5, 3), TruthTable(4, (0, 1, 1, 0))]
FINITE += [GroupProduct("S3"), GroupProduct("Z5")]


def spec_of(task: Any, m: int, n_test: int, **changes: Any) -> RunSpec:
    """Return a run on distinct inputs."""
    return RunSpec(task=task, data=Data(m=m, n_test=n_test, draws="distinct", **changes))


@pytest.mark.parametrize("task", FINITE, ids=describe)
def test_every_input_comes_once_in_the_whole_sample(task: Any, seed: int) -> None:
    """With m and n_test as large as the population, both samples are it, in its own order."""
    size = task.n_possible
    spec = replace(spec_of(task, size, size), seed=seed)
    train, test = training_examples([spec], 0, size), held_out([spec])
    rows = {tuple(row) for row in train.x[0].tolist()}

    assert len(rows) == size
    assert np.array_equal(train.x, test.x)
    assert np.array_equal(train.labels, test.labels)
    again = task.at([seed], np.arange(size)[None])
    assert np.array_equal(train.x, again.x)


@given(
    task=st.sampled_from(FINITE),
    share=st.floats(0.05, 0.95),
    seed=st.integers(0, 2**32),
)
def test_distinct_samples_are_disjoint_as_long_as_they_can_be(
    task: Any, share: float, seed: int
) -> None:
    """No input comes twice, and none of the held-out ones is trained on; labels are the task's."""
    m = max(1, int(share * task.n_possible))
    spec = replace(spec_of(task, m, task.n_possible - m), seed=seed)
    train, test = training_examples([spec], 0, m), held_out([spec])
    seen, unseen = ({tuple(row) for row in part.x[0].tolist()} for part in (train, test))

    assert len(seen) == m
    assert not seen & unseen
    assert len(seen | unseen) == task.n_possible
    known = task.at([seed], np.arange(task.n_possible)[None])
    labels = {tuple(x): y for x, y in zip(known.x[0].tolist(), known.labels[0], strict=True)}
    for part in (train, test):
        for x, y in zip(part.x[0].tolist(), part.labels[0], strict=True):
            assert labels[tuple(x)] == y


def test_runs_differ_in_their_order() -> None:
    """Each run chooses its own training pairs, about as many of each as by chance."""
    specs = [replace(spec_of(GroupProduct("Z5"), 10, 10), seed=seed) for seed in range(200)]
    drawn = training_examples(specs, 0, 10)
    assert drawn.hot is not None
    counts = np.bincount((5 * drawn.hot[..., 0] + drawn.hot[..., 1] - 5).ravel(), minlength=25)

    assert counts.sum() == 2_000
    # 200 runs choose a pair with probability 0.4: 80 ± 6.9; six deviations on either side.
    assert (np.abs(counts - 80) < 42).all()


def test_wrong_labels_are_any_of_the_others_alike() -> None:
    """With 5 classes and noise 0.4, labels are wrong in 0.4 of the cases, a quarter each way."""
    clean = RunSpec(task=GroupProduct("Z5"), data=Data(m=40_000))
    noisy = replace(clean, data=Data(m=40_000, label_noise=0.4))
    shift = (
        training_examples([noisy], 0, 40_000).labels - training_examples([clean], 0, 40_000).labels
    ) % 5
    counts = np.bincount(shift[0], minlength=5)

    # Each wrong way has 4 000 ± 60: six deviations.
    assert (np.abs(counts[1:] - 4_000) < 360).all()
    assert abs(counts[0] - 24_000) < 600


REFUSED: list[tuple[RunSpec, str]] = [
    (
        spec_of(SparseParity(50, 3), 100, 100),
        "RunSpec: draws='distinct' puts all inputs in order, and the task sparse_parity(50, 3) has "
        "too many (more than 1048576). Give draws='independent'.",
    ),
    (
        spec_of(GroupProduct("S3"), 37, 36),
        "RunSpec: m=37 distinct inputs were asked for, but the task group_product(S3) has only 36. "
        "Lower m.",
    ),
    (
        spec_of(SparseParity(4, 2), 16, 17),
        "RunSpec: n_test=17 distinct inputs were asked for, but the task sparse_parity(4, 2) has "
        "only 16. Lower n_test.",
    ),
    (
        RunSpec(
            task=SparseParity(10, 3),
            model=MLP(4, (3,)),
            training=Training(penalty=NeuronNorm(0.1, 2, 3)),
        ),
        "The penalty neuron_norm(0.1, 2.0, 3.0) adds up the neurons of one hidden layer, and the "
        "model is mlp(4, (3,)). Give a two-layer network, or weight_decay in its place.",
    ),
    (
        RunSpec(
            task=SparseParity(10, 3), model=PolyNet(3), training=Training(penalty=NeuronNorm(0.1))
        ),
        "The penalty neuron_norm(0.1) adds up the neurons of one hidden layer, and the model is "
        "polynet(3). Give a two-layer network, or weight_decay in its place.",
    ),
]


@pytest.mark.parametrize(("spec", "sentence"), REFUSED)
def test_runs_that_cannot_be_are_refused_before_training(spec: RunSpec, sentence: str) -> None:
    """The check says what was asked for and what there is."""
    with pytest.raises(UserError) as error:
        spec.check()

    assert str(error.value) == sentence


def test_transformers_have_no_neurons_of_one_layer() -> None:
    """A penalty on neurons is refused there too, but not one of strength 0."""
    spec = RunSpec(task=SparseParity(8, 2), model=ParityTransformer(8, 2, 3))
    spec.check()
    with pytest.raises(UserError, match="adds up the neurons of one hidden layer"):
        replace(spec, training=Training(penalty=NeuronNorm(1.0))).check()


MISTAKES: list[tuple[Any, str]] = [
    (
        lambda: Data(draws="distinct"),
        "Data: draws='distinct' takes each input at most once, and m=inf has no end. Give a finite "
        "m.",
    ),
    (
        lambda: Data(m=4, draws="once"),  # type: ignore[arg-type]
        "Data: draws='once'. Give 'independent' or 'distinct'.",
    ),
    (
        lambda: Training(precision="float16"),  # type: ignore[arg-type]
        "Training: precision='float16'. Give 'float32' or 'float64'.",
    ),
    (
        lambda: Training(penalty=0.1),  # type: ignore[arg-type]
        "Training: penalty=0.1. Give for example NeuronNorm(1e-4, 2, 3).",
    ),
    (
        lambda: NeuronNorm(-1.0),
        "NeuronNorm: strength=-1.0. Give a finite number of at least 0.",
    ),
    (
        lambda: NeuronNorm(1.0, 2, 1),
        "NeuronNorm: order=2, power=1. Give an order of at least 1 and a power of at least the "
        "order.",
    ),
    (
        lambda: NormPower(1.0, 2, 3, 0),
        "NormPower: exponent=0. Give a finite number above 0.",
    ),
    (
        lambda: Homogeneous(4, Sine(3)),  # type: ignore[arg-type]
        "Homogeneous: the activation sine(3) does not grow as a power of its argument. Give "
        "power(k), relu or identity.",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), MISTAKES)
def test_mistakes_are_explained(make: Any, sentence: str) -> None:
    """The message says what was given and what to give."""
    with pytest.raises(UserError) as error:
        make()

    assert str(error.value) == sentence


def test_a_homogeneous_network_grows_by_its_degree(seed: int) -> None:
    """Twice the weights give 2^ν times the outputs."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    for activation, degree in ((Power(2), 3), (Power(4), 5)):
        model = Homogeneous(5, activation)
        weights = [
            torch.randn(2, *p.shape, generator=generator, dtype=torch.float64)
            for p in model.parameters(bits(7), 3)
        ]
        x = torch.randn(2, 11, 7, generator=generator, dtype=torch.float64)
        once, twice = (model.forward([s * w for w in weights], x) for s in (1.0, 2.0))

        assert model.degree == degree
        assert torch.allclose(twice, 2**degree * once)


def test_places_of_ones_stand_for_one_hot_inputs(seed: int) -> None:
    """Adding up columns gives what the product with one-hot vectors does."""
    import torch

    model, task = Homogeneous(6), GroupProduct("S3")
    examples = task.draw([seed, seed + 1], "train", 0, 40)
    assert examples.hot is not None
    generator = torch.Generator().manual_seed(seed)
    weights = [torch.randn(2, *p.shape, generator=generator) for p in model.parameters(bits(12), 6)]
    plain = model.forward(weights, torch.from_numpy(examples.x))
    quick = model.forward(weights, torch.from_numpy(examples.hot))

    assert torch.allclose(plain, quick, atol=1e-5)


def test_groups_know_their_tables() -> None:
    """The structure behind a task is the group of that name."""
    assert np.array_equal(GroupProduct("Z5").structure().table, cyclic(5).table)
    assert np.array_equal(GroupProduct("S3").structure().table, symmetric(3).table)
