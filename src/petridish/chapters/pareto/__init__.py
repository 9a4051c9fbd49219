"""PF: Pareto frontiers in deep feature learning (PF-1 … PF-5, PF-7)."""
