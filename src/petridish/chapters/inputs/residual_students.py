"""FL-13: residual networks as teachers and students of mixtures [FL App. E.5.2, Figs. 22, 24]."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from petridish.chapters.inputs.image_clusters import CIFAR
from petridish.chapters.inputs.rules import each
from petridish.chapters.inputs.student_figures import errors_by_part
from petridish.chapters.inputs.students import (
    ALONE,
    AS_DIRECT,
    BESIDE_CONSTANT,
    DIGITS,
    HALF,
    MIXTURES,
    SLOW,
    SOURCE,
    UNASKED,
    UNBALANCED,
    WORSE,
    balanced_teacher,
    student_of,
    watched_by_part,
)
from petridish.experiment import Experiment
from petridish.models import ResNet
from petridish.rules import Claim, LastOf
from petridish.sweeps import Arms, Sweep
from petridish.tasks import Images, Injected, Task
from petridish.training import RunSpec


def residual_mixtures(
    *,
    images: Images,
    teacher: int,
    student: int,
    m: int,
    n_test: int,
    steps: int,
    seeds: int,
) -> Arms:
    """Declare students ResNet(m) of a smaller ResNet, on mixtures and on images alone.

    Every run has a teacher of its own seed, trained with the regulariser on as many normal inputs
    as images; a mixture of the share α has m images.
    """
    sizes: dict[str, Any] = {"n_test": n_test, "steps": steps}
    watched = watched_by_part(steps)

    def taught(task: Task, strength: float = 1.0, **more: Any) -> RunSpec:
        mixed = Injected(images, 0.5)
        by = balanced_teacher(mixed, ResNet(teacher), strength, m=2 * m, **sizes)
        return student_of(by, task, ResNet(student), **sizes, **more)

    arms = {
        name: taught(Injected(images, share), m=round(m / (1 - share)), **watched)
        for share, name in MIXTURES.items()
    }
    arms[UNASKED] = taught(Injected(images, 0.5), 0.0, m=2 * m, **watched)
    alone = {key: watched[key] for key in ("every", "curves")}
    arms[ALONE] = taught(images, m=m, **alone)
    return Arms({name: Sweep(run, {"seed": range(seeds)}) for name, run in arms.items()})


RESIDUAL_STUDENTS = Experiment(
    id="FL-13",
    title="Residual networks as teachers and students of mixtures",
    source=SOURCE,
    scales={
        "smoke": residual_mixtures(
            images=DIGITS, teacher=1, student=2, m=40, n_test=60, steps=20, seeds=2
        ),
        "laptop": residual_mixtures(
            images=DIGITS, teacher=2, student=8, m=600, n_test=360, steps=200, seeds=12
        ),
        "cifar": residual_mixtures(
            images=CIFAR, teacher=5, student=9, m=5_000, n_test=2_000, steps=600, seeds=12
        ),
    },
    claims=(
        replace(
            SLOW,
            paper="Learns slower on the Gaussian part (CIFAR10, SVHN), with the same trend for all "
            "α.",
        ),
        WORSE,
        replace(
            AS_DIRECT,
            paper="With accuracy similar to that on the original data; the margin is ours.",
        ),
        BESIDE_CONSTANT,
        Claim(
            "certain",
            "With the regulariser the teacher's most frequent label has at most half of the "
            "injected part.",
            "FL E.5.1, (291)–(293)",
            each(LastOf("largest_class_injected"), HALF, below=0.5),
            "It asks for balanced classes; a residual network normalises its batches, in which "
            "images and normal inputs are mixed.",
            kind="ours",
        ),
        UNBALANCED,
    ),
    figures={"parts": errors_by_part},
)
