"""FL-11: students of mixtures with other images in the place of noise [FL App. E.5.2, Fig. 23]."""

from __future__ import annotations

from typing import Any

from petridish.chapters.inputs.rules import against, each
from petridish.chapters.inputs.student_figures import errors_by_part
from petridish.chapters.inputs.student_rules import INJECTED, AboveConstant, PartGap
from petridish.chapters.inputs.students import (
    LARGER,
    SLOWER,
    TEACHER,
    balanced_teacher,
    fc,
    student_of,
    watched_by_part,
)
from petridish.experiment import Experiment
from petridish.rules import AtEnd, Claim
from petridish.sweeps import Arms, Sweep
from petridish.tasks import Images, Injected
from petridish.training import RunSpec

LOW = Images("digits", (1, 8, 8), 721, 180, (0, 1, 2, 3, 4), "bb270a324df970b5")
HIGH = Images("digits", (1, 8, 8), 716, 180, (5, 6, 7, 8, 9), "e7c60ada36dff3d9")
"""scikit-learn's digits: 0 to 4 with their labels, 5 to 9 as other images."""


def mixtures(*, m: int, n_test: int, steps: int, seeds: int) -> Arms:
    """Declare students of halves, of images or normal inputs, with a teacher for each kind.

    The text's regulariser asks the teacher for balanced and certain labels on what is injected.
    """
    sizes: dict[str, Any] = {"n_test": n_test, "steps": steps}
    watched = watched_by_part(steps)

    def student(task: Injected, width: int) -> RunSpec:
        teacher = balanced_teacher(task, fc(TEACHER), m=2 * m, **sizes)
        return student_of(teacher, task, fc(width), m=2 * m, **sizes, **watched)

    kinds = {IMAGES: Injected(LOW, 0.5, HIGH), NORMALS: Injected(LOW, 0.5)}
    return Arms(
        {
            name + more: Sweep(student(task, width), {"seed": range(seeds)})
            for name, task in kinds.items()
            for more, width in (("", LARGER), (", small student", TEACHER))
        }
    )


IMAGES, NORMALS = "images injected", "normals injected"
SOURCE = "FL E.5.2, Fig. 23"
OTHER_IMAGES = Experiment(
    id="FL-11",
    title="Students of mixtures with other images in the place of noise",
    source=SOURCE,
    scales={
        "smoke": mixtures(m=100, n_test=60, steps=60, seeds=2),
        "laptop": mixtures(m=600, n_test=360, steps=400, seeds=12),
    },
    claims=(
        Claim(
            "better",
            "Students err less on the injected part where it is other images than where it is "
            "normal inputs.",
            SOURCE,
            against(IMAGES, NORMALS, AtEnd(INJECTED), below=0.0),
            "The performance on the Tiny ImageNet part is higher than that on the Gaussian part.",
            kind="paper",
        ),
        Claim(
            "worse",
            "Where other images are injected they err more on these than on the original part.",
            SOURCE,
            each(PartGap(), IMAGES, f"{IMAGES}, small student", above=0.0),
            "A similar trend; Tiny ImageNet is not as helpful as the original data.",
            kind="paper",
        ),
        Claim(
            "slow",
            "There they need longer for an error of 25 % on the injected part than on the "
            "original.",
            SOURCE,
            each(SLOWER, IMAGES, above=1.0),
            "A similar trend.",
            kind="paper",
        ),
        Claim(
            "constant",
            "They err at least 10 points less on the injected images than a constant answer.",
            SOURCE,
            each(AboveConstant(), IMAGES, below=-0.1),
            kind="ours",
        ),
    ),
    figures={"parts": errors_by_part},
)
