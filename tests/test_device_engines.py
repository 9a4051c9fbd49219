"""The engines' way on an accelerator, taken on the CPU: the same runs, up to rounding."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pytest
import torch

from petridish.errors import UserError
from petridish.models import MLP
from petridish.tasks import Dictionary, SparseParity
from petridish.testing.base import agree, short_run
from petridish.training import (
    INSTRUMENTS,
    Adam,
    CrossEntropy,
    Data,
    Evaluation,
    Hinge,
    RunRecord,
    RunSpec,
    Silent,
    Training,
    load_engine,
)
from petridish.training.devices import CPU, Device, is_full
from petridish.training.engines import torch as stacked
from petridish.training.numerics import exact
from tests.test_contracts import OF_OTHERS, RUNS
from tests.test_engines import SPECS, on_group

HERE = Device("cpu", host=False)


@pytest.fixture(autouse=True)
def forget_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the stacks that fitted."""
    monkeypatch.setattr(stacked, "_FITTED", {})


FEW = {
    **SPECS,
    **{f"contract {name}": spec for name, spec in RUNS.items()},
    "weighted classes": on_group(training={"loss": CrossEntropy((1.0, 2.0, 0.5, 1.0, 1.0, 3.0))}),
}


def short(spec: RunSpec, seeds: int = 3) -> list[RunSpec]:
    """Return runs of nine steps, measured after every fifth, that keep their weights."""
    training = replace(spec.training, steps=9)
    evaluation = replace(spec.evaluation, every=5, weights=True)
    few = replace(spec, training=training, evaluation=evaluation)
    return [replace(few, seed=seed) for seed in range(seeds)]


def records(specs: list[RunSpec], device: Device, engine: str = "torch") -> list[RunRecord]:
    """Carry out runs on a device."""
    return list(load_engine(engine).run(specs, Silent(), device))


@pytest.mark.parametrize("name", FEW)
def test_a_stack_is_what_it_is_on_the_cpu(name: str) -> None:
    """Data, start, minibatches, noise inside modules, losses, errors and last weights."""
    specs = short(FEW[name])

    agree(name, records(specs, HERE), records(specs, CPU))


@pytest.mark.parametrize("name", ["model mlp(6)", "online", "contract waves", "contract coins"])
def test_the_reference_too(name: str) -> None:
    """One run after another."""
    specs = short(FEW[name], seeds=1)

    agree(name, records(specs, HERE, "reference"), records(specs, CPU, "reference"))


OF_MARGINS = ("open_margins", "pattern_gradient")


@pytest.mark.parametrize("which", ["of a parity", "of margins"])
def test_instruments_read_the_same(which: str) -> None:
    """All of a parity, and those of a dictionary's patterns, at every evaluation."""
    if which == "of a parity":
        names, spec = tuple(sorted(set(INSTRUMENTS) - OF_OTHERS)), RUNS["parity"]
    else:
        names, spec = OF_MARGINS, short_run(Dictionary(7, 5, 3), MLP(6), Hinge())
    spec = replace(spec, evaluation=replace(spec.evaluation, instruments=names))
    specs = [replace(spec, seed=seed) for seed in range(2)]

    agree("instruments", records(specs, HERE), records(specs, CPU))


SOLVED = RunSpec(
    task=SparseParity(6, 1),
    data=Data(m=60, n_test=64),
    model=MLP(8),
    training=Training(steps=60, batch_size=8, target_error=0.1, learning_rate=0.2),
    evaluation=Evaluation(every=5, curves=True, weights=True),
)


def test_runs_that_end_leave_the_others_as_they_were() -> None:
    """They end at several evaluations; the last is alone."""
    specs = [replace(SOLVED, seed=seed) for seed in range(8)]
    there = records(specs, HERE)

    agree("solved", there, records(specs, CPU))
    ended = [(record.steps, record.spec.seed) for record in there]
    assert len({steps for steps, _ in ended}) > 2
    assert ended == sorted(ended)


