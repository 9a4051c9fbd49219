"""The benchmark of 16 tables on which the papers compare networks and forests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BenchmarkTable:
    """A task of the benchmark of Grinsztajn et al. 2022, OpenML suite 337 [PF Table 1].

    `features` leaves the target out; the paper's table counts it. `task` is OpenML's id.
    """

    name: str
    task: int
    rows: int
    features: int


BENCHMARK: tuple[BenchmarkTable, ...] = (
    BenchmarkTable("credit", 361055, 16_714, 10),
    BenchmarkTable("electricity", 361060, 38_474, 7),
    BenchmarkTable("covertype", 361061, 566_602, 10),
    BenchmarkTable("pol", 361062, 10_082, 26),
    BenchmarkTable("house_16H", 361063, 13_488, 16),
    BenchmarkTable("MagicTelescope", 361065, 13_376, 10),
    BenchmarkTable("bank-marketing", 361066, 10_578, 7),
    BenchmarkTable("MiniBooNE", 361068, 72_998, 50),
    BenchmarkTable("Higgs", 361069, 940_160, 24),
    BenchmarkTable("eye_movements", 361070, 7_608, 20),
    BenchmarkTable("Diabetes130US", 361273, 71_090, 7),
    BenchmarkTable("jannis", 361274, 57_580, 54),
    BenchmarkTable("default-of-credit-card-clients", 361275, 13_272, 20),
    BenchmarkTable("Bioresponse", 361276, 3_434, 419),
    BenchmarkTable("california", 361277, 20_634, 8),
    BenchmarkTable("heloc", 361278, 10_000, 22),
)
"""The 16 tasks in the order of the paper."""
