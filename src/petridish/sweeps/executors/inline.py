"""Everything in this process."""

from __future__ import annotations

from petridish.sweeps.executors.base import Executor, Work, interruptible
from petridish.sweeps.executors.worker import BatchWorker


class Inline(Executor):
    """Everything in this process, one batch after another."""

    jobs = 1

    def run(self, work: Work) -> None:
        """Carry out all batches."""
        with interruptible() as interrupted:
            worker = BatchWorker(work.store, work.report, interrupted.is_set)
            for batch in map(work.wanted, work.batches):
                if batch.specs:
                    worker.carry_out(batch)
                if interrupted.is_set():
                    raise KeyboardInterrupt
