"""Devices by name, and which runs of a sweep go where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from petridish.cli.main import run_command
from petridish.errors import UserError
from petridish.models import MLP
from petridish.store import Store
from petridish.sweeps import Progress, Sweep, placement, price, run_sweep
from petridish.sweeps.placement import Placement, device_rates, seconds_on, stack_size
from petridish.sweeps.planned import Planned
from petridish.sweeps.price import Speeds
from petridish.tasks import SparseParity
from petridish.tasks.table import find_table
from petridish.training import Data, Evaluation, RunSpec, Training, load_engine
from petridish.training.device_memory import memory_of_stacks
from petridish.training.devices import CPU, Device, find_device
from tests.faults import refused
from tests.own_parts import AsksInside, Dropped, RampLoss, RampMetric, Waves
from tests.test_contracts import RUNS

HERE = Device("cpu", host=False)
SMALL = RunSpec(
    task=SparseParity(10, 2),
    data=Data(m=50, n_test=40),
    model=MLP(6),
    training=Training(steps=6, batch_size=8, target_error=None),
    evaluation=Evaluation(every=3),
)
TORCH = load_engine("torch")


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Forget which devices there are, and what they can do."""
    for kept in (find_device, device_rates):
        kept.cache_clear()
    yield
    for kept in (find_device, device_rates):
        kept.cache_clear()


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PyTorch say that it sees two."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the CPU be an accelerator, at which a step costs 1 ms and a product 1 ns, with 1 GB."""
    for room in ("sweeps.placement", "sweeps.executors.worker"):
        monkeypatch.setattr(f"petridish.{room}.find_device", lambda _: HERE)
    monkeypatch.setattr(placement, "accelerator", lambda: HERE)
    monkeypatch.setattr(placement, "device_rates", lambda _: (1e-3, 1e-9))
    monkeypatch.setattr(Device, "free_memory", lambda _: 1e9)


def test_the_cpu_needs_no_search() -> None:
    """It is the default, and is always there."""
    assert find_device("cpu") is CPU
    assert CPU.host


def test_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line: what was given, what is there, what to do."""
    monkeypatch.setattr(torch, "__version__", "2.13.0+cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    for hip in (None, "6.2"):
        monkeypatch.setattr(torch.version, "cuda", None)
        monkeypatch.setattr(torch.version, "hip", hip)
        assert refused(find_device, "cuda:1") == (
            "--device cuda:1 was given, and PyTorch 2.13.0+cpu was built for the CPU alone. "
            "Install a build for your GPU (pytorch.org/get-started), or give --device cpu."
            if hip is None
            else "--device cuda:1 was given, and PyTorch 2.13.0+cpu sees no GPU. See whether its "
            "driver is installed and what CUDA_VISIBLE_DEVICES hides, or give --device cpu."
        )
    assert refused(find_device, "mps") == (
        "--device mps was given, and PyTorch finds no such device: it needs a Mac with Apple's own "
        "processor. Give --device cpu."
    )
    for name in ("gpu", 0, None):
        assert refused(find_device, name) == (
            f"There is no device called {name!r}. Give one of auto, cpu, cuda, cuda:1, mps."
        )


@pytest.mark.usefixtures("two_gpus")
def test_devices_are_numbered() -> None:
    """From 0; `cuda` is the first of those that PyTorch sees."""
    assert find_device("cuda") == find_device("cuda:0") == Device("cuda:0", host=False)
    assert find_device("cuda:1").name == "cuda:1"
    assert refused(find_device, "cuda:2") == (
        "--device cuda:2 was given, and PyTorch sees 2 such devices, the last of them cuda:1. Give "
        "one of these; CUDA_VISIBLE_DEVICES says which are seen."
    )
    assert refused(lambda: Placement("cuda", "native", 1)) == (
        "The engine native computes on the CPU alone, and --device cuda was given. Give --engine "
        "torch, or --device cpu."
    )


def test_no_accelerator_to_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs take the CPU, and a line says why, once."""
    monkeypatch.setattr(placement, "accelerator", lambda: None)
    found = Placement("auto", "auto", 2)

    (share,) = found.shares(Planned.of([SMALL]))

    assert share.device is CPU
    assert list(share.specs) == [SMALL]
    assert found.news() == ["all runs take the CPU: PyTorch sees no accelerator here"]
    assert found.news() == []


