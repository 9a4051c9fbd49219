"""Sweeps put together: into one, or as arms with names by which they are judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from petridish.errors import UserError, nearest, require
from petridish.sweeps.sweep import Sweep

if TYPE_CHECKING:
    import polars as pl


def joined(parts: Iterable[Sweep]) -> Sweep:
    """Join sweeps into one, in their order; `Arms` gives each a name."""
    first, *rest = parts
    return replace(first, also=(*first.also, *rest))


@dataclass(frozen=True, init=False)
class Arms(Sweep):
    """Named sweeps that are judged together: ``Arms({"two step": Sweep(…), …})``.

    Rules, tables and figures speak of an arm by its name; no key knows it, so that two arms may
    share runs, and a run keeps its key when its arm is renamed. Everything that takes a sweep takes
    arms: they are one sweep of all their runs.
    """

    arms: Mapping[str, Sweep] = field(default_factory=dict)

    def __init__(self, arms: Mapping[str, Sweep]) -> None:
        require(
            len(arms) > 0 and all(isinstance(name, str) and name for name in arms),
            f"Arms: the names {list(arms)} were given. Give at least one arm, each under a name.",
        )
        for name, sweep in arms.items():
            require(
                isinstance(sweep, Sweep) and not isinstance(sweep, Arms),
                f"Arms: {name!r} is {type(sweep).__name__}. Give a Sweep.",
            )
        first, *rest = arms.values()
        object.__setattr__(self, "arms", dict(arms))
        super().__init__(first.base, first.axes, (*first.also, *rest))

    def __getitem__(self, name: str) -> Sweep:
        """Return the sweep of an arm."""
        if name not in self.arms:
            raise UserError(f"There is no arm called {name!r}. {nearest(name, self.arms)}")
        return self.arms[name]

    def parts(self) -> Iterator[Sweep]:
        """Yield the arms."""
        yield from self.arms.values()

    def grids(self) -> Iterator[Sweep]:
        """Yield the whole, and all that belongs to an arm."""
        yield self
        for sweep in self.arms.values():
            yield from sweep.grids()

    def narrowed(self, settings: Sequence[str] | Mapping[str, Sequence[Any]]) -> Arms:
        """Return the arms with other values on some axes, each as `axis=v1,v2,…`."""
        return Arms({name: sweep.narrowed(settings) for name, sweep in self.arms.items()})

    def among(self, table: pl.DataFrame) -> pl.DataFrame:
        """Keep the rows that belong to an arm; the column `arms` lists the arms of each."""
        import polars as pl

        named = table.drop("arms", strict=False).with_row_index("row of a run")
        masks = [
            named["row of a run"].is_in(sweep.among(named)["row of a run"].implode())
            for sweep in self.arms.values()
        ]
        lists = pl.concat_list(
            pl.when(mask).then(pl.lit(name)) for name, mask in zip(self.arms, masks, strict=True)
        )
        belongs = pl.any_horizontal(*masks)
        found = named.with_columns(arms=lists.list.drop_nulls()).filter(belongs)
        return found.drop("row of a run")


def arm(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the runs of one arm, from a table that `Arms.among` has made."""
    import polars as pl

    known = arm_names(table)
    if name not in known:
        raise UserError(f"There is no arm called {name!r} among these runs. {nearest(name, known)}")
    return table.filter(pl.col("arms").list.contains(name))


def by_arm(table: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Return the runs of some arms with the column `arm`, one row per run and arm.

    None where the table has no arms, or no runs of these.
    """
    import polars as pl

    if "arms" not in table.columns:
        return table.clear().with_columns(pl.lit(None, pl.String).alias("arm"))
    each = table.explode("arms").rename({"arms": "arm"})
    return each.filter(pl.col("arm").is_in(names)) if names else each


def arm_names(table: pl.DataFrame) -> list[str]:
    """Return the names of the arms that have runs in a table; none where it has no arms."""
    if "arms" not in table.columns:
        return []
    names: list[str] = table["arms"].explode().drop_nulls().unique(maintain_order=True).to_list()
    return names
