"""Results on disk, append-only."""

from petridish.store.files import SCHEMA, Store, StoreContents, StoreError
from petridish.store.maintenance import check, compact, export, tidy
from petridish.store.schema import Columns, to_table

__all__ = [
    "SCHEMA",
    "Columns",
    "Store",
    "StoreContents",
    "StoreError",
    "check",
    "compact",
    "export",
    "tidy",
    "to_table",
]
