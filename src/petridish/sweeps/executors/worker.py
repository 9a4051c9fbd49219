"""What every worker does, wherever it is: carry out a batch, keep its records, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from petridish.choices import describe, fault_sentence, own_frame
from petridish.errors import UserError
from petridish.sweeps.batches import Batch, run_cost
from petridish.sweeps.executors.base import News
from petridish.training import Ended, Outcome, RunRecord, RunSpec, load_engine, run_key
from petridish.training.chains import ended_weights, finding, with_weights
from petridish.training.devices import find_device

REPORT_SECONDS = 0.2  # between two messages of a worker
KEEP_SECONDS = 2.0  # finished runs wait at most this long, or 1 % of the time so far, for the disk


class KeepsWeights(Protocol):
    """Where the last weights of parents are."""

    def read(self, spec: RunSpec) -> Ended:
        """Return the weights of a run."""

    def write(self, key: str, weights: Ended) -> None:
        """Keep the weights of a run."""


class Keeps(Protocol):
    """Where a worker's records go: a store, or what stands for it."""

    @property
    def weights(self) -> KeepsWeights:
        """The last weights of runs from which others begin."""

    def write(self, records: Sequence[RunRecord]) -> Any:
        """Keep records."""


@contextmanager
def _blamed(batch: Batch) -> Iterator[None]:
    """Turn an error in the user's own code into one sentence."""
    try:
        yield
    except Exception as error:
        own = own_frame(error)
        if own is None or isinstance(error, UserError | MemoryError):
            raise
        spec = batch.specs[0]
        raise UserError(
            f"A run of {describe(spec.model)} on {describe(spec.task)} failed. "
            f"{fault_sentence(error, *own)} The runs that had ended are kept."
        ) from error


class _Spent:
    """The cost of a batch so far: that of the runs that have ended, and of the others' steps."""

    def __init__(self, cost: float, steps: int) -> None:
        self.per_step = cost / max(1, steps)
        self.ended = self.reported = 0.0
        self.running = 0  # steps of the runs that have not ended

    def end(self, record: RunRecord) -> None:
        """Count a run that has ended as a whole, however early it did."""
        self.ended += run_cost(record.spec)
        self.running -= record.steps

    def since(self) -> float:
        """Return the cost since this was last asked."""
        now = self.ended + max(0, self.running) * self.per_step
        new, self.reported = now - self.reported, now
        return new


class BatchWorker:
    """Carries out one batch, keeps its records, and reports its progress: an engine's monitor."""

    def __init__(
        self, store: Keeps, report: Callable[[News], None], stopped: Callable[[], bool]
    ) -> None:
        self.store, self.report, self.stopped = store, report, stopped
        self.started = self.last_kept = self.last_report = time.monotonic()
        self.waiting: list[RunRecord] = []
        self.weights: dict[str, Ended] = {}  # of those from which others begin
        self.model_steps = 0
        self.cost = _Spent(0.0, 1)

    def stepped(self, model_steps: int) -> None:
        """Count steps; now and then report them, and keep what has waited long enough."""
        self.model_steps += model_steps
        self.cost.running += model_steps
        now = time.monotonic()
        if now - self.last_report > REPORT_SECONDS:
            self.last_report = now
            self.report(News(cost=self.cost.since(), model_steps=self.model_steps))
            self.model_steps = 0
            if self.waiting and now - self.last_kept > self._patience(now):
                self.keep()

    def _patience(self, now: float) -> float:
        return max(KEEP_SECONDS, 0.01 * (now - self.started))

    def keep(self) -> None:
        """Put the finished runs on disk, and only then report them."""
        for key, weights in self.weights.items():  # first: a row says that its weights are there
            self.store.weights.write(key, weights)
        self.weights.clear()
        if self.waiting:
            self.store.write(self.waiting)
        solved = sum(record.outcome is Outcome.SOLVED for record in self.waiting)
        self.report(News(len(self.waiting), solved, self.cost.since(), self.model_steps))
        self.waiting, self.model_steps = [], 0
        self.last_kept = time.monotonic()

    def carry_out(self, batch: Batch) -> None:
        """Run the batch to its end, or until stopped; what has ended is kept either way."""
        specs, asked = tuple(batch.specs), {}
        self.cost = _Spent(batch.cost, sum(spec.training.steps for spec in specs))
        if batch.parents:
            asked = {with_weights(spec): spec for spec in specs}
            specs = tuple(asked)
        try:
            with finding(self.store.weights.read), _blamed(batch):
                for record in load_engine(batch.engine).run(specs, self, find_device(batch.device)):
                    self.cost.end(record)
                    self.waiting.append(
                        self._as_asked(record, asked[record.spec]) if asked else record
                    )
        finally:
            self.keep()

    def _as_asked(self, record: RunRecord, spec: RunSpec) -> RunRecord:
        """Set a parent's weights aside; its record has them if its own spec asks for them."""
        if record.outcome is not Outcome.DIVERGED:
            self.weights[run_key(spec)] = ended_weights(record)
        if spec.evaluation.weights:
            return record
        return replace(record, spec=spec, weights=None, weights_of=None)
