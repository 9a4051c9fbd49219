"""Finding and loading the library, and choosing among its instruction sets."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

import petridish.training.native
from petridish.errors import UserError, nearest

ABI = 8  # PETRIDISH_ABI of native/petridish.h
ISA_VARIABLE = "PETRIDISH_ISA"  # environment: avx512, avx2 or portable instead of the fastest
LIBRARY_VARIABLE = "PETRIDISH_LIBRARY"  # environment: another build of the library
MAX_COEFFICIENTS = 16


class NativePiece(ctypes.Structure):
    """`petridish_piece`: rates and decays of W, b, v, β from a step on."""

    _fields_ = [("start", c_int64), ("rate", c_double * 4), ("decay", c_double * 4)]


class NativeStage(ctypes.Structure):
    """`petridish_stage`: a part of a sample, read at an evaluation."""

    _fields_ = [("start", c_int64), ("stop", c_int64), ("limit", c_int64)]


class Spec(ctypes.Structure):
    """`petridish_spec`: everything a run depends on but its weights."""

    _fields_ = [
        ("n", c_int64),
        ("width", c_int64),
        ("batch_size", c_int64),
        ("steps", c_int64),
        ("m", c_int64),
        ("loss", c_int32),
        ("certify", c_int32),
        ("activation", c_int32),
        ("output", c_int32),
        ("degree", c_int32),
        ("n_coefficients", c_int32),
        ("scale", c_double),
        ("coefficients", c_double * MAX_COEFFICIENTS),
        ("seed", c_uint64),
        ("batches_key", c_uint64),
        ("train_key", c_uint64),
        ("noise_key", c_uint64),
        ("train_inputs", c_void_p),
        ("train_labels", c_void_p),
        ("parity_mask", c_void_p),
        ("support", c_void_p),
        ("n_relevant", c_int64),
        ("truth_table", c_void_p),
        ("noise_below", c_uint64),
        ("test_inputs", c_void_p),
        ("test_labels", c_void_p),
        ("n_test", c_int64),
        ("evaluate_every", c_int64),
        ("curves", c_int32),
        ("n_stages", c_int32),
        ("stages", POINTER(NativeStage)),
        ("n_fit_stages", c_int64),
        ("fit_stages", POINTER(NativeStage)),
        ("n_pieces", c_int64),
        ("pieces", POINTER(NativePiece)),
    ]


class State(ctypes.Structure):
    """`petridish_state`: the progress of a run."""

    _fields_ = [
        ("step", c_int64),
        ("test_wrong", c_int64),
        ("train_loss", c_double),
        ("n_evaluations", c_int64),
        ("fitted_at", c_int64),
    ]


class NativeFactors(ctypes.Structure):
    """`petridish_factors`: rates, decays and kept shares of all parameters from a step on."""

    _fields_ = [
        ("start", c_int64),
        ("rate", c_void_p),
        ("decay", c_void_p),
        ("keep", c_void_p),
    ]


class NativeDescent(ctypes.Structure):
    """`petridish_descent`: how weights follow their gradients."""

    _fields_ = [
        ("optimiser", c_int64),
        ("momentum", c_double),
        ("beta1", c_double),
        ("beta2", c_double),
        ("epsilon", c_double),
        ("clip", c_double),
        ("n_pieces", c_int64),
        ("pieces", POINTER(NativeFactors)),
    ]


class AttentionSpec(ctypes.Structure):
    """`petridish_attention_spec`: everything that a run of attention depends on but its weights."""

    _fields_ = [
        ("states", c_int32),
        ("length", c_int32),
        ("d", c_int32),
        ("heads", c_int32),
        ("layers", c_int32),
        ("batch_size", c_int64),
        ("descent", NativeDescent),
        ("draws", c_int32),
        ("one_row", c_int32),
        ("seed", c_uint64),
        ("key", c_uint64),
        ("skip", c_int64),
    ]


class ClsSpec(ctypes.Structure):
    """`petridish_cls_spec`: all that a run of a block with [CLS] depends on but its weights."""

    _fields_ = [
        ("vocabulary", c_int32),
        ("length", c_int32),
        ("d", c_int32),
        ("heads", c_int32),
        ("outputs", c_int32),
        ("drop_below", c_int32),
        ("factor", c_double),
        ("batch_size", c_int64),
        ("descent", NativeDescent),
        ("seed", c_uint64),
        ("keys", c_uint64 * 4),
    ]


class NativeBatches(ctypes.Structure):
    """`petridish_batches`: where the batches of some steps are."""

    _fields_ = [
        ("tokens", c_void_p),
        ("labels", c_void_p),
        ("places", c_void_p),
        ("stride", c_int64),
    ]


_STRUCTS = (
    NativePiece,
    NativeStage,
    Spec,
    State,
    NativeFactors,
    NativeDescent,
    AttentionSpec,
    ClsSpec,
    NativeBatches,
)
"""In the order of native/petridish.h."""

_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "petridish_abi": (c_int32, []),
    "petridish_struct_size": (c_int64, [c_int32]),
    "petridish_isa_name": (c_char_p, [c_int32]),
    "petridish_isa_runs": (c_int32, [c_int32]),
    "petridish_begin": (c_void_p, [POINTER(Spec), c_int32, *[c_void_p] * 4]),
    "petridish_end": (None, [c_void_p]),
    "petridish_advance": (c_int32, [c_void_p, c_int64, c_int32]),
    "petridish_read_state": (None, [c_void_p, POINTER(State)]),
    "petridish_read_curves": (None, [c_void_p] * 5),
    "petridish_read_weights": (None, [c_void_p] * 5),
    "petridish_count_wrong": (c_int64, [c_void_p, c_void_p, c_void_p, c_int64]),
    "petridish_attention_begin": (c_void_p, [POINTER(AttentionSpec), c_int32, c_void_p]),
    "petridish_attention_end": (None, [c_void_p]),
    "petridish_attention_advance": (c_int64, [c_void_p, c_int64, c_int64, *[c_void_p] * 3]),
    "petridish_attention_weights": (None, [c_void_p] * 2),
    "petridish_attention_outputs": (None, [c_void_p, c_void_p, c_int64, c_int32, c_void_p]),
    "petridish_attention_pattern": (
        None,
        [c_void_p, c_void_p, c_int64, c_int32, c_int32, c_void_p, c_void_p],
    ),
    "petridish_attention_gradient": (c_double, [c_void_p] * 4),
    "petridish_attention_draw": (None, [c_void_p, c_int64, c_int64, c_void_p, c_void_p]),
    "petridish_cls_begin": (c_void_p, [POINTER(ClsSpec), c_int32, c_void_p]),
    "petridish_cls_end": (None, [c_void_p]),
    "petridish_cls_advance": (
        c_int64,
        [c_void_p, c_int64, c_int64, POINTER(NativeBatches), c_void_p],
    ),
    "petridish_cls_weights": (None, [c_void_p] * 2),
    "petridish_cls_outputs": (None, [c_void_p, c_void_p, c_int64, c_void_p]),
    "petridish_cls_gradient": (
        c_double,
        [c_void_p, c_int64, POINTER(NativeBatches), c_void_p],
    ),
    "petridish_words": (None, [c_uint64, c_uint64, c_int64, c_int64, c_void_p]),
    "petridish_peak_flops": (c_double, [c_int32, c_double]),
}


def _find() -> Path | None:
    if given := os.environ.get(LIBRARY_VARIABLE):
        return Path(given)
    # An editable install has the library in another folder.
    for folder in petridish.training.native.__path__:
        for path in sorted(Path(folder).glob("petridish_native.*")):
            return path
    return None


@cache
def is_built() -> bool:
    """Return whether this installation has the library."""
    return _find() is not None


@cache
def library() -> ctypes.CDLL:
    """Load the library."""
    path = _find()
    if path is None:
        raise UserError(
            "The native engine was not built. Install a C++ compiler and install petridish again."
        )
    given = LIBRARY_VARIABLE in os.environ
    remedy = f"Correct {LIBRARY_VARIABLE}." if given else "Install petridish again."
    try:
        loaded = ctypes.CDLL(str(path))
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise UserError(f"The native engine cannot be loaded: {error}. {remedy}") from error
    if loaded.petridish_abi() != ABI:
        raise UserError(
            f"The native engine at {path} is of another version of petridish (its interface is "
            f"{loaded.petridish_abi()}, this one's is {ABI}). {remedy}"
        )
    for index, struct in enumerate(_STRUCTS):
        size = loaded.petridish_struct_size(index)
        if size != ctypes.sizeof(struct):
            raise UserError(
                f"The native engine at {path} is of another version of petridish (its "
                f"{struct.__name__} has {size} bytes, this one's has {ctypes.sizeof(struct)}). "
                f"{remedy}"
            )
    return loaded


class HeldRun:
    """A run that the library holds in its own memory, given back at the end of a `with` block."""

    end: ClassVar[str]
    """The library's function that gives the memory back."""

    _run: int | None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        getattr(library(), self.end)(self._run)
        self._run = None


