"""FL-6: students on mixtures of images and noise that a small teacher labels [FL App. E.5]."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from petridish.chapters.inputs.image_clusters import MNIST
from petridish.chapters.inputs.rules import against, each
from petridish.chapters.inputs.student_figures import errors_by_part, loss_by_width
from petridish.chapters.inputs.student_rules import (
    AboveConstant,
    MinimumMoves,
    OriginalError,
    PartGap,
)
from petridish.chapters.inputs.trainings import by_momentum
from petridish.experiment import Experiment
from petridish.models import MLP, Model, Power
from petridish.rules import AtEnd, Claim, LastOf, Median, Over, PairedBySeed, ReachedAt, Rule
from petridish.sweeps import Arms, Sweep
from petridish.tasks import Images, Injected, Task
from petridish.training import (
    BalancedOnUnlabelled,
    Below,
    CrossEntropy,
    Data,
    Error,
    LargestClass,
    Loss,
    MeanLoss,
    RunSpec,
    Taught,
)

DIGITS = Images("digits", (1, 8, 8), 1437, 360, tuple(range(10)), "ac0903af54157144")
"""scikit-learn's, with ten classes; written down, since finding them imports scikit-learn."""
SMALLER, TEACHER, BEYOND, LARGER = 3, 9, 24, 50
"""The text's teacher for MNIST is FC(9), a larger one FC(50); widths on either side of FC(9)."""
MIXTURES = {0.25: "a quarter injected", 0.5: "half injected", 0.75: "three quarters injected"}
GOOD = 0.25
"""An error on a part, by whose first time the parts are compared."""
NEARLY_ALL = 0.98
"""The share of normal inputs where the text has nothing else."""


def learner(
    task: Task, model: Model, *, m: int, n_test: int, steps: int, loss: Loss, **seen: Any
) -> RunSpec:
    """Return a teacher or a student; its gradients are clipped, as squares diverge now and then."""
    return by_momentum(
        task,
        model,
        loss,
        data=Data(m=m, n_test=n_test),
        momentum=0.9,
        rate=0.02,
        batch_size=50,
        steps=steps,
        clip=1.0,
        **seen,
    )


def fc(width: int) -> MLP:
    """Return the text's FC(m): one hidden layer with squares."""
    return MLP(width, activation=Power(2))


