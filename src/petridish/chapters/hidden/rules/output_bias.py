"""The two forms of HP's networks, with an output bias and without, as arms of a sweep.

The paper writes its networks u·σ(Wx + b), without a bias of the output. Two or three ReLUs of that
form are no parity of two or three bits, whatever their weights, and one has a single sign: the
widths 1, 2 and 3 of Figs 5.4 and B.10 can only come out with a bias. So every sweep of two-layer
networks has both forms, as arms; a claim is judged in the first, the other is said beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING

from petridish.figures.style import NothingToDraw
from petridish.models import MLP, Model
from petridish.rules.claims import Finding, Reads, columns_of
from petridish.sweeps import Arms, Sweep, arm
from petridish.sweeps.arms import arm_names

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from petridish.chapters.hidden.rules.table_rule import TableRule
    from petridish.experiment import Draw

BIASED, PLAIN = "output bias", "no output bias"


def with_output_bias(sweep: Sweep) -> Sweep:
    """Return a sweep with an output bias for all networks that have an output layer."""
    base = replace(sweep.base, model=_biased(sweep.base.model))
    return replace(sweep, base=base, also=tuple(map(with_output_bias, sweep.also)))


def _biased(model: Model) -> Model:
    if isinstance(model, MLP) and model.output == "linear":
        return replace(model, output="affine")
    return model


def both_forms(
    sweep: Sweep, plain: Sweep | None = None, *, more: Mapping[str, Sweep] | None = None
) -> Arms:
    """Return both forms of a sweep of networks without an output bias, and further arms.

    `plain` is what is run without a bias, if not the whole sweep.
    """
    return Arms({BIASED: with_output_bias(sweep), PLAIN: plain or sweep, **(more or {})})


@dataclass(frozen=True)
class InArm(Reads):
    """Judge the runs of one arm by a rule; what it finds in the arms `beside` is in the remark.

    Runs without arms, such as those of a record of before there were two forms, are judged as one.
    """

    rule: TableRule
    arm: str = BIASED
    beside: tuple[str, ...] = (PLAIN,)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rule reads."""
        return columns_of(self.rule)

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of the arm."""
        if "arms" not in table.columns:
            return self.rule.judge(table, level)
        finding = self.rule.judge(arm(table, self.arm), level)
        said = [finding.remark] if finding.remark else []
        for name in self.beside:
            if name in arm_names(table):
                other = self.rule.judge(arm(table, name), level)
                numbers = f"{other.judgement.value}, {other.numbers()}, n = {other.n}"
                said.append(f"{name}: {numbers if other.n else other.remark}")
        return replace(finding, remark="; ".join(said))


def drawn_by_arm(draw: Draw, name: str, *arms: str) -> dict[str, Draw]:
    """Return one figure for each arm, by default for both forms; the first has the bare name."""
    names = arms or (BIASED, PLAIN)
    titles = [name, *(f"{name}-{each.replace(' ', '-')}" for each in names[1:])]
    return {title: _of_arm(draw, each) for title, each in zip(titles, names, strict=True)}


def _of_arm(draw: Draw, name: str) -> Draw:
    @wraps(draw)  # what it reads, and where it is
    def drawn(table: pl.DataFrame, title: str) -> Figure:
        if name not in arm_names(table):
            raise NothingToDraw(f"No run of the arm {name!r} is there. Run the sweep first.")
        return draw(arm(table, name), f"{title}; {name}")

    return drawn
