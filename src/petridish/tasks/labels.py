"""What looks wrong in the examples of a user's task.

Whether it labels them as its domain counts classes, from 0 and −1 for none; and whether every seed
draws the same.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError
from petridish.tasks.base import Examples, Task, draw_examples

SEEDS = (0, 1)
FEW_LABELS, MANY_LABELS = 64, 4096  # examples drawn; many only if few look wrong
FEW_EXAMPLES = 16  # of fewer, two seeds may draw the same by chance


def check_classes(task: Task, most: int) -> None:
    """Refuse labels ±1, and labels that begin at −1; warn of a label that is always the same.

    More than `most` examples are drawn if the task has them. At fewer than 64, nothing is said: a
    class may be missing by chance.
    """
    k = task.domain.n_classes
    if not k:
        return
    for count in (FEW_LABELS, MANY_LABELS):
        labels = _labels(task, count, most)
        found = set(np.unique(labels).tolist())
        # At positions, −1 is common, and the last token may never be a label.
        below = {-1} < found and k - 1 not in found and labels.ndim == 2
        signs = k == 2 and found == {-1, 1}
        if labels.shape[1] < FEW_LABELS or not (below or signs or len(found - {-1}) == 1):
            return
    if signs:
        raise UserError(
            f"The task {describe(task)} drew the labels −1 and 1 alone, and −1 stands for no "
            "label: these would count nowhere. Return class 0 for y = +1 and class 1 for y = −1."
        )
    if below:
        raise UserError(
            f"The task {describe(task)}: {_in_words(labels, k)}. Return labels from 0 to {k - 1}; "
            "−1 means that an example has no label."
        )
    _warn_of_constant(describe(task), max(found), labels.shape[1])


@lru_cache(maxsize=256)
def _warn_of_constant(task: str, label: int, count: int) -> None:
    print(
        f"petridish: the task {task} has the label {label} for each of {count} examples: a model "
        "that ignores its inputs solves it.",
        file=sys.stderr,
    )


@lru_cache(maxsize=256)
def warn_of_one_sample(task: Task, most: int) -> None:
    """Warn once of a task that draws the same training sample for every seed.

    That is right of one real data set, and wrong of a task that was to be drawn anew. Of fewer than
    16 examples nothing is said: they may agree by chance.
    """
    drawn = _draw(task, FEW_LABELS, most)
    alike = all(np.array_equal(*each) for each in (drawn.x, drawn.labels))
    if alike and drawn.x.shape[1] >= FEW_EXAMPLES:
        print(
            f"petridish: the task {describe(task)} draws the same training sample for every seed: "
            "seeds differ in their start and batches alone, and intervals say nothing of other "
            "samples. That is right of one fixed data set; else draw from Streams(seeds, purpose).",
            file=sys.stderr,
        )


def unusual_labels(task: Task, most: int) -> str:
    """Return in words which labels are missing, and which classes never occur; often nothing."""
    k = task.domain.n_classes
    return _in_words(_labels(task, MANY_LABELS, most), k) if k else ""


def _labels(task: Task, count: int, most: int) -> NDArray[Any]:
    return _draw(task, count, most).labels


def _draw(task: Task, count: int, most: int) -> Examples:
    """Draw `count` examples of two runs, or `most` if the task has no more."""
    if count > most:
        try:
            return draw_examples(task, SEEDS, "train", 0, count)
        except Exception:  # however a task says that it has fewer
            count = most
    return draw_examples(task, SEEDS, "train", 0, count)


def _in_words(labels: NDArray[Any], k: int) -> str:
    said = []
    if (none := float((labels == -1).mean())) > 0:
        said.append(f"{none:.0%} of the labels are −1 (no label)".replace("%", " %"))
    absent = [str(each) for each in np.setdiff1d(np.arange(k), labels)]
    if absent:
        shown = ", ".join(absent[:3]) + (" …" if len(absent) > 3 else "")
        never = "class {} never occurs" if len(absent) == 1 else "classes {} never occur"
        said.append(f"{never.format(shown)} in {labels.shape[1]} examples")
    return "; ".join(said)