@pytest.mark.parametrize("device", [HERE, CPU], ids=["device", "host"])
def test_runs_that_leave_do_not_move_the_others(device: Device) -> None:
    """Their places are taken by the last ones, with all that is theirs, in the same memory."""
    spec = replace(RUNS["waves"], training=replace(RUNS["waves"].training, optimiser=Adam()))
    stack = stacked.TorchStack([replace(spec, seed=seed) for seed in range(8)], device)
    stack.advance(0, 2, Silent())

    def held() -> list[torch.Tensor]:
        state = [memory for memories in stack.update.state for memory in memories]
        every = [*stack.weights, *state, *stack.network.buffers.values(), stack.loss_sum]
        return [tensor.detach() for tensor in every]

    before, copies = held(), [tensor.clone() for tensor in held()]
    stack._keep([0, 2, 5, 7])

    assert stack.rows == [spec.seed for spec in stack.specs] == [0, 5, 2, 7]
    assert [tensor.data_ptr() for tensor in held()] == [tensor.data_ptr() for tensor in before]
    for now, copy in zip(held(), copies, strict=True):
        assert torch.equal(now, copy[[0, 5, 2, 7]])


class Counted(Silent):
    """Counts steps."""

    def __init__(self) -> None:
        self.taken = 0

    def stepped(self, model_steps: int) -> None:
        """Count."""
        self.taken += model_steps


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a device run out of memory in the second advance of a stack of more than two runs."""
    advance: Any = stacked.TorchStack.advance

    def limited(stack: stacked.TorchStack, step: int, steps: int, monitor: Any) -> int:
        taken: int = advance(stack, step, steps, monitor)
        if step and not stack.device.host and len(stack.specs) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return taken

    monkeypatch.setattr(stacked.TorchStack, "advance", limited)


@pytest.mark.usefixtures("small_memory")
def test_a_stack_that_does_not_fit_is_halved() -> None:
    """The work goes on, as often as need be; no run is lost, and no step is counted twice."""
    specs = short(SPECS["model mlp(6)"], seeds=7)
    counted = Counted()

    with pytest.warns(UserWarning, match="out of memory") as said:
        found = list(load_engine("torch").run(specs, counted, HERE))

    assert [str(each.message) for each in said] == [
        "cpu ran out of memory with 7 runs at a time. The work goes on with 3 at a time.",
        "cpu ran out of memory with 3 runs at a time. The work goes on with 1 at a time.",
    ]
    agree("halved", found, records(specs, CPU))
    assert counted.taken == 7 * 9


@pytest.mark.usefixtures("small_memory")
def test_the_size_that_fitted_is_remembered() -> None:
    """The next stack of that shape begins with it; another shape does not."""
    specs = short(SPECS["model mlp(6)"], seeds=5)
    with pytest.warns(UserWarning, match="out of memory with 5 runs"):
        records(specs, HERE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(records(specs, HERE)) == 5
    with pytest.warns(UserWarning, match="out of memory with 3 runs"):
        records(short(RUNS["parity"]), HERE)


@pytest.mark.parametrize(
    "said",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB.",
        "MPS backend out of memory (MPS allocated: 18.04 GB)",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "CUDA error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(handle)`",
    ],
)
def test_want_of_memory_is_known(said: str) -> None:
    """Whichever library lacks it."""
    assert is_full(RuntimeError(said))
    assert not is_full(RuntimeError("CUBLAS_STATUS_EXECUTION_FAILED"))


def test_the_reference_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses in one sentence on a device; on the CPU an error stays what it is."""

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr("petridish.training.engines.reference._prepare", full)
    with pytest.raises(UserError) as error:
        records(short(SPECS["model mlp(6)"], seeds=1), HERE, "reference")
    assert str(error.value) == (
        "A run of mlp(6) on sparse_parity(12, 3) does not fit into the memory of cpu. Give "
        "--device cpu, a smaller batch size or a smaller model."
    )
    with pytest.raises(torch.OutOfMemoryError):
        records(short(SPECS["model mlp(6)"], seeds=1), CPU, "reference")


