"""Eight commands on one store, as on eight nodes of a cluster: some are killed, some freeze."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from petridish import Sweep
from petridish.api.asked import find_experiment
from petridish.store import Store
from petridish.sweeps import run_sweep
from tests.hosts import Host, can_make_hosts, hosts
from tests.test_leases import wait_for
from tests.test_sweeps import comparable

NODES = 8
# The command as a node of a job array gives it; a lease is short, so that the test is.
NODE = """
import sys, time
from pathlib import Path
import petridish.api.running
from petridish.sweeps import leases
leases.LEASE_SECONDS = 2.0
leases.GATE_SECONDS = 0.5
Path("ready", sys.argv[1]).touch()
while not Path("go").exists():
    time.sleep(0.05)
sys.argv[1:] = ["run", "sweep.py", "--store", "kept", "--jobs", "1", "--shared-by", "8", "--json"]
from petridish.cli.main import main
main()
"""
FILE = """
from petridish import Data, RunSpec, SparseParity, Sweep, Training

SWEEP = Sweep(
    RunSpec(
        task=SparseParity(20, 8),
        data=Data(m=300, n_test=300),
        training=Training(steps=2000),
    ),
    {"model.width": (20, 21, 22), "seed": range(40)},
)
"""


@contextmanager
def machines() -> Iterator[list[Host]]:
    """Provide a host per node: leases of processes of another host can only expire."""
    if can_make_hosts():
        with hosts(NODES) as made:
            yield made
    else:  # without root, all are on this machine, where a dead holder is seen at once
        yield [Host(f"node{place}") for place in range(NODES)]


def test_eight_commands_of_which_two_die_and_two_freeze(tmp_path: Path) -> None:
    """The others carry out every run; a holder that thaws finds its work done, and ends well."""
    (tmp_path / "sweep.py").write_text(FILE, encoding="utf-8")
    (tmp_path / "ready").mkdir()
    sweep: Sweep = find_experiment(tmp_path / "sweep.py").sweep("own")
    store, random = Store(tmp_path / "kept"), Random(0)
    nodes: list[subprocess.Popen[str]] = []

    def reached(count: int) -> Callable[[], bool]:
        return lambda: len(store.keys()) >= count or all(node.poll() is not None for node in nodes)

    with machines() as made:
        try:
            for host in made:
                command = [*host.before, sys.executable, "-c", NODE, host.name]
                pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
                node = subprocess.Popen(command, cwd=tmp_path, text=True, **pipes)  # type: ignore[call-overload] # pipes
                nodes.append(node)
            wait_for(lambda: len(list((tmp_path / "ready").iterdir())) == NODES)
            (tmp_path / "go").touch()
            frozen, killed = nodes[0:2], nodes[2:4]
            random.shuffle(killed)
            for count, node, fault in (
                (5, frozen[0], signal.SIGSTOP),
                (20, killed[0], signal.SIGKILL),
                (35, frozen[1], signal.SIGSTOP),
                (50, killed[1], signal.SIGKILL),
            ):
                wait_for(reached(count))
                node.send_signal(fault)
            said = [node.communicate() for node in nodes[4:]]
            assert [node.returncode for node in nodes[4:]] == [0] * 4, said
            assert len(store.keys()) == len(sweep)
            for node in frozen:
                node.send_signal(signal.SIGCONT)
            said = [node.communicate() for node in frozen]
            assert [node.returncode for node in frozen] == [0] * 2, said
        finally:
            for node in nodes:
                node.kill()
                node.communicate()
    alone = Store(tmp_path / "alone")
    run_sweep(sweep, alone, executor="inline")
    assert comparable(store).equals(comparable(alone))