@dataclass(frozen=True)
class InstructionSet:
    """One of the sets that the kernels were compiled for; all give the same bits."""

    index: int
    name: str
    runs_here: bool


@cache
def instruction_sets() -> tuple[InstructionSet, ...]:
    """List the library's instruction sets, the fastest first."""
    loaded = library()
    found: list[InstructionSet] = []
    while (name := loaded.petridish_isa_name(len(found))) is not None:
        runs = bool(loaded.petridish_isa_runs(len(found)))
        found.append(InstructionSet(len(found), name.decode(), runs))
    return tuple(found)


def chosen_set() -> InstructionSet:
    """Return the fastest set that this processor has, or the one that the environment names."""
    here = {isa.name: isa for isa in instruction_sets() if isa.runs_here}
    asked = os.environ.get(ISA_VARIABLE)
    if not asked:
        return next(iter(here.values()))
    if asked not in here:
        raise UserError(
            f"{ISA_VARIABLE}={asked} asks for instructions that this processor, or this build, "
            f"does not have. {nearest(asked, here)}"
        )
    return here[asked]


def words(seed: int, key: int, start: int, count: int) -> NDArray[np.uint64]:
    """Draw words of the stream (seed, key), as `petridish.seeds` does."""
    drawn = np.empty(count, np.uint64)
    library().petridish_words(seed, key, start, count, drawn.ctypes.data)
    return drawn


def peak_flops(seconds: float = 0.2) -> float:
    """Measure floating-point operations per second of multiply-adds in registers, on one core."""
    return float(library().petridish_peak_flops(chosen_set().index, seconds))
