"""Neurons as points of the plane, by multidimensional scaling of their cosines [FL E.1 to E.4]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.figures.panels import corner, framed
from petridish.figures.style import BLUE, INK, ORANGE, NothingToDraw
from petridish.rules.columns import reads
from petridish.sweeps.arms import arm, arm_names
from petridish.tasks import HasCentres, HasDirections, HiddenLabels
from petridish.training import FirstLayerWeights, read_cell

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
WEIGHTS = "array.first_layer_weights"
NEAR = 0.9  # the cosine from which a neuron is drawn in the colour of a star
RED = "#B2182B"


def in_the_plane(rows: Floats) -> Floats:
    """Return points whose distances are about those of unit vectors, 1 − cosine: metric scaling.

    It begins from classical scaling, so that the same vectors give the same picture.

    Returns
    -------
    array, shape (row, 2)
    """
    from sklearn.manifold import smacof

    cosines = np.clip(rows @ rows.T, -1, 1)
    away = 1 - cosines
    np.fill_diagonal(away, 0)
    centred = away**2 - (away**2).mean(axis=0)
    centred = -0.5 * (centred - centred.mean(axis=1, keepdims=True))
    values, vectors = np.linalg.eigh((centred + centred.T) / 2)
    begun = vectors[:, -2:] * np.sqrt(np.clip(values[-2:], 0, None))
    if not begun.any():
        return np.zeros((len(rows), 2))
    # On one line a second coordinate would stay 0 for ever.
    begun = begun + 1e-3 * np.random.default_rng(0).standard_normal(begun.shape)
    points, _ = smacof(away, init=begun, n_init=1, max_iter=200, eps=1e-6)
    return np.asarray(points, np.float64)


def truth_of(run: dict[str, Any]) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the directions of a run's stars, and which of them stand for y = +1.

    Centres of clusters; else ±Σ M_j. Of hidden representations and images there are none.
    """
    task = read_cell(run["cell"]).task
    seeds = [run["seed"]]
    if isinstance(task, HiddenLabels) or not isinstance(task, HasCentres | HasDirections):
        return np.zeros((0, task.domain.n_inputs)), np.zeros(0, np.bool_)
    if isinstance(task, HasCentres):
        found = task.centres(seeds)[0].astype(np.float64)
        plus = (
            np.array([row.prod() > 0 for row in task.corners]) if hasattr(task, "corners") else ()
        )
        return found / np.linalg.norm(found, axis=1, keepdims=True), np.array(plus, np.bool_)
    assert isinstance(task, HasDirections), "a task of this chapter"
    summed = task.directions(seeds)[0].sum(axis=0).astype(np.float64)
    summed /= np.linalg.norm(summed)
    return np.stack([summed, -summed]), np.array([True, False])


@reads("curve.step", WEIGHTS)
def weights_in_the_plane(table: pl.DataFrame, title: str, *, arms: tuple[str, ...]) -> Any:
    """Draw one run of each arm at the steps at which its weights were kept.

    Stars are the truth, red for y = +1 and orange for y = −1. A neuron has the colour of a star
    whose direction is within a cosine of 0.9 at the end; where there are no stars, that of its
    cluster at the end, in which neurons without weights have no part.
    """
    known = [name for name in arms if name in arm_names(table)]
    if not known or WEIGHTS not in table.columns:
        raise NothingToDraw("None of these runs kept its weights. Run the experiment as declared.")
    runs = [arm(table, name).sort("seed").row(0, named=True) for name in known]
    kept = [np.reshape(run[WEIGHTS]["values"], run[WEIGHTS]["shape"]) for run in runs]
    across = max(len(readings) for readings in kept)
    told = [len(truth_of(run)[0]) > 0 for run in runs]
    of_stars = (
        f"Stars: the truth, red for y = +1. A neuron with a cosine of at least {NEAR} with a star "
        "at the end has its colour throughout. The number is the largest cosine with a red star. "
    )
    of_clusters = (
        "Red and orange are two clusters by k-means at the end; blue neurons have no weights then. "
    )
    note = (
        "One run per row. Multidimensional scaling of the distances 1 − cosine between neurons. "
        + of_stars * any(told)
        + ("Without stars: " if any(told) else "") * (not all(told))
        + of_clusters * (not all(told))
        + "A neuron is left out where its weights are 0."
    )
    size = (1.0 + 2.9 * across, 1.3 + 2.9 * len(runs))
    with framed(title, note, size, len(runs), across) as (figure, axes):
        for row, name, run, readings in zip(axes, known, runs, kept, strict=True):
            _row(row, name, run, readings)
    return figure


def _row(row: Any, name: str, run: dict[str, Any], readings: Floats) -> None:
    stars, plus = truth_of(run)
    final = _unit(readings[-1])
    colours = end_colours(final, stars, plus)
    for panel, weights, step in zip(row, readings, _steps(run, len(readings)), strict=False):
        rows = _unit(weights)
        there = np.linalg.norm(rows, axis=1) > 0
        points = in_the_plane(np.concatenate([rows[there], stars]))
        neurons, of_stars = points[: there.sum()], points[there.sum() :]
        for colour in (BLUE, ORANGE, RED):
            chosen = colours[there] == colour
            panel.scatter(*neurons[chosen].T, s=16, color=colour, alpha=0.6, lw=0)
        for sign, colour in ((False, ORANGE), (True, RED)):
            panel.scatter(
                *of_stars[plus == sign].T, s=150, marker="*", fc="none", ec=colour, lw=1.2, zorder=5
            )
        reach = 1.15 * max(float(np.abs(points).max(initial=0)), 1e-9)
        panel.set(xticks=[], yticks=[], aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach))
        spent = f"step {step:,}" if step else "start"
        panel.set_title(f"{name.partition(', drawn')[0]}: {spent}", loc="left", fontsize=8.5)
        if len(stars):
            near = float((rows[there] @ stars[plus].T).max())
            corner(panel, f"cos {near:.3f}", top=False, right=True, color=INK)
    for panel in row[len(readings) :]:
        panel.set_visible(False)


def _steps(run: dict[str, Any], readings: int) -> list[int]:
    gauges = read_cell(run["cell"]).evaluation.gauges
    kept = next(each for each in gauges if isinstance(each, FirstLayerWeights))
    steps = run["curve.step"] if kept.at is None else sorted(kept.at)
    return list(steps[:readings])


def _unit(weights: Floats) -> Floats:
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    return np.asarray(weights / np.where(lengths > 0, lengths, 1.0), np.float64)


def end_colours(rows: Floats, stars: Floats, plus: NDArray[np.bool_]) -> NDArray[np.str_]:
    """Return the colour of every neuron, from its weights at the end."""
    if not len(stars):
        from petridish.training.weight_probes import clusters_of

        there = np.linalg.norm(rows, axis=1) > 0
        colours = np.full(len(rows), BLUE)
        colours[there] = np.array((RED, ORANGE))[clusters_of(rows[there], 2)]
        return colours
    cosines = rows @ stars.T
    nearest = cosines.argmax(axis=1)
    near = cosines.max(axis=1) >= NEAR
    return np.where(near, np.where(plus[nearest], RED, ORANGE), BLUE)
