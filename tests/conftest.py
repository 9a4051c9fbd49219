"""What the tests share."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

from petridish import user_classes
from petridish.training.numerics import pin_kernels

pin_kernels()  # before any test computes with PyTorch, as in a worker
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job ignores Ctrl-C, and so would the processes whose Ctrl-C is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile(
    "repeatable",
    derandomize=True,
    max_examples=50,
    deadline=None,  # a busy machine is slow, and no fault of the code
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")

Command = Callable[..., "subprocess.CompletedProcess[str]"]
SmokeStore = Callable[[str], Path]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Set `seed` to 0, or to each of PETRIDISH_TEST_SEEDS=0,1,2: a claim holds for all."""
    if "seed" in metafunc.fixturenames:
        seeds = os.environ.get("PETRIDISH_TEST_SEEDS", "0").split(",")
        metafunc.parametrize("seed", [int(seed) for seed in seeds])


# With `--dist loadfile` a worker takes a whole file. Begun last, one of the longest would keep one
# core busy while the others have nothing left to do.
LONG = ("test_smoke.py", "test_smoke_hidden.py", "test_columns.py", "test_cli.py")

# Files that wait more than they compute: for workers and leases, a kernel, a browser, a timeout.
WAITING = (
    *("test_cluster.py", "test_explorer_page.py", "test_trouble.py", "test_cluster_faults.py"),
    *("test_run_time_constants.py", "test_leases.py", "test_cluster_machines.py"),
    *("test_notebook.py", "test_cluster_scale.py", "test_shared_store.py", "test_compaction.py"),
    "test_explorer_server.py",
)


def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than there are cores: while a file waits, others compute."""
    from petridish.sweeps.batches import cores

    return cores() + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, and spread those that wait over the first three quarters."""
    files = dict.fromkeys(item.path.name for item in items)
    waiting = [name for name in WAITING if name in files]
    computing = [name for name in LONG if name in files]
    computing += [name for name in files if name not in (*LONG, *WAITING)]
    place = {name: i / len(computing) for i, name in enumerate(computing)}
    place |= {name: 0.75 * i / len(waiting) for i, name in enumerate(waiting)}
    items.sort(key=lambda item: (place[item.path.name], item.path.name))


@pytest.fixture
def petridish(tmp_path: Path) -> Command:
    """Return the command line as a user has it: a new process in an empty folder."""

    def command(*arguments: object, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "petridish.cli.main", *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            timeout=timeout,
        )

    return command


@pytest.fixture
def inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Return the command line without a new process: for tests of many commands, to save imports.

    The classes of users' files that they read are forgotten afterwards, as with the process.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(user_classes, "_learned", dict(user_classes._learned))

    def command(*arguments: object) -> subprocess.CompletedProcess[str]:
        from petridish.cli.main import run_command

        texts = [*map(str, arguments)]
        capsys.readouterr()
        code = run_command(texts)
        return subprocess.CompletedProcess(texts, code, *capsys.readouterr())

    return command


@pytest.fixture(scope="session")
def smoke_store(tmp_path_factory: pytest.TempPathFactory) -> SmokeStore:
    """Return the store with an experiment's smoke runs, trained once for the whole test run.

    Tests that change a store take a copy. Workers share the stores: the first that asks trains.
    """
    from petridish.chapters import EXPERIMENTS
    from petridish.store import Store
    from petridish.sweeps import run_sweep

    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def trained(name: str) -> Path:
        folder = shared / f"smoke-{name}"
        with FileLock(f"{folder}.lock"):
            run_sweep(EXPERIMENTS[name].sweep("smoke"), Store(folder), executor="inline")
        return folder

    return trained


@pytest.fixture(autouse=True)
def own_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget after a test the files whose classes it asked for: another has classes of its own."""
    monkeypatch.setattr(user_classes, "_learned", dict(user_classes._learned))


def forget_files() -> None:
    """Forget the users' files that were loaded, as another process has none of them."""
    for name in user_classes._learned:
        sys.modules.pop(name, None)
    user_classes._learned.clear()


def copy_runs(store: Path, to: Path) -> None:
    """Copy the runs of a store that tests share, not what commands have noted beside them."""
    beside = shutil.ignore_patterns("sweeps", "leases", "verdicts-shown*", "*.part")
    shutil.copytree(store, to, ignore=beside)


@pytest.fixture
def short_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time each width for a moment: what `plan` and `check` print holds at any speed."""
    monkeypatch.setattr("petridish.sweeps.price.CALIBRATION_SECONDS", 0.01)


@pytest.fixture
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw 100 resamples instead of 2000: error rates need many tables, not fine quantiles."""
    for module in ("rules.times", "chapters.pareto.rules.theorems", "rules.outcome_classes"):
        monkeypatch.setattr(f"petridish.{module}.RESAMPLES", 100)


@pytest.fixture
def quick_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make forests and networks of comparisons small, for tests of what is done with them."""
    from petridish import estimator
    from petridish.compare import methods

    monkeypatch.setattr(methods, "TREES", 10)
    small = {"width": 16, "n_members": 1, "epochs": 2}
    for name in ("SparseMLPClassifier", "SparseMLPRegressor"):
        whole = getattr(estimator, name)
        monkeypatch.setattr(estimator, name, functools.partial(whole, **small), raising=False)
