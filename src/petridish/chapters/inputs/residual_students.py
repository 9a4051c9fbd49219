"""FL-13: residual networks as teachers and students of mixtures [FL App. E.5.2, Figs. 22, 24]."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from petridish.chapters.inputs.image_clusters import CIFAR
from petridish.chapters.inputs.planes import each
from petridish.chapters.inputs.student_figures import errors_by_part
from petridish.chapters.inputs.student_rules import AboveConstant, OriginalError, PartGap
from petridish.chapters.inputs.students import DIGITS, MIXTURES, SLOWER, learner, watched_by_part
from petridish.experiment import Experiment
from petridish.models import ResNet
from petridish.rules import Claim, LastOf, Median, PairedBySeed, Rule
from petridish.sweeps import Arms, Sweep
from petridish.tasks import Images, Injected, Task
from petridish.training import BalancedOnUnlabelled, CrossEntropy, RunSpec, Taught

ALONE, UNASKED = "images alone", "teacher without regulariser"


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
        by = learner(
            Injected(images, 0.5),
            ResNet(teacher),
            m=2 * m,
            loss=BalancedOnUnlabelled(strength, 1.0),
            **sizes,
        )
        run = learner(
            Taught(task, by, seed=None), ResNet(student), loss=CrossEntropy(), **sizes, **more
        )
        return replace(run, restart=1)  # a start of its own

    arms = {
        name: taught(Injected(images, share), m=round(m / (1 - share)), **watched)
        for share, name in MIXTURES.items()
    }
    arms[UNASKED] = taught(Injected(images, 0.5), 0.0, m=2 * m, **watched)
    alone = {key: watched[key] for key in ("every", "curves")}
    arms[ALONE] = taught(images, m=m, **alone)
    return Arms({name: Sweep(run, {"seed": range(seeds)}) for name, run in arms.items()})


SOURCE = "FL E.5.2, Figs. 22, 24"
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
        Claim(
            "slow",
            "Students need longer for an error of 25 % on the injected part than on the original, "
            "for every α.",
            SOURCE,
            each(SLOWER, *MIXTURES.values(), above=1.0),
            "Learns slower on the Gaussian part (CIFAR10, SVHN), with the same trend for all α.",
            kind="paper",
        ),
        Claim(
            "worse",
            "They err more on the injected part in the end, for every α.",
            SOURCE,
            each(PartGap(), *MIXTURES.values(), above=0.0),
            "Worse accuracy on the Gaussian part.",
            kind="paper",
        ),
        Claim(
            "as",
            "On original inputs students of a mixture of halves err at most 3 points more than "
            "those trained on images alone.",
            SOURCE,
            Rule(OriginalError(), PairedBySeed(MIXTURES[0.5], ALONE), Median(), below=0.03),
            "With accuracy similar to that on the original data; the margin is ours.",
            kind="paper",
        ),
        Claim(
            "constant",
            "Students of a mixture of halves err at least 10 points less on the injected part than "
            "a constant answer.",
            "FL E.5.2",
            each(AboveConstant(), MIXTURES[0.5], below=-0.1),
            kind="ours",
        ),
        Claim(
            "certain",
            "With the regulariser the teacher's most frequent label has at most half of the "
            "injected part.",
            "FL E.5.1, (291)–(293)",
            each(LastOf("largest_class_injected"), MIXTURES[0.5], below=0.5),
            "It asks for balanced classes; a residual network normalises its batches, in which "
            "images and normal inputs are mixed.",
            kind="ours",
        ),
        Claim(
            "R",
            "Without the regulariser it has a larger share.",
            "FL E.5.1, (291)–(293)",
            Rule(
                LastOf("largest_class_injected"),
                PairedBySeed(UNASKED, MIXTURES[0.5]),
                Median(),
                above=0.0,
            ),
            "The teacher might have unbalanced probabilities on U if its training does not take U "
            "into account.",
            kind="paper",
        ),
    ),
    figures={"parts": errors_by_part},
)
