"""Lottery tickets: which neurons are kept, and with which weights they begin."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from petridish.errors import UserError
from petridish.models import MLP, Sparse, Uniform
from petridish.tasks import SparseParity
from petridish.training import Data, Evaluation, RunSpec, Silent, Ticket, Training, load_engine
from petridish.training.chains import ended
from petridish.training.data import initial_weights
from petridish.training.engines.reference import trained_network

PARENT = RunSpec(
    task=SparseParity(12, 2, support=(3, 7)),
    data=Data(n_test=500),
    model=MLP(20),
    init=Sparse(2),
    training=Training(steps=400, weight_decay=0.0),
    evaluation=Evaluation(every=100),
    seed=5,
)
CHILD = replace(PARENT, model=MLP(3), init=Ticket("largest", 20, Sparse(2), seed=5), seed=9)


def test_a_ticket_is_the_largest_neurons_as_they_began() -> None:
    """By hand: train the parent, sort its neurons by the norm of their weights, rewind."""
    trained = list(ended(PARENT).values())
    began = [weight[0] for weight in initial_weights([PARENT])]
    norms = np.linalg.norm(trained[0], axis=1)
    kept = np.sort(np.argsort(-norms)[:3])
    ticket = [weight[0] for weight in initial_weights([CHILD])]

    assert np.array_equal(ticket[0], began[0][kept])
    assert np.array_equal(ticket[1], began[1][kept])
    assert np.array_equal(ticket[2], began[2][:, kept])
    assert np.array_equal(ticket[3], began[3])
    assert not np.allclose(trained[0][kept], began[0][kept])  # the parent did move


def test_tickets_of_one_parent_differ_in_what_they_see_alone() -> None:
    """Another seed of the run is another order of examples, not another ticket."""
    first, second = initial_weights([CHILD, replace(CHILD, seed=10)])[0]
    (other,) = initial_weights([replace(CHILD, init=Ticket("largest", 20, Sparse(2), 6))])[0]

    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_random_neurons_are_new_for_every_run() -> None:
    """The control draws from the parent's distribution, at the run's own seed."""
    control = replace(CHILD, init=Ticket("random", 20, Sparse(2)))
    first, second = initial_weights([control, replace(control, seed=10)])[0]
    wide = initial_weights([replace(PARENT, seed=9)])[0][0]

    assert np.array_equal(first, wide[:3])
    assert not np.array_equal(first, second)
    output = initial_weights([control])[2]
    assert np.abs(output).max() <= 1 / np.sqrt(20)  # the wide network's scale, not 1/√3


def test_the_engines_find_the_same_end() -> None:
    """Final weights of the native engine and of the reference agree to rounding."""
    network, record = trained_network(PARENT, Silent())
    reference = [parameter.detach().numpy() for parameter in network.parameters()]

    assert record is not None
    for ours, theirs in zip(list(ended(PARENT).values()), reference, strict=True):
        assert np.allclose(ours, theirs, atol=2e-3)


@pytest.mark.parametrize("name", ["native", "torch", "reference"])
def test_every_engine_trains_tickets(name: str) -> None:
    """A ticket is an initialisation like any other; it starts the same in each engine."""
    (record,) = load_engine(name).run(
        [replace(CHILD, evaluation=Evaluation(every=100, curves=True))], Silent()
    )
    assert record.curves["test_error"][0] == pytest.approx(_first_error(), abs=1 / 500)


def _first_error() -> float:
    weights = [weight[0].astype(np.float64) for weight in initial_weights([CHILD])]
    test = CHILD.task.draw([CHILD.seed], "test", 0, 500)
    hidden = np.maximum(test.x[0] @ weights[0].T + weights[1], 0)
    output = hidden @ weights[2][0] + weights[3]
    return float(np.mean(output * (1.0 - 2.0 * test.labels[0]) <= 0))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            lambda: replace(CHILD, model=MLP(21)).check(),
            "Ticket: 21 neurons in 2 layers cannot be a part of a two-layer network of 20. "
            "Give a two-layer model of at most that width.",
        ),
        (
            lambda: initial_weights([replace(CHILD, task=SparseParity(12, 2))]),
            "Ticket: the task draws its support anew for every seed, so that the parent would "
            "have learned another function. Give the task a support.",
        ),
        (
            lambda: Ticket("smallest"),  # type: ignore[arg-type] # on purpose
            "Ticket: chosen='smallest'. Give 'largest' or 'random' neurons.",
        ),
    ],
)
def test_what_cannot_be_a_ticket_is_refused(spec: object, message: str) -> None:
    """Each refusal says what to do."""
    with pytest.raises(UserError) as caught:
        spec()  # type: ignore[operator] # a function
    assert str(caught.value) == message


def test_a_dense_ticket_keeps_its_base() -> None:
    """Any initialisation can be the parent's."""
    dense = replace(CHILD, init=Ticket("random", 20, Uniform()))
    assert np.count_nonzero(initial_weights([dense])[0]) == 3 * 12