def watched_by_part(steps: int) -> dict[str, Any]:
    """Return what is read off a student of a mixture: its errors on both parts, over steps."""
    parts = tuple(Error(part=part) for part in ("original", "injected"))
    return {
        "every": max(1, steps // 20),
        "curves": True,
        "metrics": parts,
        "reached": tuple(Below(part, GOOD) for part in parts),
        "instruments": (LargestClass("injected"),),
    }


def balanced_teacher(task: Injected, model: Model, strength: float = 1.0, **sizes: Any) -> RunSpec:
    """Return a teacher that is asked for balanced and certain labels on the injected inputs."""
    return learner(task, model, loss=BalancedOnUnlabelled(strength, 1.0), **sizes)


def student_of(teacher: RunSpec, task: Task, model: Model, **how: Any) -> RunSpec:
    """Return a student of the teacher of its own seed.

    It has a start of its own: of equal width it would have the teacher's own first weights.
    """
    run = learner(Taught(task, teacher, seed=None), model, loss=CrossEntropy(), **how)
    return replace(run, restart=1)


def students(
    *,
    m: int,
    n_test: int,
    steps: int,
    widths: tuple[int, ...],
    seeds: int,
    images: Images = DIGITS,
) -> Arms:
    """Declare teachers, students on mixtures of their labels, and U-curves of both.

    Every run has a teacher of its own seed. A mixture of the share α has m images and as many
    normal inputs as that asks for; the text's regulariser asks the teacher for balanced and certain
    labels on the normal inputs.
    """
    sizes: dict[str, Any] = {"n_test": n_test, "steps": steps}

    def mixed(share: float) -> Injected:
        return Injected(images, share)

    def teacher(width: int, strength: float = 1.0) -> RunSpec:
        return balanced_teacher(mixed(0.5), fc(width), strength, m=2 * m, **sizes)

    def taught(task: Task, width: int, by: RunSpec, **more: Any) -> RunSpec:
        return student_of(by, task, fc(width), **sizes, **more)

    watched = watched_by_part(steps)
    by = teacher(TEACHER)
    arms: dict[str, RunSpec] = {}
    for share, name in MIXTURES.items():
        arms[name] = taught(mixed(share), LARGER, by, m=round(m / (1 - share)), **watched)
    half: dict[str, Any] = {"m": 2 * m, **watched}
    arms["half injected, small student"] = taught(mixed(0.5), TEACHER, by, **half)
    arms[UNASKED] = taught(mixed(0.5), LARGER, teacher(TEACHER, 0.0), **half)
    direct = {key: watched[key] for key in ("every", "curves")}
    arms[ALONE] = taught(images, LARGER, by, m=m, **direct)
    curve: dict[str, Any] = {"metrics": (MeanLoss(CrossEntropy()),)}
    noise = mixed(NEARLY_ALL)
    curves = {
        "teacher's curve": learner(images, fc(TEACHER), m=m, loss=CrossEntropy(), **sizes, **curve),
        "students of the teacher": taught(noise, TEACHER, by, m=m, **curve),
        "students of a larger teacher": taught(noise, TEACHER, teacher(LARGER), m=m, **curve),
    }
    return Arms(
        {name: Sweep(run, {"seed": range(seeds)}) for name, run in arms.items()}
        | {
            name: Sweep(run, {"model.width": widths, "seed": range(seeds)})
            for name, run in curves.items()
        }
    )


def widths_apart(top: int, bottom: int) -> Rule:
    """Compare two widths of the teacher's U-curve, seed by seed."""
    only = {"arm": "teacher's curve"}
    layout = PairedBySeed(top, bottom, along="model.width", only=only)
    return Rule(AtEnd("test_cross_entropy"), layout, Median(), above=0.0)


SLOWER = Over(*(ReachedAt(f"test_error_{part} <= {GOOD:g}") for part in ("injected", "original")))
SOURCE = "FL E.5.2, Figs. 22, 24"
ALONE, UNASKED, HALF = "images alone", "teacher without regulariser", MIXTURES[0.5]
SLOW = Claim(
    "slow",
    "Students need longer for an error of 25 % on the injected part than on the original, for "
    "every α.",
    SOURCE,
    each(SLOWER, *MIXTURES.values(), above=1.0),
    kind="paper",
)
WORSE = Claim(
    "worse",
    "They err more on the injected part in the end, for every α.",
    SOURCE,
    each(PartGap(), *MIXTURES.values(), above=0.0),
    "Worse accuracy on the Gaussian part.",
    kind="paper",
)
AS_DIRECT = Claim(
    "as",
    "On original inputs students of a mixture of halves err at most 3 points more than those "
    "trained on images alone.",
    SOURCE,
    against(HALF, ALONE, OriginalError(), below=0.03),
    kind="paper",
)
BESIDE_CONSTANT = Claim(
    "constant",
    "Students of a mixture of halves err at least 10 points less on the injected part than a "
    "constant answer.",
    "FL E.5.2",
    each(AboveConstant(), HALF, below=-0.1),
    kind="ours",
)
UNBALANCED = Claim(
    "R",
    "Without the regulariser it has a larger share.",
    "FL E.5.1, (291)–(293)",
    against(UNASKED, HALF, LastOf("largest_class_injected"), above=0.0),
    "The teacher might have unbalanced probabilities on U if its training does not take U into "
    "account.",
    kind="paper",
)
"""What FL-6 and FL-13 claim alike."""
STUDENTS = Experiment(
    id="FL-6",
    title="Students on mixtures of images and noise that a teacher labels",
    source="FL E.5, Algorithm 1, Figs. 4, 22, 24, 25, 26",
    scales={
        "smoke": students(m=200, n_test=100, steps=100, widths=(SMALLER, TEACHER, BEYOND), seeds=3),
        "laptop": students(
            m=1_000,
            n_test=360,
            steps=400,
            widths=(1, 2, SMALLER, 5, 7, TEACHER, 12, 16, BEYOND, LARGER, 100),
            seeds=12,
        ),
        "mnist": students(
            m=6_000,
            n_test=2_000,
            steps=400,
            widths=(1, 2, SMALLER, TEACHER, BEYOND, LARGER, 100),
            seeds=12,
            images=MNIST,
        ),
    },
    claims=(
        Claim(
            "U",
            "The held-out loss of the teacher's architecture is higher with 24 neurons than with "
            "9: there is a U-curve, and FC(9) is on its right side or at its minimum.",
            "FL E.5.1, E.5.4, Fig. 26 a, Algorithm 1",
            widths_apart(BEYOND, TEACHER),
            "The size corresponding to the local minimum in the classical regime is FC(9), on "
            "MNIST.",
            kind="paper",
        ),
        Claim(
            "U1",
            "It is higher with 3 neurons than with 9.",
            "FL E.5.1, E.5.4, Fig. 26 a, Algorithm 1",
            widths_apart(SMALLER, TEACHER),
            "On the left-hand side a larger teacher lowers the error.",
            kind="paper",
        ),
        replace(
            SLOW,
            paper="The network learns slower on the Gaussian part, with the same trend for all α; "
            "for MNIST the text finds no significant trend.",
        ),
        WORSE,
        Claim(
            "small",
            "So do students of 9 neurons.",
            "FL E.5.2, E.5.3, Fig. 22 a",
            each(PartGap(), "half injected, small student", above=0.0),
            "MNIST + Gaussian shows no significant trend at FC(9), in another place a similar one.",
            kind="paper",
        ),
        replace(
            AS_DIRECT,
            paper="Accuracy on the original part similar to that of training on the original data; "
            "the margin is ours.",
        ),
        BESIDE_CONSTANT,
        replace(
            UNBALANCED,
            text="Without the regulariser the teacher's most frequent label has a larger share of "
            "the injected part.",
        ),
        Claim(
            "moves",
            "The width at which students' loss on normal inputs is lowest grows with the teacher: "
            "FC(50) against FC(9).",
            "FL E.5.4, Fig. 26 b–d",
            MinimumMoves("students of a larger teacher", "students of the teacher", most=100),
            "The local minimum of the U-shape becomes larger when the teacher gets larger.",
            kind="paper",
        ),
    ),
    figures={
        "parts": errors_by_part,
        "curves": partial(
            loss_by_width,
            arms=("teacher's curve", "students of the teacher", "students of a larger teacher"),
        ),
    },
)
