"""One run of the native engine, as a Python object."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.training.native.library import (
    HeldRun,
    InstructionSet,
    NativePiece,
    NativeStage,
    Spec,
    State,
    chosen_set,
    library,
)

Words = NDArray[np.uint64]
Bits = NDArray[np.uint8]
Floats = NDArray[np.float32]

NEVER = 2**62  # a step that no run reaches
LOSSES = ("hinge", "correlation", "square", "logistic")  # in the order of petridish_loss
ACTIVATIONS = ("relu", "power", "zigzag", "infinite_zigzag", "oscillating", "sine")
OUTPUTS = ("weights", "ones", "product")  # of petridish_activation and petridish_output


class Status(IntEnum):
    """`petridish_status`."""

    RUNNING = 0
    SOLVED = 1
    OUT_OF_STEPS = 2
    DIVERGED = 3
    HOPELESS = 4


@dataclass(frozen=True)
class PackedExamples:
    """Packed inputs, shape (example, word), and the labels' bits, shape (example,)."""

    inputs: Words
    labels: Bits


@dataclass(frozen=True)
class Labelling:
    """How fresh examples are labelled: by parity over `mask`, or by `table` at the relevant bits.

    `noise_below` · 2^−53 is the probability of a flipped label.
    """

    support: NDArray[np.int64]
    mask: Words | None = None
    table: Bits | None = None
    noise_below: int = 0


@dataclass(frozen=True)
class NativeRates:
    """From step `start` on: rates and decays of W, b, v, β."""

    start: int
    rate: tuple[float, float, float, float]
    decay: tuple[float, float, float, float]


@dataclass(frozen=True)
class EvaluationPlan:
    """When a run is measured.

    `stages` of the held-out sample and `fit_stages` of the training sample are (start, stop,
    limit); empty for a run without a target, or without `fitted_error`.
    """

    every: int
    curves: bool
    stages: Sequence[tuple[int, int, int]]
    fit_stages: Sequence[tuple[int, int, int]] = ()


@dataclass(frozen=True)
class NeuronKind:
    """What the neurons do: Σ_j v_j σ(z_j) + β, Σ_j σ(z_j) (`ones`), or Π_j z_j (`product`).

    `k` is the degree of a power, zigzag, polynomial or sine, `scale` belongs to a sine, and
    `coefficients` to an oscillating polynomial: of z^0, z^2, … or of z^1, z^3, …
    """

    activation: str = "relu"
    output: str = "weights"
    k: int = 0
    scale: float = 1.0
    coefficients: tuple[float, ...] = ()


@dataclass(frozen=True)
class Curve:
    """A run at each of its evaluations; `train_wrong` is −1 online."""

    step: NDArray[np.int64]
    train_loss: NDArray[np.float64]
    train_wrong: NDArray[np.int64]
    test_wrong: NDArray[np.int64]


@dataclass(frozen=True)
class RunArguments:
    """Everything a run depends on. `train` is a sample, or the rule for fresh examples."""

    n: int
    batch_size: int
    steps: int
    loss: str
    seed: int
    keys: tuple[int, int, int]  # of the streams "batches", "train", "noise"
    train: PackedExamples | Labelling
    test: PackedExamples
    plan: EvaluationPlan
    rates: Sequence[NativeRates]
    weights: Sequence[Floats]  # W (width, n), b (width,), v (1, width), β (1,)
    certify: bool = True
    neurons: NeuronKind = NeuronKind()


def _stages(stages: Sequence[tuple[int, int, int]]) -> ctypes.Array[NativeStage]:
    return (NativeStage * len(stages))(*[NativeStage(*stage) for stage in stages])


