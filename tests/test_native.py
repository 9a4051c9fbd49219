"""The native engine: the same bits as the others' streams, the same steps, on every processor."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from petridish.models import (
    MLP,
    Bernoulli,
    Init,
    KaimingGaussian,
    Paired,
    Sparse,
    Uniform,
    XavierUniform,
)
from petridish.seeds import Streams, name_key
from petridish.tasks import SparseAnd, SparseMajority, SparseParity, Task, TruthTable
from petridish.training import (
    Data,
    Error,
    Evaluation,
    Logistic,
    Loss,
    RunSpec,
    Silent,
    Square,
    load_engine,
    per_layer,
)
from petridish.training.data import initial_weights
from petridish.training.engines.native import prepare
from petridish.training.native.library import InstructionSet, words
from petridish.training.native.run import NativeRun, PackedExamples, Status
from tests.native_runs import (
    HERE,
    INPUTS,
    LOSSES,
    STEPS,
    WIDTHS,
    by_hand,
    carry_out,
    spec_of,
)

SHAPES = st.builds(
    lambda n, width, batch, loss, init, data, seed: spec_of(
        task=SparseParity(n, min(3, n)),
        model=MLP(width),
        init=init,
        data=data,
        training={"batch_size": batch, "loss": loss, "learning_rate": 0.02, "steps": STEPS},
        seed=seed,
    ),
    n=st.sampled_from(INPUTS) | st.integers(3, 130),
    width=st.sampled_from(WIDTHS[:4]) | st.integers(1, 60),
    batch=st.sampled_from((1, 8, 31, 32, 33, 64, 200)),
    loss=st.sampled_from(LOSSES),
    init=st.sampled_from((Uniform(), XavierUniform(), KaimingGaussian(), Sparse(2))),
    data=st.sampled_from(
        (
            Data(m=1, n_test=8),
            Data(m=77, n_test=8, label_noise=0.2),
            Data(m=1000, n_test=8),
            Data(n_test=8),
            Data(n_test=8, label_noise=0.1),
        )
    ),
    seed=st.integers(0, 2**64 - 1),
)


@pytest.mark.parametrize("isa", HERE, ids=lambda isa: isa.name)
@settings(max_examples=40, deadline=None, derandomize=True)
@example(spec=spec_of(task=SparseParity(64, 3), model=MLP(1001)))
@example(spec=spec_of(task=SparseParity(1000, 3), model=MLP(9), training={"batch_size": 1024}))
@example(spec=spec_of(task=SparseParity(319, 3), model=MLP(8), training={"batch_size": 100}))
@given(spec=SHAPES)
def test_every_step_is_the_one_on_paper(isa: InstructionSet, spec: RunSpec) -> None:
    """Losses and weights over 50 steps agree with float64 NumPy to 1e-4, for every odd shape.

    A hinge loss near 0 is a difference of numbers near 1, in float32: hence the absolute part.
    """
    losses, weights = carry_out(spec, isa)
    expected_losses, expected_weights = by_hand(spec)

    assert losses.shape == (STEPS,)
    assert np.allclose(losses, expected_losses, rtol=1e-4, atol=2e-5)
    for ours, theirs in zip(weights, expected_weights, strict=True):
        scale = max(1e-3, float(np.abs(theirs).max()))
        assert np.allclose(ours, theirs, rtol=0, atol=1e-4 * scale)


INITS: tuple[Init, ...] = (Uniform(), XavierUniform(), KaimingGaussian(), Sparse(2))


def init_of(n: int, width: int) -> Init:
    """Try every initialisation.

    Bernoulli weights where n is even: n + 1 terms ±c then never cancel. Where they do, a rounding
    decides whether a neuron is active, and engines that add in different orders part at once
    (docs/reference/native.md).
    """
    choices = list(INITS)
    if n % 2 == 0:
        choices += [Bernoulli(), Bernoulli()]
    if width % 2 == 0:
        choices.append(Paired(Uniform()))
    return choices[(n + width) % len(choices)]


AGREEMENT = [
    pytest.param(loss, n, width, id=f"{loss.name}-{n}-{width}")
    for i, loss in enumerate(LOSSES)
    for j, n in enumerate(INPUTS)
    for k, width in enumerate(WIDTHS)
    if (i + j + k) % 4 == 0  # every pair of values occurs, at a quarter of the cost
]


@pytest.mark.parametrize(("loss", "n", "width"), AGREEMENT)
def test_losses_agree_with_the_reference(loss: Loss, n: int, width: int) -> None:
    """The reference's loss at each of 50 steps, to 1e-4 relative, for every odd shape."""
    spec = spec_of(
        task=SparseParity(n, 3),
        model=MLP(width),
        init=init_of(n, width),
        # Large steps on many inputs amplify a rounding by orders of magnitude within 50 steps.
        training={"loss": loss, "learning_rate": 1 / (50 + n), "batch_size": (32, 7)[n % 2]},
        seed=n * width,
    )
    (reference,) = load_engine("reference").run([spec], Silent())
    expected = np.array(reference.curves["train_loss"])[1:]
    for isa in HERE:
        losses, _ = carry_out(spec, isa)
        assert np.allclose(losses, expected, rtol=1e-4, atol=1e-6)