@pytest.mark.usefixtures("pretended")
def test_runs_go_where_they_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the seconds there and here, of all runs of one shape; models that fit themselves stay."""
    from petridish.estimator.contenders import RandomForest

    here = {6: 1.0, 500: 3600.0}
    monkeypatch.setattr(
        price, "seconds_here", lambda spec, runs, jobs, engine: here[spec.model.width]
    )
    wide = [replace(SMALL, model=MLP(500), seed=seed) for seed in range(3)]
    narrow = replace(SMALL, training=replace(SMALL.training, steps=2000))
    forest = RunSpec(
        task=find_table("wine"), data=Data(m=40, n_test=15), model=RandomForest(), seed=1
    )
    found = Placement("auto", "auto", 4)

    there, stay = found.shares(Planned.of([wide[0], narrow, *wide[1:], forest]))

    assert (there.device, there.engine, list(there.specs)) == (HERE, "torch", wide)
    assert (stay.device, stay.engine, list(stay.specs)) == (CPU, "auto", [narrow, forest])
    assert found.news() == [
        "3 of 5 runs take cpu: those that it serves would take about 00:02 there, and 1:00:01 on "
        "4 cores"
    ]
    named = Placement("cuda", "auto", 1)
    first, second = named.shares(Planned.of([narrow, forest]))
    assert (list(first.specs), list(second.specs)) == ([narrow], [forest])
    assert named.news() == ["1 of 2 runs take the CPU: cpu cannot serve them"]


@pytest.mark.usefixtures("pretended")
def test_an_engine_of_the_cpu_alone() -> None:
    """With `auto` a line says why the device stays idle."""
    found = Placement("auto", "native", 1)

    assert [share.device for share in found.shares(Planned.of([SMALL]))] == [CPU]
    assert found.news() == ["all runs take the CPU: the engine native computes there alone"]


def asking_runs() -> dict[str, RunSpec]:
    """Return runs of which a loss, a metric and a module ask for a number."""
    loss = replace(SMALL.training, loss=RampLoss(asks=True))
    metric = replace(SMALL.evaluation, metrics=(RampMetric(asks=True),))
    return {
        "loss": replace(SMALL, training=loss),
        "metric": replace(SMALL, evaluation=metric),
        "module": replace(SMALL, model=AsksInside()),
    }


@pytest.mark.usefixtures("pretended")
def test_a_class_of_ones_own_that_asks_for_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line says where. With `auto` a run that does so in every step stays on the CPU."""
    monkeypatch.setattr(price, "seconds_here", lambda *_: 1e9)
    monkeypatch.setattr(price, "timed_seconds", lambda *_: 1.0)
    lines = (Path(__file__).parent / "own_parts.py").read_text().splitlines()
    asked = {
        what: f"own_parts.py:{next(n for n, line in enumerate(lines, 1) if text in line)}"
        for what, text in (("loss", "(labels < 0).any()"), ("metric", "found.abs().max().item(),"))
    }
    said = {}
    for device in ("auto", "cuda"):
        for what, spec in asking_runs().items():
            found = Placement(device, "auto", 1)
            (share,) = found.shares(Planned.of([spec, replace(spec, seed=1)]))
            assert (share.device is CPU) == (device == "auto" and what == "loss")
            assert share.engine == ("reference" if what == "module" else "torch") or (
                share.device is CPU
            )
            said[device, what] = [line for line in found.news() if "runs take cpu:" not in line]

    assert said["auto", "loss"] == [
        f"runs of mlp(6) take the CPU: {asked['loss']} asks for a number in every step, and each "
        "would wait for cpu"
    ]
    assert said["cuda", "loss"] == [
        f"{asked['loss']} asks for a number in every step: each waits for cpu"
    ]
    of_metric = [f"{asked['metric']} asks for a number at evaluations: each waits for cpu"]
    assert said["auto", "metric"] == said["cuda", "metric"] == of_metric
    (line,) = said["cuda", "module"]
    assert line.startswith("runs of asks_inside go one at a time: torch.func cannot stack it (")
    assert said["auto", "module"] == [line]


