"""A host that is reached by SSH: a server of asyncssh, which carries out commands in a shell.

`python -m tests.ssh_host FOLDER PORT`, in whose folder are `host_key` and `authorized_keys`; it
ends with what it has started when its standard input does.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncssh


def make_keys(folder: Path, hosts: list[str]) -> Path:
    """Make the keys of some hosts and of one user; return the user's home, who knows the hosts."""
    home = folder / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    host, user = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    host.write_private_key(folder / "host_key")
    user.write_private_key(home / ".ssh/id_ed25519")
    user.write_public_key(folder / "authorized_keys")
    public = host.export_public_key().decode().strip()
    known = "".join(f"{name} {public}\n" for name in hosts)
    (home / ".ssh/known_hosts").write_text(known, encoding="utf-8")
    return home


async def carry_out(process: Any) -> None:
    """Carry out one command, as a shell of a login would."""
    child = await asyncio.create_subprocess_shell(
        process.command or "true",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        await process.redirect(stdout=child.stdout, stderr=child.stderr)
        waits = [asyncio.ensure_future(each) for each in (child.wait(), process.wait_closed())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        process.exit(child.returncode or 0)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)  # a hang-up


async def serve(folder: Path, port: int) -> None:
    """Listen until standard input ends."""
    server = await asyncssh.listen(
        "",
        port,
        server_host_keys=[str(folder / "host_key")],
        authorized_client_keys=str(folder / "authorized_keys"),
        process_factory=carry_out,
    )
    print("listening", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
