"""The settings of a run: its data, how it is trained, when it is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from petridish.choices import describe
from petridish.errors import check_one_of, check_whole, require
from petridish.tasks import Task
from petridish.training.acceptance import Accepts
from petridish.training.instruments import instrument
from petridish.training.losses import Hinge, Loss
from petridish.training.metrics import Above, Below, Error, Metric, Threshold
from petridish.training.optimisers import SGD, Adam, AdamW, Schedule
from petridish.training.penalties import NeuronNorm
from petridish.training.readings import Instrument
from petridish.values import LATER, Gone, settle

USUAL_ERROR = 0.1  # training.target_error, unless a stop rule or another error is given
ONLINE = math.inf  # data.m of a run that sees fresh examples at each step


@dataclass(frozen=True, kw_only=True)
class Data:
    """The samples of a run.

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
    accept : Accepts, optional
        Which training samples are accepted: others are drawn anew, whole, and the number of
        attempts is kept with the run.
    skip : int
        The place in the stream of training examples at which the run begins: a run that goes on
        from another one (`From`) need not see that one's examples again.
    """

    m: float = ONLINE
    label_noise: float = 0.0
    n_test: int = 10_000
    draws: Literal["independent", "distinct"] = field(default="independent", metadata=LATER)
    accept: Accepts | None = field(default=None, metadata=LATER)
    skip: int = field(default=0, metadata=LATER)

    def __post_init__(self) -> None:
        require(
            self.m == ONLINE or (self.m >= 1 and self.m == int(self.m) and self.m <= 2**32),
            f"Data: m={self.m:g} training examples were asked for. "
            "Give a whole number from 1 to 2^32, or inf for fresh examples at each step.",
        )
        object.__setattr__(self, "m", float(self.m))  # 100 and 100.0 are one value, and one key
        require(
            0 <= self.label_noise <= 1,
            f"Data: label_noise={self.label_noise}. Give a probability from 0 to 1.",
        )
        check_whole("Data", 1, n_test=self.n_test)
        check_one_of("Data", ("independent", "distinct"), draws=self.draws)
        require(
            self.draws == "independent" or self.m != ONLINE,
            "Data: draws='distinct' takes each input at most once, and m=inf has no end. Give a "
            "finite m.",
        )
        check_whole("Data", 0, skip=self.skip)
        require(
            self.draws == "independent" or (self.accept is None and self.skip == 0),
            "Data: draws='distinct' cuts one order of all inputs into the samples: nothing can be "
            "skipped or drawn anew. Give draws='independent', or neither accept nor skip.",
        )
        require(
            self.accept is None or isinstance(self.accept, Accepts | Gone),
            f"Data: accept={self.accept!r}. Give for example OneHypothesis().",
        )
        require(
            self.accept is None or self.m != ONLINE,
            f"Data: accept={describe(self.accept)} judges whole training samples, and with m=inf "
            "there is none. Give a finite m.",
        )

    @property
    def online(self) -> bool:
        """Whether each step sees fresh examples."""
        return self.m == ONLINE


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a run is trained, and when it stops.

    Attributes
    ----------
    learning_rate, weight_decay : float
        The paper's η and λ, before the schedule's factors.
    batch_size : int or None
        Examples per step (the paper's B), drawn from the m training examples; None takes the whole
        sample at every step: plain gradient descent.
    steps : int
        The budget (the paper's T): the run ends as OUT_OF_STEPS there.
    target_error : float or None
        The run is SOLVED once the error on the whole held-out sample is at most this; None never.
    stop : Below or Above, optional
        The run is SOLVED once a metric is beyond a value. It takes the place of `target_error`,
        which is the short spelling of ``stop=Below(Error(), target_error)``.
    clip : float, optional
        A gradient whose norm over all parameters is larger is scaled down to it, as PyTorch's
        `clip_grad_norm_` does.
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
    target_error: float | None = USUAL_ERROR
    batches: Literal["replacement", "epochs"] = field(default="replacement", metadata=LATER)
    penalty: NeuronNorm = field(default=NeuronNorm(), metadata=LATER)
    precision: Literal["float32", "float64"] = field(default="float32", metadata=LATER)
    stop: Below | Above | None = field(default=None, metadata=LATER)
    clip: float | None = field(default=None, metadata=LATER)

    def __post_init__(self) -> None:
        require(
            self.stop is None or isinstance(self.stop, Threshold | Gone),
            f"Training: stop={self.stop!r}. Give for example Below(SquaredError(), 0.1).",
        )
        if isinstance(self.stop, Threshold):  # one meaning has one spelling, and one key
            short = isinstance(self.stop, Below) and self.stop.metric == Error()
            short = short and not self.stop.strict
            error = self.stop.value if short else None
            require(  # the default may not have been given by the user
                self.target_error in (None, USUAL_ERROR, error),
                f"Training: target_error={self.target_error} has no effect beside "
                f"stop={describe(self.stop)}, which takes its place. Give one of the two.",
            )
            object.__setattr__(self, "target_error", error)
            object.__setattr__(self, "stop", None if short else self.stop)
        require(
            self.clip is None or 0 < self.clip < math.inf,
            f"Training: clip={self.clip}. Give a positive number, or none not to clip.",
        )
        require(
            isinstance(self.penalty, NeuronNorm | Gone),
            f"Training: penalty={self.penalty!r}. Give for example NeuronNorm(1e-4, 2, 3).",
        )
        for name, there, example in (
            ("loss", hasattr(self.loss, "n_outputs"), "CrossEntropy()"),
            ("optimiser", isinstance(self.optimiser, SGD | Adam), "Adam()"),
            ("schedule", isinstance(self.schedule, Schedule), "Schedule()"),
        ):
            value = getattr(self, name)
            require(
                isinstance(value, Gone) or (there and not isinstance(value, type)),
                f"Training: {name}={value!r}. Give for example {example}.",
            )
        check_one_of("Training", ("float32", "float64"), precision=self.precision)
        check_one_of("Training", ("replacement", "epochs"), batches=self.batches)
        require(
            self.batches == "replacement" or self.batch_size is not None,
            "Training: batches='epochs' cuts the sample into minibatches, and batch_size=None "
            "takes it whole. Give a batch size.",
        )
        for name in ("learning_rate", "weight_decay"):
            value = getattr(self, name)
            require(
                0 <= value < math.inf,
                f"Training: {name}={value:g}. Give a finite number of at least 0.",
            )
            object.__setattr__(self, name, float(value))
        check_whole("Training", 1, steps=self.steps)
        if self.batch_size is not None:
            check_whole("Training", 1, batch_size=self.batch_size)
        require(
            self.target_error is None or 0 <= self.target_error <= 1,
            f"Training: target_error={self.target_error}. "
            "Give an error rate from 0 to 1, or none to use the whole budget.",
        )


@dataclass(frozen=True)
class Held:
    """A further held-out sample, from another task of the same domain: Held("iid", task, 1000)."""

    name: str
    task: Task
    n: int = 1_000

    def __post_init__(self) -> None:
        require(
            isinstance(self.name, str) and self.name.isidentifier(),
            f"Held: name={self.name!r}. Give a name of letters, digits and '_'.",
        )
        require(
            self.name not in ("test", "train"),
            f"Held: name={self.name!r} is that of a sample which every run has. Give another.",
        )
        check_whole("Held", 1, n=self.n)


_EXAMPLES = {
    "instruments": "instruments=(Movement(),), or names",
    "metrics": "metrics=(KL('truth'),)",
    "samples": "samples=(Held('iid', task),)",
    "reached": "reached=(Below(Error(), 0.05),)",
    "at": "at=(10, 100)",
}


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """When a run is evaluated, and what is kept of it.

    Attributes
    ----------
    every : int
        Steps between two evaluations; step 0 and the last step are evaluated too.
    curves : bool
        Keep the loss and the metrics of every evaluation, measured on the whole samples. Without
        curves an evaluation only decides whether the run is solved, at a fraction of the cost.
    fitted_error : float or None
        The training sample counts as fitted at the first evaluation that finds at most this error
        on the whole of it; None does not ask, and of real targets nothing is asked.
    instruments : tuple of Instrument
        What is read off the run at every evaluation, beside the curves; a text such as "movement"
        is the name of an instrument.
    weights : bool
        Keep the parameters with which the run ends, in float32.
    metrics : tuple of Metric
        What is measured beside the error (of real targets, the squared error).
    samples : tuple of Held
        Further held-out samples, on which metrics may be measured.
    reached : tuple of Below or Above
        Thresholds whose first step is kept, without stopping the run.
    at : tuple of int
        Steps at which the run is evaluated beside the multiples of `every`.
    """

    every: int = 100
    curves: bool = False
    fitted_error: float | None = 0.01
    instruments: tuple[Instrument | str, ...] = ()
    weights: bool = field(default=False, metadata=LATER)
    metrics: tuple[Metric, ...] = field(default=(), metadata=LATER)
    samples: tuple[Held, ...] = field(default=(), metadata=LATER)
    reached: tuple[Below | Above, ...] = field(default=(), metadata=LATER)
    at: tuple[int, ...] = field(default=(), metadata=LATER)

    def __post_init__(self) -> None:
        settle(self)
        check_whole("Evaluation", 1, every=self.every)
        for name in ("curves", "weights"):
            value = getattr(self, name)
            require(isinstance(value, bool), f"Evaluation: {name}={value!r}. Give true or false.")
        require(
            self.fitted_error is None or 0 <= self.fitted_error <= 1,
            f"Evaluation: fitted_error={self.fitted_error}. "
            "Give an error rate from 0 to 1, or none not to ask.",
        )
        for name, example in _EXAMPLES.items():
            given = getattr(self, name)
            require(
                isinstance(given, tuple),
                f"Evaluation: {name}={given!r} is no tuple. Give for example {example}.",
            )
        object.__setattr__(self, "instruments", tuple(instrument(i) for i in self.instruments))
        known = [each for each in self.instruments if isinstance(each, Instrument)]
        labels = tuple(each.label for each in known)
        require(
            len(set(labels)) == len(labels),
            f"Evaluation: instruments={labels} names one twice. Name each once.",
        )
        require(
            self.curves or not self.instruments,
            f"Evaluation: instruments={labels} are kept beside the curves. Give curves=True too.",
        )
        for name, kind in (("metrics", Metric), ("samples", Held), ("reached", Threshold)):
            for value in getattr(self, name):
                require(
                    isinstance(
                        value, kind | Gone
                    ),  # a value of a missing class prints, and does not run
                    f"Evaluation: {name} has {value!r}, which is no {kind.__name__}. Give for "
                    f"example {_EXAMPLES[name]}.",
                )
        names = [held.name for held in self.samples]
        require(
            len(set(names)) == len(names),
            f"Evaluation: two samples are called {max(names, key=names.count, default='')!r}. "
            "Give each its own name.",
        )
        for step in self.at:
            check_whole("Evaluation", 0, at=step)
        object.__setattr__(self, "at", tuple(sorted(set(self.at))))  # one spelling, one key

    @property
    def gauges(self) -> tuple[Instrument, ...]:
        """The instruments, as values."""
        return tuple(instrument(each) for each in self.instruments)