VARIETY = {
    "hinge": spec_of(model=MLP(101), task=SparseParity(50, 3), data=Data(m=300, n_test=64)),
    "long": spec_of(training={"steps": 3000}, evaluation=Evaluation(every=1000, curves=True)),
    "decay": spec_of(
        training={"steps": 2500, "weight_decay": 0.5, "learning_rate": 0.2},
        evaluation=Evaluation(every=2500, curves=True),
    ),
    **{loss.name: spec_of(training={"loss": loss}, model=MLP(33)) for loss in LOSSES},
    "batch 1": spec_of(training={"batch_size": 1}),
    "batch 100": spec_of(training={"batch_size": 100}),
    "batch 1024": spec_of(training={"batch_size": 1024, "loss": Logistic()}, model=MLP(5)),
    "wide input": spec_of(task=SparseParity(4096, 2), model=MLP(5), training={"steps": 5}),
    "aligned input": spec_of(task=SparseParity(128, 3)),
    "online": spec_of(data=Data(n_test=64, label_noise=0.1), task=SparseMajority(70, 5)),
    "rates": spec_of(training={"schedule": per_layer((1.0, 0.5, 0.1, 2.0), (0.0, 2.0, 1.0, 3.0))}),
}


@pytest.mark.parametrize("name", VARIETY)
def test_every_instruction_set_gives_the_same_bits(name: str) -> None:
    """Losses and weights are bitwise equal on every path that this processor has."""
    first, *others = [carry_out(VARIETY[name], isa) for isa in HERE]
    for losses, weights in others:
        assert losses.tobytes() == first[0].tobytes()
        for ours, theirs in zip(weights, first[1], strict=True):
            assert ours.tobytes() == theirs.tobytes()


def test_threads_and_reruns_give_the_same_bits() -> None:
    """Eight runs in four threads at once, alone, and once more: the same weights."""
    specs = [replace(VARIETY["hinge"], seed=seed) for seed in range(8)]

    def weights(spec: RunSpec) -> bytes:
        return b"".join(part.tobytes() for part in carry_out(spec, HERE[0])[1])

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(weights, specs))
    assert together == [weights(spec) for spec in specs]


def test_how_a_run_is_cut_into_calls_does_not_matter() -> None:
    """One unit of work at a time, or all at once: the same record."""
    spec = replace(VARIETY["hinge"], training=replace(VARIETY["hinge"].training, target_error=0.3))
    found = []
    for work in (1, 1000, 10**9):
        with NativeRun(prepare([spec])[0]) as run:
            while (status := run.advance(work)) is Status.RUNNING:
                pass
            found.append((status, run.state.step, run.curves().test_wrong.tolist()))
    assert found[0] == found[1] == found[2]


@given(
    seed=st.integers(0, 2**64 - 1),
    name=st.text(max_size=5),
    start=st.integers(0, 2**40),
    count=st.integers(0, 30),
)
def test_the_streams_are_those_of_python(seed: int, name: str, start: int, count: int) -> None:
    """Words of any stream, from any place."""
    ours = words(seed, name_key(name), start, count)
    assert np.array_equal(ours, Streams([seed], name).words(start, count)[0])


@pytest.mark.parametrize("isa", HERE, ids=lambda isa: isa.name)
@pytest.mark.parametrize(("n", "width"), [(50, 100), (64, 7), (319, 1001), (3, 1)])
def test_errors_are_counted_as_by_the_reference(isa: InstructionSet, n: int, width: int) -> None:
    """On the same weights, the errors on 10,000 held-out examples are equal to the unit.

    Rounding may move an output across 0 where it is within 1e-6 of it; at these seeds none is.
    """
    import torch

    spec = spec_of(
        task=SparseParity(n, 2), model=MLP(width), data=Data(m=100, n_test=10_000), seed=5
    )
    arguments = prepare([spec])[0]
    with NativeRun(arguments, isa) as run:
        ours = run.count_wrong(arguments.test)
        short = run.count_wrong(
            PackedExamples(arguments.test.inputs[:77], arguments.test.labels[:77])
        )
    from petridish.training.data import test_examples

    examples = test_examples([spec])
    x, labels = torch.from_numpy(examples.x[0]), torch.from_numpy(examples.labels[0])
    w, b, v, beta = (torch.from_numpy(weight[0]) for weight in initial_weights([spec]))
    outputs = torch.relu(x @ w.T + b) @ v[0] + beta
    wrong = Error().each(outputs[None, :, None], labels[None].long(), {})[0]
    assert outputs.abs().min() > 1e-6
    assert (ours, short) == (int(wrong.sum()), int(wrong[:77].sum()))


@pytest.mark.parametrize(
    "task",
    [SparseParity(70, 4), SparseAnd(70, 3), TruthTable(10, (0, 1, 1, 1, 0, 0, 0, 1))],
    ids=lambda task: str(task.name),
)
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_fresh_examples_are_those_of_the_other_engines(task: Task, noise: float) -> None:
    """Online, the losses of a network that does not move are those of the same examples.

    A learning rate of 0 leaves the weights alone, so that each loss is a fingerprint of its batch.
    """
    spec = spec_of(
        task=task,
        data=Data(n_test=8, label_noise=noise),
        training={"learning_rate": 0.0, "loss": Square(), "steps": 100, "batch_size": 5},
    )
    losses, _ = carry_out(spec, HERE[0])
    expected, _ = by_hand(spec)
    assert np.allclose(losses, expected, rtol=1e-5)
