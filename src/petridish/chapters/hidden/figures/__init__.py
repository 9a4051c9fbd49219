"""Figures of HP that no general figure can draw."""
