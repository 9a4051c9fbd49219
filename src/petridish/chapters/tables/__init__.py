"""PF on real tables, beside forests and boosting (PF-6, PF-6B, PF-6C)."""
