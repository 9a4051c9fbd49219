"""Figures of PF that no general figure can draw."""
