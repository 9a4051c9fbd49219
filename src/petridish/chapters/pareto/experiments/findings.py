"""PF, what §4.1 and App. C.1 say in words of runs that lie outside the grids of PF-1 to PF-4."""

from __future__ import annotations

from dataclasses import replace

from petridish.chapters.pareto.experiments.frontiers import grid
from petridish.chapters.pareto.rules.starts import SucceedsWhereFails
from petridish.experiment import Experiment
from petridish.figures.heat_map import success_heat_map
from petridish.rules import Each, Rule, Share, Solved
from petridish.rules.claims import Claim
from petridish.sweeps import Arms, AtHalf, Sweep
from petridish.tasks import SparseParity

CELL = ("task", "init", "model.width", "data.m")
LARGE = ("n = 100", "n = 200")


def to_one_per_cent(sweep: Sweep) -> Sweep:
    """Return the sweep with a target error of 1 % in the place of 10 %."""
    training = replace(sweep.base.training, target_error=0.01)
    return replace(sweep, base=replace(sweep.base, training=training))


def findings(perfect: Sweep, larger_k: Sweep, slices: tuple[Sweep, Sweep]) -> Arms:
    """Put the arms together; of the slices, cells that are clear early get fewer seeds."""
    adaptive = (replace(part, allocate=AtHalf()) for part in slices)
    return Arms(
        {
            "perfect": to_one_per_cent(perfect),
            "larger k": larger_k,
            **dict(zip(LARGE, adaptive, strict=True)),
        }
    )


def slices(*widths: int) -> tuple[Sweep, Sweep]:
    """Return slices of the (100, 3) and the (200, 3) panels of Fig. 4."""
    hundred = grid(SparseParity(100, 3), widths=widths, samples=(1e3, 2e3, 3e3, 6e3), seeds=50)
    more = (2e3, 3e3, 6e3, 1e4, 3e4)
    return hundred, grid(SparseParity(200, 3), widths=widths, samples=more, seeds=50)


FINDINGS = Experiment(
    id="PF-8",
    title="Findings in words: perfect generalisation, larger k, dense starts that fail at large n",
    source="PF §4.1, App. C.1, Fig. 4",
    scales={
        "smoke": findings(
            grid(
                SparseParity(10, 2), widths=(32,), samples=(60,), seeds=4, steps=1_000, n_test=1_000
            ),
            grid(
                SparseParity(8, 3), widths=(32,), samples=(100,), seeds=4, steps=1_000, n_test=1_000
            ),
            (
                grid(SparseParity(12, 2), widths=(32,), samples=(60,), seeds=8, steps=500),
                grid(SparseParity(16, 2), widths=(32,), samples=(60,), seeds=8, steps=500),
            ),
        ),
        "laptop": findings(
            grid(SparseParity(50, 3), widths=(300,), samples=(1e3, 2e3, 6e3), seeds=12),
            grid(SparseParity(20, 5), widths=(300,), samples=(3e3, 1e4), seeds=12),
            slices(300),
        ),
        "wide": findings(
            grid(SparseParity(50, 3), widths=(1_000,), samples=(600, 1e3, 2e3, 6e3), seeds=50),
            grid(
                *(SparseParity(n, k) for n, k in ((20, 5), (30, 5), (20, 6))),
                widths=(1_000,),
                samples=(3e3, 1e4, 3e4, 1e5),
                seeds=50,
            ),
            slices(300, 1_000, 3_000),
        ),
    },
    claims=(
        Claim(
            "perfect",
            "With a sample far below n^k (at most a twentieth of it) some networks generalise to "
            "1 % error in most of their runs.",
            "PF §4.1 (1)",
            Rule(
                Solved(), Each(CELL, only={"arm": "perfect"}), Share(), above=0.5, holds_in="some"
            ),
            "Convergence and perfect generalisation are observed when m ≪ n^k.",
            kind="paper",
        ),
        Claim(
            "larger-k",
            "Some networks learn parities of more than four bits from a finite sample, in most of "
            "their runs.",
            "PF App. C.1",
            Rule(
                Solved(), Each(CELL, only={"arm": "larger k"}), Share(), above=0.5, holds_in="some"
            ),
            "Convergence for larger k is observed in the offline setting, for small n.",
            kind="paper",
        ),
        Claim(
            "rescue",
            "Where at n = 100 or 200 the dense start fails in most runs at every sample size, the "
            "sparse start succeeds at some in most.",
            "PF Fig. 4 (3)",
            SucceedsWhereFails(LARGE),
            "For sufficiently large n, where the default initialisation no longer works, the "
            "sparse scheme enlarges the feasible regime.",
            kind="paper",
        ),
    ),
    figures={"success": success_heat_map},
)
