"""Results on disk, append-only."""

from petridish.store.columns import Columns, to_table
from petridish.store.files import SCHEMA, Reading, Store, StoreError
from petridish.store.maintenance import check, compact, export

__all__ = [
    "SCHEMA",
    "Columns",
    "Reading",
    "Store",
    "StoreError",
    "check",
    "compact",
    "export",
    "to_table",
]
