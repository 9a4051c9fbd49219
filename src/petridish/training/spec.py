"""What a run is: a frozen value that names everything its result depends on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Literal

from petridish.choices import describe
from petridish.errors import UserError, check_whole, nearest
from petridish.models import MLP, Init, Model, Parameter, Uniform
from petridish.tasks import Finite, Task
from petridish.training.instruments import INSTRUMENTS
from petridish.training.losses import Hinge, Loss
from petridish.training.optimisers import SGD, Adam, AdamW, Schedule
from petridish.training.penalties import NeuronNorm
from petridish.values import LATER, as_value, find_gone, was_looked_at

Part = tuple[int, tuple[float, ...], tuple[float, ...]]  # of a schedule: start, rates, decays
MOST_POSSIBLE = 2**20  # inputs that are put in order, where each is to be seen once
ONLINE = math.inf  # data.m of a run that sees fresh examples at each step


def _check(condition: bool, message: str) -> None:  # noqa: FBT001 - a condition is what it takes
    if not condition:
        raise UserError(message)


@dataclass(frozen=True, kw_only=True)
class Data:
    """What the run sees of its task.

    Attributes
    ----------
    m : int or inf
        Training examples, drawn once (the paper's m); `ONLINE` for fresh ones at each step.
    label_noise : float
        Probability that a training label is wrong: flipped, or one of the others where there are
        more than two; the held-out sample is clean.
    n_test : int
        Size of the held-out sample.
    draws : "independent" or "distinct"
        Whether examples are drawn one by one, or each run puts all inputs of its task in an order
        of its own: the first m are its training sample, the last n_test its held-out one. The two
        are then disjoint as far as there are inputs for both; with m = n_test = all of them, both
        are the whole population.
    """

    m: float = ONLINE
    label_noise: float = 0.0
    n_test: int = 10_000
    draws: Literal["independent", "distinct"] = field(default="independent", metadata=LATER)

    def __post_init__(self) -> None:
        _check(
            self.m == ONLINE or (self.m >= 1 and self.m == int(self.m) and self.m <= 2**32),
            f"Data: m={self.m} training examples were asked for. "
            "Give a whole number from 1 to 2^32, or inf for fresh examples at each step.",
        )
        object.__setattr__(self, "m", float(self.m))  # 100 and 100.0 are one value, and one key
        _check(
            0 <= self.label_noise <= 1,
            f"Data: label_noise={self.label_noise}. Give a probability from 0 to 1.",
        )
        check_whole("Data", 1, n_test=self.n_test)
        _check(
            self.draws in ("independent", "distinct"),
            f"Data: draws={self.draws!r}. Give 'independent' or 'distinct'.",
        )
        _check(
            self.draws == "independent" or self.m != ONLINE,
            "Data: draws='distinct' takes each input at most once, and m=inf has no end. Give a "
            "finite m.",
        )

    @property
    def online(self) -> bool:
        """Whether each step sees fresh examples."""
        return self.m == ONLINE


@dataclass(frozen=True, kw_only=True)
class Training:
    """How the run learns, and when it stops.

    Attributes
    ----------
    learning_rate, weight_decay : float
        The paper's η and λ, before the schedule's factors.
    batch_size : int or None
        Examples a step (the paper's B), drawn from the m training examples; None takes the whole
        sample at every step: plain gradient descent.
    steps : int
        The budget (the paper's T): the run ends as OUT_OF_STEPS there.
    target_error : float or None
        The run is SOLVED once the error on the whole held-out sample is at most this; None never.
    batches : "replacement" or "epochs"
        How minibatches are drawn: each example by itself with replacement, or by going through the
        whole sample in a new order each epoch, the last batch of an epoch being what is left.
    penalty : NeuronNorm
        What is added to the loss; the losses that are kept are without it.
    precision : "float32" or "float64"
        What is computed with. Initial weights are the same, drawn in float32.
    """

    loss: Loss = Hinge()
    optimiser: SGD | Adam | AdamW = SGD()
    learning_rate: float = 0.1
    weight_decay: float = 0.01
    schedule: Schedule = Schedule()
    batch_size: int | None = 32
    steps: int = 100_000
    target_error: float | None = 0.1
    batches: Literal["replacement", "epochs"] = field(default="replacement", metadata=LATER)
    penalty: NeuronNorm = field(default=NeuronNorm(), metadata=LATER)
    precision: Literal["float32", "float64"] = field(default="float32", metadata=LATER)

    def __post_init__(self) -> None:
        _check(
            isinstance(self.penalty, NeuronNorm),
            f"Training: penalty={self.penalty!r}. Give such as NeuronNorm(1e-4, 2, 3).",
        )
        _check(
            self.precision in ("float32", "float64"),
            f"Training: precision={self.precision!r}. Give 'float32' or 'float64'.",
        )
        _check(
            self.batches in ("replacement", "epochs"),
            f"Training: batches={self.batches!r}. Give 'replacement' or 'epochs'.",
        )
        _check(
            self.batches == "replacement" or self.batch_size is not None,
            "Training: batches='epochs' cuts the sample into minibatches, and batch_size=None "
            "takes it whole. Give a batch size.",
        )
        for name in ("learning_rate", "weight_decay"):
            value = getattr(self, name)
            _check(
                0 <= value < math.inf,
                f"Training: {name}={value}. Give a finite number of at least 0.",
            )
            object.__setattr__(self, name, float(value))
        check_whole("Training", 1, steps=self.steps)
        if self.batch_size is not None:
            check_whole("Training", 1, batch_size=self.batch_size)
        _check(
            self.target_error is None or 0 <= self.target_error <= 1,
            f"Training: target_error={self.target_error}. "
            "Give an error rate from 0 to 1, or none to use the whole budget.",
        )


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """When the run is measured, and what is kept.

    Attributes
    ----------
    every : int
        Steps between two looks at the held-out sample; step 0 and the last step are looked at too.
    curves : bool
        Keep the loss and the errors of every look; the errors are then those of the whole samples.
        Without curves a look only decides whether the run is solved, at a fraction of the cost.
    fitted_error : float or None
        The training sample counts as fitted at the first look that finds at most this error on the
        whole of it; None does not ask.
    instruments : tuple of str
        Names of `INSTRUMENTS` that are read off the weights at every look, beside the curves.
    weights : bool
        Keep the parameters with which the run ends, in float32.
    """

    every: int = 100
    curves: bool = False
    fitted_error: float | None = 0.01
    instruments: tuple[str, ...] = ()
    weights: bool = field(default=False, metadata=LATER)

    def __post_init__(self) -> None:
        check_whole("Evaluation", 1, every=self.every)
        for name in ("curves", "weights"):
            value = getattr(self, name)
            _check(isinstance(value, bool), f"Evaluation: {name}={value!r}. Give true or false.")
        _check(
            self.fitted_error is None or 0 <= self.fitted_error <= 1,
            f"Evaluation: fitted_error={self.fitted_error}. "
            "Give an error rate from 0 to 1, or none not to ask.",
        )
        object.__setattr__(self, "instruments", tuple(self.instruments))
        for name in self.instruments:
            if name not in INSTRUMENTS:
                raise UserError(
                    f"Evaluation: there is no instrument called {name!r}. "
                    f"{nearest(name, INSTRUMENTS)}"
                )
        _check(
            len(set(self.instruments)) == len(self.instruments),
            f"Evaluation: instruments={self.instruments} names one twice. Name each once.",
        )
        _check(
            self.curves or not self.instruments,
            f"Evaluation: instruments={self.instruments} are kept beside the curves. "
            "Give curves=True too.",
        )


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One run: the same spec gives the same record, whoever runs it, when and beside what."""

    task: Task
    data: Data = Data()
    model: Model = MLP(width=100)
    init: Init = Uniform()
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    seed: int = 0

    def __post_init__(self) -> None:
        for part in fields(self)[:-1]:
            value = getattr(self, part.name)
            if was_looked_at(value):
                continue  # the specs of a sweep share most of their parts
            frozen = is_dataclass(value) and not isinstance(value, type)
            if not (frozen and type(value).__dataclass_params__.frozen):
                raise UserError(
                    f"RunSpec: {part.name}={value!r} is not an instance of a frozen dataclass. "
                    "Give one; docs/extend.md shows how."
                )
            object.__setattr__(self, part.name, as_value(value, "RunSpec", part.name))
        if type(self.seed) is not int:
            object.__setattr__(self, "seed", as_value(self.seed, "RunSpec", "seed"))
        _check(
            isinstance(self.seed, int) and 0 <= self.seed < 2**64,
            f"RunSpec: seed={self.seed}. Give a whole number from 0 to 2^64 − 1.",
        )
        _check(
            not (self.data.online and self.training.batch_size is None),
            "RunSpec: batch_size=None takes the whole sample at every step, but online there is "
            "none. Give a finite data.m or a batch size.",
        )
        _check(
            not (self.data.online and self.training.batches == "epochs"),
            "RunSpec: batches='epochs' goes through the training sample, but online there is none. "
            "Give a finite data.m or batches='replacement'.",
        )

    @property
    def examples_a_step(self) -> int:
        """Examples that a step sees at most: the batch size, or the whole sample."""
        batch = self.training.batch_size
        if batch is None:
            return int(self.data.m)
        return batch if self.training.batches == "replacement" else min(batch, int(self.data.m))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What the model trains on this task with this loss."""
        n_outputs = self.training.loss.n_outputs(self.task.n_classes)
        return self.model.parameters(self.task.n_inputs, n_outputs)

    def rates(self) -> list[Part]:
        """Give first step, rates and decays of the parameters, for each part of the schedule."""
        training = self.training
        layers = tuple(parameter.layer for parameter in self.parameters)
        found = []
        for start in sorted({0} | {piece.start for piece in training.schedule.pieces}):
            piece = training.schedule.at(start)
            rate = tuple(training.learning_rate * f for f in piece.spread(piece.rate, layers))
            decay = tuple(training.weight_decay * f for f in piece.spread(piece.decay, layers))
            found.append((start, rate, decay))
        return found

    def _check_draws(self) -> None:
        data, classes = self.data, self.task.n_classes
        _check(
            data.label_noise == 0 or classes >= 2,
            f"RunSpec: label_noise={data.label_noise} makes classes wrong, and the task "
            f"{describe(self.task)} has none. Give label_noise=0.",
        )
        if data.draws == "independent":
            return
        possible = self.task.n_possible if isinstance(self.task, Finite) else math.inf
        _check(
            possible <= MOST_POSSIBLE,
            f"RunSpec: draws='distinct' puts all inputs in order, and the task "
            f"{describe(self.task)} has too many (more than {MOST_POSSIBLE}). Give "
            "draws='independent'.",
        )
        for name in ("m", "n_test"):
            value = int(getattr(data, name))
            _check(
                value <= possible,
                f"RunSpec: {name}={value} distinct inputs were asked for, but the task "
                f"{describe(self.task)} has only {possible}. Lower {name}.",
            )

    def check(self) -> None:
        """Refuse a combination that cannot run, before anything is trained.

        Drawing the initial weights of no run at all meets every check of the initialisation.
        """
        if gone := find_gone(self):
            raise UserError(gone.refusal)
        if check_task := getattr(self.model, "check_task", None):
            check_task(self.task)
        if check_data := getattr(self.task, "check_data", None):
            check_data(self.data)
        self._check_draws()
        if hasattr(self.model, "fit_predict"):
            return  # a model of another kind: nothing is drawn or stepped
        self.training.penalty.check(self.model, self.parameters)
        self.init.draw(self.parameters, ())
        self.rates()
