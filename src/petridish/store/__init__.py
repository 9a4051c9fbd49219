"""Results on disk, append-only."""

from petridish.store.columns import to_table
from petridish.store.files import SCHEMA, Reading, Store, StoreError
from petridish.store.maintenance import check, compact, export

__all__ = ["SCHEMA", "Reading", "Store", "StoreError", "check", "compact", "export", "to_table"]