def test_a_small_sample_is_not_padded_to_a_large_chunk() -> None:
    """A device reads 40 examples as one chunk of 256, however large its memory is."""
    spec = replace(SOLVED, data=Data(m=60, n_test=40))
    stack = stacked.TorchStack(short(spec), HERE)
    read = []
    pool = stack.evaluator.sources["test"].pool
    plain = pool.batch
    pool.batch = lambda places: read.append(places.shape[1]) or plain(places)  # type: ignore

    list(stack.evaluate(0))

    assert stack.evaluator.chunk > 256
    assert set(read) == {256}


def test_a_run_that_does_not_fit_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one sentence, whatever PyTorch's own."""

    def full(*_: object) -> None:
        raise RuntimeError("MPS backend out of memory (MPS allocated: 18.04 GB)")

    monkeypatch.setattr(stacked.TorchStack, "advance", full)
    with pytest.raises(UserError) as error:
        records(short(SPECS["model mlp(6)"], seeds=1), HERE)
    assert str(error.value) == (
        "A run of mlp(6) on sparse_parity(12, 3) does not fit into the memory of cpu. Give "
        "--device cpu, a smaller batch size or a smaller model."
    )


def test_other_errors_go_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the code is no want of memory."""

    def broken(*_: object) -> None:
        raise RuntimeError("expected scalar type Float but found Half")

    monkeypatch.setattr(stacked.TorchStack, "advance", broken)
    with pytest.raises(RuntimeError, match="expected scalar type"):
        records(short(SPECS["model mlp(6)"]), HERE)


def test_products_in_whole_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """And deterministic algorithms, while runs are under way on a device; then as before."""
    seen = []
    advance: Any = stacked.TorchStack.advance

    def look(*given: Any) -> Any:
        tf32 = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        seen.append((*tf32, torch.are_deterministic_algorithms_enabled()))
        return advance(*given)

    monkeypatch.setattr(stacked.TorchStack, "advance", look)
    before = torch.backends.cudnn.allow_tf32
    for device in (HERE, CPU):
        records(short(RUNS["parity"], seeds=1), device)
    assert seen[0] == (False, False, True)
    assert not seen[-1][2]
    assert torch.backends.cudnn.allow_tf32 == before


SWITCHES: dict[str, tuple[Any, str]] = {
    "products": (torch.backends.cuda.matmul, "tf32"),
    "all": (torch.backends, "tf32"),
    "convolutions": (torch.backends.cudnn, "ieee"),
}


@pytest.mark.skipif(not hasattr(torch.backends, "fp32_precision"), reason="of PyTorch 2.9")
@pytest.mark.parametrize("name", SWITCHES)
def test_the_newer_switches_of_tf32(name: str) -> None:
    """PyTorch refuses to read its older ones beside them; afterwards all are as they were."""
    every: Any = torch.backends
    places = (every, every.cudnn, every.cuda.matmul, every.cudnn.conv, every.cudnn.rnn)
    at_first = [place.fp32_precision for place in places]
    place, value = SWITCHES[name]
    try:
        place.fp32_precision = value
        before = [place.fp32_precision for place in places]
        with exact():
            assert {each.fp32_precision for each in places[2:]} == {"ieee"}
            assert not every.cuda.matmul.allow_tf32
            assert not every.cudnn.allow_tf32
        assert [place.fp32_precision for place in places] == before
    finally:
        for place, value in zip(places, at_first, strict=True):
            place.fp32_precision = value


def test_where_a_run_computed_is_recorded() -> None:
    """By PyTorch's name of the device."""
    (record,) = records(short(RUNS["parity"], seeds=1), HERE)

    assert record.device == "cpu"
