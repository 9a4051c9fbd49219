"""HP's experiments, declared."""