class NativeRun(HeldRun):
    """A run in progress, for one thread at a time, in a `with` block."""

    end = "petridish_end"

    def __init__(self, arguments: RunArguments, isa: InstructionSet | None = None) -> None:
        weights = [np.ascontiguousarray(weight, np.float32) for weight in arguments.weights]
        self._shape = len(weights[0]), arguments.n
        expected = [self._shape, self._shape[:1], (1, self._shape[0]), (1,)]
        shapes = [weight.shape for weight in weights]
        if shapes != expected:
            raise UserError(
                f"The initial weights have the shapes {shapes}, but a two-layer network of "
                f"{self._shape[0]} neurons on {arguments.n} inputs has {expected}. "
                "Let the initialisation give each parameter its own shape."
            )
        self._kept: list[Any] = []  # what the library reads during the run
        spec = self._spec(arguments)
        chosen = isa or chosen_set()
        self._run = library().petridish_begin(
            ctypes.byref(spec), chosen.index, *[weight.ctypes.data for weight in weights]
        )
        if not self._run:
            raise UserError(
                f"A network of {self._shape[0]:,} neurons on {self._shape[1]:,} inputs does not "
                "fit into memory. Lower model.width."
            )

    def _spec(self, given: RunArguments) -> Spec:
        train, plan = given.train, given.plan
        stages, fit_stages = _stages(plan.stages), _stages(plan.fit_stages)
        pieces = (NativePiece * len(given.rates))(
            *[NativePiece(min(r.start, NEVER), r.rate, r.decay) for r in given.rates]
        )
        self._kept += [stages, fit_stages, pieces]
        neurons = given.neurons
        spec = Spec(
            n=given.n,
            width=self._shape[0],
            batch_size=given.batch_size,
            steps=min(given.steps, NEVER),
            loss=LOSSES.index(given.loss),
            certify=given.certify,
            activation=ACTIVATIONS.index(neurons.activation),
            output=OUTPUTS.index(neurons.output),
            degree=neurons.k,
            n_coefficients=len(neurons.coefficients),
            scale=neurons.scale,
            coefficients=neurons.coefficients,
            seed=given.seed,
            batches_key=given.keys[0],
            train_key=given.keys[1],
            noise_key=given.keys[2],
            test_inputs=self._keep(given.test.inputs, np.uint64),
            test_labels=self._keep(given.test.labels, np.uint8),
            n_test=len(given.test.labels),
            evaluate_every=min(plan.every, NEVER),
            curves=plan.curves,
            n_stages=len(stages),
            stages=stages,
            n_fit_stages=len(fit_stages),
            fit_stages=fit_stages,
            n_pieces=len(pieces),
            pieces=pieces,
        )
        if isinstance(train, PackedExamples):
            spec.m = len(train.labels)
            spec.train_inputs = self._keep(train.inputs, np.uint64)
            spec.train_labels = self._keep(train.labels, np.uint8)
        else:
            spec.support = self._keep(train.support, np.int64)
            spec.n_relevant = len(train.support)
            spec.parity_mask = None if train.mask is None else self._keep(train.mask, np.uint64)
            spec.truth_table = None if train.table is None else self._keep(train.table, np.uint8)
            spec.noise_below = train.noise_below
        return spec

    def _keep(self, array: NDArray[Any], kind: type[np.generic]) -> int:
        """Return the address of an array of the type that the library reads, and keep it alive."""
        array = np.ascontiguousarray(array, kind)
        self._kept.append(array)
        return int(array.ctypes.data)

    def advance(self, work: int, *, pause_at_evaluations: bool = False) -> Status:
        """Continue for about `work` units: one is a neuron's forward pass on 32 examples."""
        return Status(library().petridish_advance(self._run, work, pause_at_evaluations))

    @property
    def state(self) -> State:
        """The progress of the run."""
        state = State()
        library().petridish_read_state(self._run, ctypes.byref(state))
        return state

    def curves(self) -> Curve:
        """Return the evaluations so far."""
        count = self.state.n_evaluations
        step, train_wrong, test_wrong = (np.empty(count, np.int64) for _ in range(3))
        train_loss = np.empty(count, np.float64)
        library().petridish_read_curves(
            self._run,
            *[array.ctypes.data for array in (step, train_loss, train_wrong, test_wrong)],
        )
        return Curve(step, train_loss, train_wrong, test_wrong)

    def weights(self) -> list[Floats]:
        """Return W (width, n), b (width,), v (1, width), β (1,)."""
        width, n = self._shape
        found = [np.empty(shape, np.float32) for shape in ((width, n), width, (1, width), 1)]
        library().petridish_read_weights(self._run, *[array.ctypes.data for array in found])
        return found

    def count_wrong(self, examples: PackedExamples) -> int:
        """Count the examples whose output has not the sign of the label."""
        inputs = np.ascontiguousarray(examples.inputs, np.uint64)
        labels = np.ascontiguousarray(examples.labels, np.uint8)
        return int(
            library().petridish_count_wrong(
                self._run, inputs.ctypes.data, labels.ctypes.data, len(labels)
            )
        )