def test_workers_of_a_cluster_share_the_devices_of_their_machines() -> None:
    """One worker per GPU has it whole; threads of workers that see the same one divide it."""
    from petridish.sweeps.executors.dask import DaskWorkers

    workers = DaskWorkers.__new__(DaskWorkers)
    workers.devices = [("a", "0", 1), ("a", "1", 1), ("b", "0", 1), ("b", "1,0", 1)]
    assert workers.sharing("cuda:0") == 1
    workers.devices = [("a", "0,1", 1), ("a", "1,0", 1)]  # as dask-cuda gives them out
    assert workers.sharing("cuda:0") == workers.sharing("cuda:1") == 1
    workers.devices = [("a", None, 2), ("a", None, 1), ("b", None, 1)]
    assert workers.sharing("cuda:0") == workers.sharing("mps") == 3
    workers.devices = [("a", "2", 4), ("b", "2", 1)]
    assert workers.sharing("cuda:0") == 4


@pytest.mark.usefixtures("pretended")
def test_a_device_of_ones_own_is_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight workers, each with its own: the whole of its memory, and an eighth of the time."""
    monkeypatch.setattr(placement, "MOST_RUNS", 10**9)
    monkeypatch.setattr(placement, "device_rates", lambda _: (1.0, 1e-12))
    alone = Placement("cuda", "torch", 8, sharing=lambda _: 1)
    shared = Placement("cuda", "torch", 8, sharing=lambda _: 8)
    (one,), (other,) = alone.shares(Planned.of([SMALL])), shared.shares(Planned.of([SMALL]))

    assert one.size_of(TORCH, SMALL) > 7.5 * other.size_of(TORCH, SMALL)
    assert alone.elsewhere([(SMALL, 4)])[1] == pytest.approx(shared.elsewhere([(SMALL, 4)])[1] / 8)


@pytest.mark.usefixtures("pretended")
def test_a_plan_prices_the_device() -> None:
    """By its own rates: 6 steps of one stack of 4, each 1 ms and 4 · 8 · 73 products."""
    sweep = Sweep(SMALL, {"seed": range(4)})
    there = Placement("cuda", "auto", 1)

    cost = price.price(sweep, Speeds((1.0,), (1.0,)), jobs=1, elsewhere=there.elsewhere)

    assert cost.seconds == pytest.approx(6 * (1e-3 + 1e-9 * 4 * 8 * 73))
    assert seconds_on(HERE, TORCH, SMALL, 4) == pytest.approx(cost.seconds)


@pytest.mark.usefixtures("pretended")
def test_stacks_are_sized_by_speed_and_by_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many that four fifths of a step are products, if memory holds them."""
    work = 8 * 73  # products of a step: a batch of 8, 73 weights
    assert stack_size(HERE, TORCH, SMALL) == placement.MOST_RUNS  # of so small a network
    monkeypatch.setattr(placement, "device_rates", lambda _: (1e-6, 1e-9))
    assert stack_size(HERE, TORCH, SMALL) == -(-4 * 1000 // work)
    fixed, each = memory_of_stacks(SMALL)
    there = 2 * (fixed + 3.5 * each) / placement.MEMORY
    monkeypatch.setattr(Device, "free_memory", lambda _: there)
    assert stack_size(HERE, TORCH, SMALL, jobs=2) == 3
    assert stack_size(HERE, TORCH, SMALL) == min(7, int((fixed + 7 * each) / each))
    monkeypatch.setattr(Device, "free_memory", lambda _: 1e4)
    assert refused(stack_size, HERE, TORCH, SMALL) == (
        f"A run of mlp(6) on sparse_parity(10, 2) needs about {(fixed + each) / 1e3:.3g} kB on "
        "cpu, and there is 8 kB for it. Give --device cpu, a smaller batch size or a smaller model."
    )


@pytest.mark.usefixtures("pretended")
def test_auto_leaves_to_the_cpu_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says so; a device that is named refuses such a run."""
    monkeypatch.setattr(Device, "free_memory", lambda _: 1e4)
    found = Placement("auto", "auto", 1)

    (stay,) = found.shares(Planned.of([SMALL]))

    assert (stay.device, list(stay.specs)) == (CPU, [SMALL])
    assert found.news()[0] == "runs of mlp(6) take the CPU: cpu has too little memory"
    with pytest.raises(UserError, match=r"needs about .* Give --device cpu"):
        Placement("cuda", "auto", 1).elsewhere([(SMALL, 1)])


def test_few_runs_take_few_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run is no quicker on sixteen cores."""
    monkeypatch.setattr(price, "_usual_rates", lambda _: Speeds((1.0,), (1.0,)))
    alone, two, many = (price.seconds_here(SMALL, runs, 16, "auto") for runs in (1, 2, 32))

    assert alone == two == pytest.approx(many / 2)


def test_the_command_line_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And ends with code 2, whichever command was given."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("petridish.sweeps.price.calibrate", lambda: Speeds((1.0,), (1.0,)))
    store = ["--scale", "smoke", "--store", str(tmp_path)]
    for command in (["run", "PF-1", *store], ["plan", "PF-1", *store], ["bench"]):
        assert run_command([*command, "--device", "cuda"]) == 2
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert line.startswith("petridish: --device cuda was given, and PyTorch ")
        assert line.endswith("or give --device cpu.")


@pytest.mark.usefixtures("pretended")
def test_a_sweep_on_a_device(tmp_path: Path) -> None:
    """It is stored like any other, with where it computed."""
    sweep = Sweep(SMALL, {"model.width": (4, 6), "seed": range(3)})
    store, usual = Store(tmp_path / "device"), Store(tmp_path / "cpu")

    summary = run_sweep(sweep, store, device="cuda", executor="inline", progress=Progress())
    run_sweep(sweep, usual, engine="torch", executor="inline")

    assert summary.done == 6
    one, other = (each.read().table.sort("key") for each in (store, usual))
    assert one["key"].equals(other["key"])
    assert set(one["device"]) == {"cpu"}  # the pretended one's name
    assert one["test_error"].to_list() == pytest.approx(other["test_error"].to_list(), abs=0.05)


def test_older_shards_have_no_column_for_it(tmp_path: Path) -> None:
    """Their runs took the CPU."""
    store = Store(tmp_path)
    run_sweep(Sweep(SMALL, {"seed": range(2)}), store, executor="inline")
    (shard,) = store.shards()
    table = pl.read_parquet(shard)
    assert table["device"].to_list() == ["cpu", "cpu"]
    shard.unlink()
    store.write_table(table.drop("device"))

    assert Store(tmp_path).read().table["device"].to_list() == ["cpu", "cpu"]


def test_the_bench_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its table says bits, speed, memory and distance from the reference."""
    from petridish.bench import on_device

    monkeypatch.setattr(on_device, "device_rates", lambda _: (1e-3, 1e-9))
    monkeypatch.setattr(on_device, "stack_size", lambda *_: 2)
    monkeypatch.setattr(on_device, "WORDS", 1000)
    shapes = {"mlp(6)": SMALL, "dropped": replace(RUNS["waves"], model=Dropped(), task=Waves())}
    monkeypatch.setattr(on_device, "_shapes", lambda: shapes)

    found: Any = on_device.measure_device(HERE, quick=True)

    assert (found["words_wrong"], found["words_drawn"]) == (0, 3000)
    assert found["gigaflops"] == pytest.approx(6)
    assert all(row["largest_difference"] < 1e-4 for row in found["rows"])
    assert [row["run"] for row in found["rows"]] == ["mlp(6)", "dropped"]
    text = on_device.device_table(found)
    assert "random words: 0 of 3,000 differ from the CPU's" in text
    assert len(text.splitlines()) == 7
