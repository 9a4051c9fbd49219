"""What a run is: a frozen value that names everything its result depends on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Literal

from petridish.choices import describe
from petridish.errors import UserError, check_whole
from petridish.models import MLP, Init, Model, Parameter, parameters_of, usual_start
from petridish.models.base import ChecksTask, FitsItself, Stacked
from petridish.tasks import Classes, Domain, Finite, LimitsData, Task
from petridish.training.instruments import instrument
from petridish.training.losses import Hinge, Loss
from petridish.training.metrics import Above, Below, Error, Metric, SquaredError, Threshold
from petridish.training.optimisers import SGD, Adam, AdamW, Schedule
from petridish.training.penalties import NeuronNorm
from petridish.training.readings import Instrument
from petridish.values import LATER, Gone, as_value, find_gone, was_looked_at

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
            f"Data: m={self.m:g} training examples were asked for. "
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
    target_error: float | None = 0.1
    batches: Literal["replacement", "epochs"] = field(default="replacement", metadata=LATER)
    penalty: NeuronNorm = field(default=NeuronNorm(), metadata=LATER)
    precision: Literal["float32", "float64"] = field(default="float32", metadata=LATER)
    stop: Below | Above | None = field(default=None, metadata=LATER)
    clip: float | None = field(default=None, metadata=LATER)

    def __post_init__(self) -> None:
        _check(
            self.stop is None or isinstance(self.stop, Threshold | Gone),
            f"Training: stop={self.stop!r}. Give such as Below(SquaredError(), 0.1).",
        )
        if isinstance(self.stop, Threshold):  # one meaning has one spelling, and one key
            short = isinstance(self.stop, Below) and self.stop.metric == Error()
            short = short and not self.stop.strict
            object.__setattr__(self, "target_error", self.stop.value if short else None)
            object.__setattr__(self, "stop", None if short else self.stop)
        _check(
            self.clip is None or 0 < self.clip < math.inf,
            f"Training: clip={self.clip}. Give a positive number, or none not to clip.",
        )
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
                f"Training: {name}={value:g}. Give a finite number of at least 0.",
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


@dataclass(frozen=True)
class Held:
    """A further held-out sample, of another task in the same domain: Held("iid", task, 1000)."""

    name: str
    task: Task
    n: int = 1_000

    def __post_init__(self) -> None:
        _check(
            isinstance(self.name, str) and self.name.isidentifier(),
            f"Held: name={self.name!r}. Give a name of letters, digits and '_'.",
        )
        _check(
            self.name not in ("test", "train"),
            f"Held: name={self.name!r} is that of a sample which every run has. Give another.",
        )
        check_whole("Held", 1, n=self.n)


_EXAMPLES = {
    "metrics": "metrics=(KL('truth'),)",
    "samples": "samples=(Held('iid', task),)",
    "reached": "reached=(Below(Error(), 0.05),)",
}


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """When the run is measured, and what is kept.

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
        stands for the instrument of that name.
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
        check_whole("Evaluation", 1, every=self.every)
        for name in ("curves", "weights"):
            value = getattr(self, name)
            _check(isinstance(value, bool), f"Evaluation: {name}={value!r}. Give true or false.")
        _check(
            self.fitted_error is None or 0 <= self.fitted_error <= 1,
            f"Evaluation: fitted_error={self.fitted_error}. "
            "Give an error rate from 0 to 1, or none not to ask.",
        )
        _check(
            isinstance(self.instruments, tuple | list),
            f"Evaluation: instruments={self.instruments!r} is no tuple. Give such as "
            "instruments=(Movement(),), or names.",
        )
        object.__setattr__(self, "instruments", tuple(instrument(i) for i in self.instruments))
        known = [each for each in self.instruments if isinstance(each, Instrument)]
        labels = tuple(each.label for each in known)
        _check(
            len(set(labels)) == len(labels),
            f"Evaluation: instruments={labels} names one twice. Name each once.",
        )
        _check(
            self.curves or not self.instruments,
            f"Evaluation: instruments={labels} are kept beside the curves. Give curves=True too.",
        )
        for name, kind in (("metrics", Metric), ("samples", Held), ("reached", Threshold)):
            given = getattr(self, name)
            _check(
                isinstance(given, tuple | list),
                f"Evaluation: {name}={given!r} is no tuple. Give such as {_EXAMPLES[name]}.",
            )
            values = tuple(given)
            object.__setattr__(self, name, values)
            for value in values:
                _check(
                    isinstance(value, kind | Gone),  # whose class is gone prints, and does not run
                    f"Evaluation: {name} has {value!r}, which is no {kind.__name__}. Give such as "
                    f"{_EXAMPLES[name]}.",
                )
        names = [held.name for held in self.samples]
        _check(
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


@dataclass(frozen=True)
class Rates:
    """What the schedule asks from step `start` on, one number per parameter."""

    start: int
    rate: tuple[float, ...]
    decay: tuple[float, ...]
    keep: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One run: the same spec gives the same record, whoever runs it, when and beside what.

    Without an `init` the model starts as usual: `Uniform()` for this package's models, `Own()`, the
    module's own start, for others.
    """

    task: Task
    data: Data = Data()
    model: Model = MLP(width=100)
    init: Init = None  # type: ignore[assignment] # the model's usual start, set at once
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    seed: int = 0

    def __post_init__(self) -> None:
        if self.init is None:
            object.__setattr__(self, "init", usual_start(self.model))
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
    def domain(self) -> Domain:
        """What the task's inputs and targets are."""
        return self.task.domain

    @property
    def n_outputs(self) -> int:
        """The outputs that the loss asks for on this task."""
        return self.training.loss.n_outputs(self.domain)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What the model has on this task with this loss."""
        return parameters_of(self.model, self.domain, self.n_outputs)

    @property
    def stop(self) -> Threshold | None:
        """The threshold at which the run is solved."""
        training = self.training
        if training.stop is None and training.target_error is not None:
            return Below(Error(), training.target_error)
        return training.stop

    @property
    def fitted(self) -> Threshold | None:
        """The threshold at which the training sample counts as fitted."""
        error = self.evaluation.fitted_error
        if error is None or self.data.online or not self._has_classes:
            return None
        return Below(Error(on="train"), error)

    @property
    def _has_classes(self) -> bool:
        return isinstance(self.domain.target, Classes)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What is measured at the end, each once; the usual metric of the task comes first."""
        asked = [self.usual_metric("test"), *self.evaluation.metrics]
        asked += [each.metric for each in (*self.evaluation.reached, self.stop) if each is not None]
        return tuple(dict.fromkeys(asked))

    def usual_metric(self, sample: str) -> Metric:
        """Return what is measured without being asked for: the error, or the squared error."""
        return Error(on=sample) if self._has_classes else SquaredError(on=sample)

    @property
    def curve_metrics(self) -> tuple[Metric, ...]:
        """What curves keep: the metrics, and the usual one on the training sample too."""
        if self.data.online:
            return self.metrics
        first, *others = self.metrics
        return tuple(dict.fromkeys([self.usual_metric("train"), first, *others]))

    def task_of(self, sample: str) -> Task:
        """Return the task from which a sample is drawn."""
        if sample in ("test", "train"):
            return self.task
        for held in self.evaluation.samples:
            if held.name == sample:
                return held.task
        known = ["test", "train", *(held.name for held in self.evaluation.samples)]
        raise UserError(
            f"There is no sample called {sample!r}. Known: {', '.join(known)}. Give others by "
            "evaluation.samples."
        )

    def evaluates_at(self, step: int) -> bool:
        """Return whether the run is evaluated at a step."""
        evaluation = self.evaluation
        return step % evaluation.every == 0 or step == self.training.steps or step in evaluation.at

    def next_evaluation(self, step: int) -> int:
        """Return the first evaluation after `step`."""
        evaluation = self.evaluation
        later = [at for at in evaluation.at if at > step]
        regular = (step // evaluation.every + 1) * evaluation.every
        return min(regular, self.training.steps, *later)

    def rates(self) -> list[Rates]:
        """Return rates, decays and kept shares of the parameters, for each part of the schedule.

        A parameter that is not trained has none.
        """
        training, parameters = self.training, self.parameters
        found = []
        for start in sorted({0} | {piece.start for piece in training.schedule.pieces}):
            piece = training.schedule.at(start)
            rate = [training.learning_rate * f for f in piece.spread(piece.rate, parameters)]
            decay = [training.weight_decay * f for f in piece.spread(piece.decay, parameters)]
            keep = piece.spread(piece.keep, parameters)
            found.append(Rates(start, tuple(rate), tuple(decay), tuple(keep)))
        return found

    def _check_measures(self) -> None:
        """Refuse metrics, thresholds, samples and instruments that do not fit the run."""
        target = self.training.target_error
        _check(
            target is None or self._has_classes,
            f"Training: target_error={target} is an error rate, and the task "
            f"{describe(self.task)} has real targets. Give target_error=None, or such as "
            "stop=Below(SquaredError(), 0.1).",
        )
        for held in self.evaluation.samples:
            _check(
                held.task.domain == self.domain,
                f"Evaluation: the sample {held.name!r} has the domain {held.task.domain}, and the "
                f"task {describe(self.task)} has {self.domain}. Give a task of the same domain.",
            )
        for metric in self.metrics:
            self.task_of(metric.on)
            _check(
                metric.on != "train" or not self.data.online,
                f"The metric {describe(metric)} is measured on the training sample, and online "
                "there is none. Give a finite data.m or another sample.",
            )
            metric.check(self)
        names = ["train_loss", *(m.column for m in self.metrics)]
        names += [each.label for each in self.evaluation.gauges]
        repeated = [name for name in names if names.count(name) > 1]
        _check(
            not repeated,
            f"Two things that this run measures are called {repeated[0] if repeated else ''!r}. "
            "Give one of them another label.",
        )
        late = [step for step in self.evaluation.at if step > self.training.steps]
        _check(
            not late,
            f"Evaluation: at={self.evaluation.at} names the step {late[0] if late else 0}, and "
            f"the run ends at step {self.training.steps}. Give steps up to there.",
        )
        for each in self.evaluation.gauges:
            missed = [step for step in each.at or () if not self.evaluates_at(step)]
            _check(
                not missed,
                f"The instrument {describe(each)} is to be read at the step "
                f"{missed[0] if missed else 0}, at which the run is not evaluated. Name it in "
                "evaluation.at too.",
            )
            each.check(self)

    def _check_draws(self) -> None:
        data, target = self.data, self.domain.target
        _check(
            data.label_noise == 0 or (isinstance(target, Classes) and target.positions is None),
            f"RunSpec: label_noise={data.label_noise} makes one class per example wrong, and the "
            f"task {describe(self.task)} has {target}. Give label_noise=0.",
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
        if isinstance(self.model, ChecksTask):
            self.model.check_task(self.task)
        if isinstance(self.task, LimitsData):
            self.task.check_data(self.data)
        self._check_draws()
        if isinstance(self.model, FitsItself):
            return  # a model of another kind: nothing is drawn or stepped
        if not isinstance(self.model, Stacked):
            from petridish.training.networks import check_module

            check_module(self.model, self.task, self.n_outputs)
        self._check_measures()
        self.training.penalty.check(self.model, self.parameters)
        self.init.draw(self.parameters, ())
        self.rates()
