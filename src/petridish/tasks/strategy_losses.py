"""What the strategies of a task lose in expectation, to a stated accuracy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import rel_entr

from petridish.choices import describe
from petridish.errors import UserError, require
from petridish.tasks.base import HasStrategies, Task, draw_examples

TRUTH = "truth"
BATCH = 2_000
MOST = 20_000_000  # sequences


def expected_losses(
    task: Task, strategies: Sequence[str] | None = None, *, error: float = 1e-4, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """Return the expected KL(truth ‖ strategy) at the last position, with its standard error.

    A network that answers like the strategy has this `KL("truth")`, but for the held-out sample of
    its run. Given the sequence, each is exact; sequences are drawn until every standard error is at
    most `error`. Without names, of all strategies but the truth and Bayes's, which takes long.

    >>> expected_losses(MarkovChains(3, 100), error=1e-3)  # doctest: +SKIP
    {'uniform': (0.259, 0.001), 'unigram': (0.166, 0.001), 'bigram': (0.026, 0.0002)}
    """
    known = task.strategies if isinstance(task, HasStrategies) else ()
    if TRUTH not in known:
        raise UserError(
            f"The task {describe(task)} has no strategies and truth to compare. Give one such as "
            "markov(3, 100)."
        )
    assert isinstance(task, HasStrategies)
    require(error > 0, f"expected_losses: error={error}. Give a number above 0.")
    names = strategies or [name for name in known if name not in (TRUTH, "bayes")]
    sums = np.zeros((len(names), 2))
    count = 0
    while count < MOST:
        sample = draw_examples(task, [seed], "expected losses", count, BATCH)
        truth = task.predict_last(TRUTH, sample)
        for row, name in zip(sums, names, strict=True):
            each = rel_entr(truth, task.predict_last(name, sample)).sum(axis=-1)
            row += each.sum(), (each**2).sum()
        count += BATCH
        mean = sums[:, 0] / count
        errors = np.sqrt(np.maximum(sums[:, 1] / count - mean**2, 0) / (count - 1))
        if (errors <= error).all():
            break
    return {
        name: (float(value), float(spread))
        for name, value, spread in zip(names, mean, errors, strict=True)
    }
