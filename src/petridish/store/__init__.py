"""Results on disk, append-only."""

from petridish.store.files import Reading, Store, StoreError
from petridish.store.maintenance import check, compact, export
from petridish.store.table import to_table

__all__ = ["Reading", "Store", "StoreError", "check", "compact", "export", "to_table"]
