"""Specs in, records out."""

from petridish.training.engines.base import (
    ENGINES,
    Engine,
    Monitor,
    Silent,
    choose_engine,
    load_engine,
)
from petridish.training.greedy import Greedy, frozen_below, random_features
from petridish.training.instruments import INSTRUMENTS
from petridish.training.keys import (
    cell_text,
    flat,
    forget_code,
    read_cell,
    read_spec,
    run_key,
    spec_text,
)
from petridish.training.losses import (
    LOSSES,
    Correlation,
    CrossEntropy,
    Hinge,
    Logistic,
    Loss,
    Square,
)
from petridish.training.optimisers import (
    OPTIMISERS,
    SGD,
    Adam,
    AdamW,
    Piece,
    Schedule,
    per_layer,
    step_schedule,
)
from petridish.training.penalties import PENALTIES, NeuronNorm
from petridish.training.record import Curves, Outcome, RunRecord
from petridish.training.spec import ONLINE, Data, Evaluation, RunSpec, Training
from petridish.training.tickets import Ticket
from petridish.values import plain

__all__ = [
    "ENGINES",
    "INSTRUMENTS",
    "LOSSES",
    "ONLINE",
    "OPTIMISERS",
    "PENALTIES",
    "SGD",
    "Adam",
    "AdamW",
    "Correlation",
    "CrossEntropy",
    "Curves",
    "Data",
    "Engine",
    "Evaluation",
    "Greedy",
    "Hinge",
    "Logistic",
    "Loss",
    "Monitor",
    "NeuronNorm",
    "Outcome",
    "Piece",
    "RunRecord",
    "RunSpec",
    "Schedule",
    "Silent",
    "Square",
    "Ticket",
    "Training",
    "cell_text",
    "choose_engine",
    "flat",
    "forget_code",
    "frozen_below",
    "load_engine",
    "per_layer",
    "plain",
    "random_features",
    "read_cell",
    "read_spec",
    "run_key",
    "spec_text",
    "step_schedule",
]
