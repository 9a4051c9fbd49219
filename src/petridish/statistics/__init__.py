"""Estimates, intervals, tests and fits: arrays in, numbers out."""
