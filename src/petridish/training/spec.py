"""The spec of a run: a frozen value with everything that the result depends on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache

from petridish.choices import HasText, blamed, describe, placed
from petridish.errors import UserError, require
from petridish.models import MLP, Init, Model, Parameter, parameters_of, usual_start
from petridish.models.base import ChecksTask, FitsItself, Stacked
from petridish.seeds import Streams
from petridish.sources import is_users
from petridish.tasks import Classes, Domain, Finite, LimitsData, Task
from petridish.training.memory import check_memory, fits
from petridish.training.metrics import Below, Error, Metric, SquaredError, Threshold
from petridish.training.settings import Data, Evaluation, Training
from petridish.training.user_code_checks import check_domain, check_domains, try_run, try_tasks
from petridish.values import LATER, Gone, as_value, has_users, is_checked, refuse_gone

MOST_POSSIBLE = 2**20  # most inputs of a task with draws='distinct'


@lru_cache(maxsize=4096)  # asked at every step of a run
def restarted(seed: int, restart: int) -> int:
    """Return the seed of what a restart draws anew: a word of the run's stream "restart"."""
    return int(Streams([seed], "restart").words(restart, 1)[0, 0])


@dataclass(frozen=True)
class Rates:
    """Rates, decays and keep factors from step `start` on, one per parameter."""

    start: int
    rate: tuple[float, ...]
    decay: tuple[float, ...]
    keep: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class RunSpec(HasText):
    """One run: equal specs have equal records, in whatever process, order or batch they are run.

    Without an `init` the model starts as usual: `Uniform()` for this package's models, `Own()`, the
    module's own start, for others.

    The seed draws the task's own choices and the samples. A restart draws the start, the
    minibatches and the noise inside the model anew, on the same data; restart 0 takes them from the
    seed.
    """

    task: Task
    data: Data = Data()
    model: Model = MLP(width=100)
    init: Init = None  # type: ignore[assignment] # the model's usual start, set at once
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    restart: int = field(default=0, metadata=LATER)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.init is None:
            object.__setattr__(self, "init", usual_start(self.model))
        for part in fields(self)[:-2]:
            value = getattr(self, part.name)
            if is_checked(value):
                continue  # the specs of a sweep share most of their parts
            frozen = is_dataclass(value) and not isinstance(value, type)
            if not (frozen and type(value).__dataclass_params__.frozen):
                if part.name == "model" and hasattr(value, "state_dict"):
                    raise UserError(
                        f"RunSpec: model is {type(value).__name__}, a module of PyTorch. Give an "
                        "object of a frozen dataclass whose method build(self, domain, n_outputs) "
                        "returns such a module: each run builds its own."
                    )
                raise UserError(
                    f"RunSpec: {part.name}={value!r} is not an instance of a frozen dataclass. "
                    "Give an object of a class that has @dataclass(frozen=True) above it."
                )
            object.__setattr__(self, part.name, as_value(value, "RunSpec", part.name))
            if part.name in ("task", "model", "init"):
                _check_named(part.name, value)
            if part.name == "evaluation" and isinstance(value, Evaluation):
                for choice in (*value.metrics, *value.instruments):
                    _check_named("evaluation", choice)
        for name in ("seed", "restart"):
            value = getattr(self, name)
            if type(value) is not int:
                value = as_value(value, "RunSpec", name)
                object.__setattr__(self, name, value)
            require(
                isinstance(value, int) and 0 <= value < 2**64,
                f"RunSpec: {name}={value}. Give a whole number from 0 to 2^64 − 1.",
            )
        if isinstance(self.data, Gone) or isinstance(self.training, Gone):
            return
        require(
            not (self.data.online and self.training.batch_size is None),
            "RunSpec: batch_size=None takes the whole sample at every step, but online there is "
            "none. Give a finite data.m or a batch size.",
        )
        require(
            not (self.data.online and self.training.batches == "epochs"),
            "RunSpec: batches='epochs' goes through the training sample, but online there is none. "
            "Give a finite data.m or batches='replacement'.",
        )

    def text(self) -> str:
        """Return the first digits of the key: a parent in the text of its child is short."""
        from petridish.training.keys import run_key

        return run_key(self)[:8]

    @property
    def luck(self) -> int:
        """The seed of the start, the minibatches and the noise inside the model."""
        return restarted(self.seed, self.restart) if self.restart else self.seed

    @property
    def examples_per_step(self) -> int:
        """Examples that a step sees at most: the batch size, or the whole sample."""
        batch = self.training.batch_size
        if batch is None:
            return int(self.data.m)
        return batch if self.training.batches == "replacement" else min(batch, int(self.data.m))

    @property
    def domain(self) -> Domain:
        """What the task's inputs and targets are."""
        if is_users(type(self.task)):
            check_domain(self.task)
        return self.task.domain

    @property
    def n_outputs(self) -> int:
        """The outputs that the loss asks for on this task."""
        loss, domain = self.training.loss, self.domain
        if not is_users(type(loss)):
            return loss.n_outputs(domain)
        with blamed("loss", loss, "n_outputs", domain=domain):
            found: object = loss.n_outputs(domain)
        if not isinstance(found, int) or found < 1:
            raise UserError(
                f"The loss {placed(loss)} returned {found!r} from n_outputs for "
                f"{describe(domain)}. Define "
                "n_outputs(self, domain): how many outputs the network needs."
            )
        return found

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of the model on this task with this loss."""
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
        require(
            target is None or self._has_classes,
            f"Training: target_error={target} is an error rate, and the task "
            f"{describe(self.task)} has real targets. Give target_error=None, or such as "
            "stop=Below(SquaredError(), 0.1).",
        )
        for held in self.evaluation.samples:
            require(
                held.task.domain == self.domain,
                f"Evaluation: the sample {held.name!r} has the domain {held.task.domain}, and the "
                f"task {describe(self.task)} has {self.domain}. Give a task of the same domain.",
            )
            used = any(metric.on == held.name for metric in self.metrics)
            require(  # an instrument may read any sample
                used or bool(self.evaluation.instruments),
                f"Evaluation: nothing is measured on the sample {held.name!r}. Name it in a "
                f"metric, such as {self.usual_metric(held.name)!r}, or leave it out.",
            )
        for metric in self.metrics:
            self.task_of(metric.on)
            require(
                metric.on != "train" or not self.data.online,
                f"The metric {describe(metric)} is measured on the training sample, and online "
                "there is none. Give a finite data.m or another sample.",
            )
            metric.check(self)
        names = ["train_loss", *(m.column for m in self.metrics)]
        names += [each.label for each in self.evaluation.gauges]
        repeated = [name for name in names if names.count(name) > 1]
        require(
            not repeated,
            f"Two things that this run measures are called {repeated[0] if repeated else ''!r}. "
            "Give one of them another label.",
        )
        late = [step for step in self.evaluation.at if step > self.training.steps]
        require(
            not late,
            f"Evaluation: at={self.evaluation.at} names the step {late[0] if late else 0}, and "
            f"the run ends at step {self.training.steps}. Give steps up to there.",
        )
        for each in self.evaluation.gauges:
            missed = [step for step in each.at or () if not self.evaluates_at(step)]
            require(
                not missed,
                f"The instrument {describe(each)} is to be read at the step "
                f"{missed[0] if missed else 0}, at which the run is not evaluated. Name it in "
                "evaluation.at too.",
            )
            each.check(self)

    def _check_decay(self) -> None:
        """Refuse factors by name on a weight decay of 0; factors per layer may be defaults."""
        for piece in self.training.schedule.pieces:
            named = isinstance(piece.decay, tuple) and isinstance(piece.decay[0], tuple)
            require(
                self.training.weight_decay > 0 or not named,
                f"The schedule: decay={piece.decay} has no effect, because weight_decay=0. Give a "
                "weight decay, or leave the factors out.",
            )

    def _check_draws(self) -> None:
        data, target = self.data, self.domain.target
        if data.accept is not None:
            data.accept.check(self.task)
        require(
            data.label_noise == 0 or (isinstance(target, Classes) and target.positions is None),
            f"RunSpec: label_noise={data.label_noise} makes one class per example wrong, and the "
            f"task {describe(self.task)} has {target}. Give label_noise=0.",
        )
        if data.draws == "independent":
            return
        possible = self.task.n_possible if isinstance(self.task, Finite) else math.inf
        require(
            possible <= MOST_POSSIBLE,
            f"RunSpec: draws='distinct' puts all inputs in order, and the task "
            f"{describe(self.task)} has too many (more than {MOST_POSSIBLE}). Give "
            "draws='independent'.",
        )
        for name in ("m", "n_test"):
            value = int(getattr(data, name))
            require(
                value <= possible,
                f"RunSpec: {name}={value} distinct inputs were asked for, but the task "
                f"{describe(self.task)} has only {possible}. Lower {name}.",
            )

    def check(self) -> None:
        """Refuse a combination that cannot run, before anything is trained.

        Drawing initial weights for an empty list of seeds runs every check of the initialisation.
        """
        refuse_gone(self)
        if isinstance(self.task, LimitsData):
            self.task.check_data(self.data)
        check_domains(self)
        if isinstance(self.model, ChecksTask):
            self.model.check_task(self.task)
        stepped, stacked = not isinstance(self.model, FitsItself), isinstance(self.model, Stacked)
        if has_users(self) or (stepped and not stacked):
            check_memory(self)  # before they are tried
        try_tasks(self)
        self._check_draws()
        if not stepped:
            return  # it has no weights, loss or steps
        if not stacked or has_users(self.model):
            from petridish.training.networks import check_module

            check_module(self.model, self.task, self.n_outputs)
        self._check_measures()
        try_run(self)
        self.training.penalty.check(self.model, self.parameters)
        if fits(
            self
        ):  # drawing for no seed takes memory too; a run that does not fit is refused later
            self.init.draw(self.parameters, ())
        self.rates()
        self._check_decay()


def _check_named(part: str, value: object) -> None:
    """Refuse a choice without a name, which tables and messages call it by."""
    kind = type(value)
    require(
        isinstance(value, Gone) or isinstance(getattr(kind, "name", None), str),
        f"RunSpec: the class {kind.__name__} of its {part} has no name. Add a line to it: "
        f'name: ClassVar[str] = "{kind.__name__.lower()}".',
    )
