"""Hosts of a test: network namespaces with a name of their own, or plain processes without root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache

GATE = 254  # the last part of an address that nobody has


@dataclass(frozen=True)
class Host:
    """A place where a test starts processes; as an argument list, what comes before a command."""

    name: str
    address: str = "127.0.0.1"
    before: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def can_make_hosts() -> bool:
    """Return whether this process may make network namespaces: root of its own machine may."""
    name = f"pd{os.getpid() % 10_000}try"
    try:
        _ip("netns", "add", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    try:
        _ip("netns", "exec", name, "unshare", "--uts", "hostname", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    finally:
        _ip("netns", "del", name)
    return True


@contextmanager
def hosts(count: int, *, linked: bool = False) -> Iterator[list[Host]]:
    """Make hosts with names of their own; linked ones have an address each and a bridge between.

    The bridge is in a namespace too: nothing of the machine's own network is touched.
    """
    base = f"pd{os.getpid() % 10_000}"
    made = [f"{base}h{place}" for place in range(count)]
    wires = f"{base}br"
    try:
        for name in [wires, *made]:
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        if linked:
            _ip("-n", wires, "link", "add", "bridge", "type", "bridge")
            _ip("-n", wires, "link", "set", "bridge", "up")
            for place, name in enumerate(made):
                port = f"to{place}"
                _ip("-n", wires, *f"link add {port} type veth peer name eth0 netns {name}".split())
                _ip("-n", wires, "link", "set", port, "master", "bridge", "up")
                _ip("-n", name, "addr", "add", f"10.77.0.{place + 1}/24", "dev", "eth0")
                _ip("-n", name, "link", "set", "eth0", "up")
                # By its way out of here, which leads nowhere, Dask finds a host's own address.
                _ip("-n", name, *f"route add default via 10.77.0.{GATE} dev eth0".split())
        yield [
            Host(
                name,
                f"10.77.0.{place + 1}",
                (
                    *("ip", "netns", "exec", name, "unshare", "--uts"),
                    *("sh", "-c", f'hostname {name}; exec "$@"', "sh"),
                ),
            )
            for place, name in enumerate(made)
        ]
    finally:
        for name in [*made, wires]:
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "del", name)


def cut_link(host: Host, *, up: bool) -> None:
    """Take the link of a host down, or up again."""
    _ip("-n", host.name, "link", "set", "eth0", "up" if up else "down")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
