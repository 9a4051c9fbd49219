"""The native engine's library: whole training runs in C++ behind a plain C interface (`native/`).

Loaded by ctypes, which frees Python's lock during a call: threads may carry out runs side by side.
"""

from petridish.training.native.library import (
    ISA_VARIABLE,
    InstructionSet,
    chosen_set,
    instruction_sets,
    is_built,
    peak_flops,
    words,
)
from petridish.training.native.run import (
    Curve,
    Examples,
    Labelling,
    Looks,
    NativeRun,
    Neurons,
    Rates,
    RunArguments,
)

__all__ = [
    "ISA_VARIABLE",
    "Curve",
    "Examples",
    "InstructionSet",
    "Labelling",
    "Looks",
    "NativeRun",
    "Neurons",
    "Rates",
    "RunArguments",
    "chosen_set",
    "instruction_sets",
    "is_built",
    "peak_flops",
    "words",
]
