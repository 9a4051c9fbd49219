"""`petridish.load`: a trained model with its data, as a plain module."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish import DEFAULT_STORE
from petridish.choices import describe
from petridish.errors import UserError
from petridish.models import FitsItself
from petridish.store import Store
from petridish.training import (
    Outcome,
    Reading,
    RunSpec,
    Silent,
    choose_engine,
    forget_code,
    read_cell,
    run_key,
)
from petridish.training.chains import ended_weights, finding, with_weights
from petridish.training.data import initial_weights
from petridish.training.readings import Shared

if TYPE_CHECKING:
    import polars as pl

Found = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Trained(Reading):
    """A run at its end, as an instrument sees it.

    Attributes
    ----------
    module : torch.nn.Module
        The model with its last weights, in evaluation mode; hooks may be registered on its parts.
    start, now, buffers : mapping of str to array
        The parameters by name, at the start and at the end, and what else the module keeps.
    again : bool
        Whether the run was trained again, because the store does not keep its weights.

    `sample`, `inputs`, `labels`, `outputs` and `capture` give its data and what it makes of them.
    """

    again: bool = False

    @property
    def weights(self) -> Mapping[str, NDArray[Any]]:
        """The parameters at the end by name, and what else the module keeps."""
        return {**self.now, **self.buffers}

    def __repr__(self) -> str:
        trained = ", trained again" if self.again else ""
        spec = self.spec
        return (
            f"Trained({describe(spec.model)} on {describe(spec.task)}, seed {spec.seed}, "
            f"{self.step} steps{trained})\n{self.module}"
        )


def load(key: str | RunSpec, *, store: str | Path | Store = DEFAULT_STORE) -> Trained:
    """Load the trained model of a run, with its data.

    Where the store does not keep the weights of the run (``evaluation.weights=True`` does), it is
    trained again from its spec, which gives the same run; standard error says so.

    Parameters
    ----------
    key : str or RunSpec
        The key of a stored run, or the first digits of it; or the spec itself.
    store : str, Path or Store
        The folder that keeps the runs.
    """
    forget_code()  # a constant may have another value since
    kept = store if isinstance(store, Store) else Store(Path(store).expanduser())
    row = _row(kept, run_key(key) if isinstance(key, RunSpec) else key)
    spec = replace(read_cell(row["cell"][0]), seed=row["seed"][0], restart=row["restart"][0])
    if isinstance(spec.model, FitsItself):
        raise UserError(
            f"The model {describe(spec.model)} fits itself, and has no weights that could be "
            "loaded. Load the run of a model that is trained by steps."
        )
    if row["outcome"][0] == Outcome.DIVERGED.name:
        raise UserError(
            f"The run {row['key'][0][:8]} diverged: it has no last weights. Load another run."
        )
    again: list[str] = []

    def find(parent: RunSpec) -> Found:
        found = _stored(kept, parent)
        if found is None:
            again.append(run_key(parent))
            print(
                f"petridish: the store does not keep the weights of the run {again[-1][:8]}; it is "
                "trained again from its spec, which gives the same run. Keep them by "
                "evaluation.weights=True.",
                file=sys.stderr,
            )
            asked = with_weights(parent)
            with finding(find):
                (record,) = choose_engine(asked).run([asked], Silent())
            found = ended_weights(record)
        return found

    names = [parameter.name for parameter in spec.parameters]
    weights = find(spec)
    with finding(find):
        start = {n: drawn[0] for n, drawn in zip(names, initial_weights([spec]), strict=True)}
    return Trained(
        spec,
        row["steps"][0],
        start,
        {name: weights[name] for name in names},
        {name: values for name, values in weights.items() if name not in names},
        Shared(spec),
        again=run_key(spec) in again,
    )


def _row(store: Store, key: str) -> pl.DataFrame:
    """Return the row of one run; a key may be cut where it stays the only one."""
    import polars as pl

    table = store.read().table
    rows = table.filter(pl.col("key").str.starts_with(key))
    if len(rows) != 1 or not key:
        found = "No run" if rows.is_empty() else f"{len(rows)} of the {len(table)} runs"
        has = "has" if rows.is_empty() else "have"
        more = "a key" if rows.is_empty() else "more digits of a key"
        raise UserError(
            f"{found} of the store {store.folder} {has} a key that begins with {key!r}. "
            f"Give {more} from the column `key` of a table of runs."
        )
    return rows


def _stored(store: Store, spec: RunSpec) -> Found | None:
    """Return the weights of a run if the store has them, as a parent of others or in its row."""
    import polars as pl

    key = run_key(spec)
    parents = store.weights.keys()
    if key in parents:
        return store.weights.read(spec)
    if not spec.evaluation.weights:
        return None
    rows = store.read(columns=("weights",)).table.filter(pl.col("key") == key)
    if rows.is_empty() or rows["weights"][0] is None or rows["weights.of"][0] is None:
        return None
    named = zip(rows["weights.of"][0].to_list(), rows["weights"][0].to_list(), strict=True)
    return {
        part["name"]: np.array(values, np.float32).reshape(part["shape"]) for part, values in named
    }
