"""Results on disk, append-only."""

from petridish.store.columns import to_table
from petridish.store.files import Reading, Store, StoreError
from petridish.store.maintenance import check, compact, export

__all__ = ["Reading", "Store", "StoreError", "check", "compact", "export", "to_table"]
