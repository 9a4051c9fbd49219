"""Theory of PF: what resources must at least be, what suffices, and classical solvers."""
