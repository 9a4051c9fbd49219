"""The native engine's library: whole training runs in C++ behind a plain C interface (`native/`).

Loaded by ctypes, which releases Python's lock during a call: runs may use several threads.
"""
