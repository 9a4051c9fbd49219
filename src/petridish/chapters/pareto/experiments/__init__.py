"""PF's experiments, declared."""
