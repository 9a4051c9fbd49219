"""The explorer's server: what it serves, to whom, and what it survives."""

from __future__ import annotations

import base64
import gzip
import json
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from petridish.bench import explorer_answers
from petridish.bench.explorer_answers import make_store
from petridish.errors import UserError
from petridish.explorer import one_file
from petridish.explorer.server import HEADERS, SCRIPTS, bind
from petridish.store import Store
from petridish.store.requests import note_request
from tests.conftest import Command, SmokeStore
from tests.explorer_worlds import Served, fill, served


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, smoke_store: SmokeStore) -> Path:
    """Return a store with the smoke runs of PF-3, and a secret beside it."""
    root = tmp_path_factory.mktemp("served")
    (root / "secret.txt").write_text("a secret")
    return fill(root / "store", smoke_store, "PF-3")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    """Serve it."""
    with served(folder) as found:
        yield found


def test_it_serves_its_page_and_its_scripts(server: Served) -> None:
    """With headers that let a page load nothing from elsewhere."""
    status, headers, page = server.get("/")

    assert status == 200
    assert {k: headers[k.lower()] for k in HEADERS} == HEADERS
    assert b"http://" not in page.replace(b"http://www.w3.org", b"")
    assert b"https://" not in page
    for name in SCRIPTS:
        status, headers, _ = server.get(f"/page/{name}")
        assert (status, headers["content-type"]) == (200, "text/javascript; charset=utf-8")


@pytest.mark.parametrize(
    "path",
    [
        "/page/../server.py",
        "/page/..%2fserver.py",
        "/page/%2e%2e/%2e%2e/secret.txt",
        "/../secret.txt",
        "//etc/passwd",
        "/page//etc/passwd",
        "/page/..\\secret.txt",
        "/page/main.js%00.txt",
        "/api/../../secret.txt",
        "/api/..%2f..%2fsecret.txt",
        "/secret.txt",
        "/static/x",
    ],
)
def test_it_serves_nothing_else(server: Served, path: str) -> None:
    """No path leads out of what it serves."""
    status, headers, body = server.get(path)

    assert status in (400, 404)
    assert b"secret" not in body.replace(b"secret.txt", b"")
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "of", ["../../secret.txt", "/etc/passwd", "", "a" * 5_000, "\x00", "PF_3-smoke/.."]
)
def test_no_name_of_runs_is_a_path(server: Served, of: str) -> None:
    """It is looked up among the names that are there."""
    found = server.ask("set", of=of)

    assert found["error"] == f"There are no runs called {of!r} here. Choose some from the home."


def test_another_name_that_leads_here_is_refused(server: Served) -> None:
    """A page elsewhere cannot read the store by a name of its own."""
    assert server.get("/api/home", Host="evil.example")[0] == 400
    assert server.get("/api/home", Host=f"localhost:{server.port}")[0] == 200


def test_with_a_token_nothing_is_shown_without_it(folder: Path) -> None:
    """By the address it is kept in a cookie and leaves the address."""
    with served(folder, token="word") as guarded:
        for path in ("/", "/api/home", "/page/main.js", "/api/home?token=wrong", "/?token=wörd"):
            status, _, body = guarded.get(path.replace("ö", "%C3%B6"))
            assert status == 401
            assert body.decode() == (
                "This explorer asks for its token. Open the address that `petridish explore` "
                "printed, which ends in ?token=….\n"
            )
        status, headers, _ = guarded.get("/?token=word")
        assert (status, headers["location"]) == (303, "./")
        cookie = headers["set-cookie"].partition(";")[0]
        assert "HttpOnly" in headers["set-cookie"]
        assert "SameSite=strict" in headers["set-cookie"]
        assert guarded.get("/api/home", Cookie=cookie)[0] == 200


def test_two_explorers_of_a_host_keep_their_own_tokens(folder: Path) -> None:
    """A browser keeps cookies by host, whatever the port: the second would replace the first."""
    with served(folder, token="one") as first, served(folder, token="two") as second:
        kept = [
            each.get(f"/?token={word}")[1]["set-cookie"].partition(";")[0]
            for each, word in ((first, "one"), (second, "two"))
        ]
        assert len({cookie.partition("=")[0] for cookie in kept}) == 2
        for each in (first, second):
            assert each.get("/api/home", Cookie="; ".join(kept))[0] == 200
        assert first.get("/", Host="127.0.0.1:odd")[0] == 401


def test_a_hundred_at_once_slow_ones_and_broken_ones_leave_it_serving(server: Served) -> None:
    """All hundred get the same answer; a client that says nothing blocks nobody."""
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    for number, client in enumerate(silent[:10]):
        client.sendall(b"GET /api/home HTTP/1.1\r\nHost: localhost\r\n")  # and nothing more
        if number % 2:
            client.close()
    for _ in range(20):  # asks and leaves
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(b"GET /api/set?of=PF_3-smoke HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answers: list[bytes] = []
    path = "/api/value?of=PF_3-smoke&value=test_error"

    def ask() -> None:
        answers.append(server.get(path)[2])

    clients = [threading.Thread(target=ask) for _ in range(100)]
    for each in clients:
        each.start()
    for each in clients:
        each.join(timeout=60)
    for client in silent:
        client.close()

    assert len(answers) == 100
    assert len(set(answers)) == 1
    assert "values" in json.loads(answers[0])


def test_a_fault_is_one_line_and_the_server_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a user's class raises."""
    from petridish.explorer import aggregation

    with served(folder) as found:
        monkeypatch.setattr(aggregation, "dots_of", lambda now: 1 / 0)
        reply = found.ask("dots", of="PF_3-smoke")
        assert reply == {"error": "A fault: ZeroDivisionError: division by zero"}
        assert found.ask("set", of="PF_3-smoke")["runs"] == 12


def test_the_same_question_is_answered_anew_when_runs_come(
    tmp_path: Path, smoke_store: SmokeStore
) -> None:
    """A shard more, and the version and the counts rise; what is gone is gone."""
    folder = fill(tmp_path / "store", smoke_store, "PF-3")
    shards = Store(folder).shards()
    kept = {path: path.read_bytes() for path in shards[1:]}
    for path in kept:
        path.unlink()
    with served(folder) as found:
        before = found.ask("set", of="PF_3-smoke")
        state = found.ask("state")["versions"]["PF_3-smoke"]
        for path, content in kept.items():
            path.write_bytes(content)
        after = found.ask("set", of="PF_3-smoke")

        assert found.ask("state")["versions"]["PF_3-smoke"] > state
        assert sum(after["counts"]["n"]) == 12 >= sum(before["counts"]["n"])


def test_a_busy_port_is_said() -> None:
    """With what to do."""
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError) as mistake:
            bind("127.0.0.1", port)

    assert str(mistake.value) == (
        f"The port {port} of 127.0.0.1 cannot be used: Address already in use. Give another by "
        "--port, or --port 0 for any that is free."
    )


def test_the_command_refuses_what_cannot_be(
    inside: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine's address without a token, a port that is none, a store that is not there."""
    monkeypatch.setattr(secrets, "token_urlsafe", lambda _: "a-long-word")
    (tmp_path / "petridish-store").mkdir()
    assert inside("explore", "--host", "0.0.0.0").stderr == (
        "petridish: --host 0.0.0.0 lets other machines reach the page. Give --token and a long "
        "word, such as a-long-word, without which it shows nothing.\n"
    )
    assert inside("explore", "--port", "70000").stderr == (
        "petridish: --port 70000 was given. Give one from 0 to 65535.\n"
    )
    assert inside("explore", "--store", "nowhere").stderr == (
        "petridish: There is no store nowhere. Give --store, or fill one by `petridish run`.\n"
    )
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert inside("explore").stderr == (
        "petridish: The explorer needs starlette, uvicorn, plotly, which is not installed here. "
        "Install it by `pip install 'petridish[explorer]'`.\n"
    )


def test_the_command_prints_its_address_and_ends_by_ctrl_c(folder: Path) -> None:
    """On any free port."""
    command = [sys.executable, "-m", "petridish.cli.main", "explore"]
    with subprocess.Popen(
        [*command, "--store", str(folder), "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        port = int(line.rpartition(":")[2].strip("/"))
        found = Served(port).ask("home")["stores"]
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=60)

    assert line == f"http://127.0.0.1:{port}/"
    assert found == [{"folder": str(folder), "runs": 12}]
    assert code in (0, 130)


def test_an_export_holds_all_and_is_small(inside: Command, folder: Path, tmp_path: Path) -> None:
    """Nothing in it is fetched; it says what it left out; the same store gives the same file."""
    out = tmp_path / "runs.html"
    done = inside("explore", "--store", folder, "--export", out)
    first = out.read_bytes()
    again = inside("explore", "--store", folder, "--export", out)

    assert (done.returncode, done.stdout) == (0, f"{out}\n")
    assert done.stderr == (
        f"{len(first) / 1e6:.1f} MB. 12 runs, as one file. Curves of 12 runs, thinned to 64 points "
        "at most. Weights and arrays are left out.\n"
    )
    assert again.returncode == 0
    assert out.read_bytes() == first
    assert b"src=" not in first.split(b"<script")[0]
    assert len(first) < 15_000_000
    nowhere = folder.parent / "secret.txt" / "x.html"
    assert inside("explore", "--store", folder, "--export", nowhere).stderr == (
        f"petridish: {nowhere} cannot be written: File exists. Give another --export.\n"
    )


def test_an_export_counts_a_run_once_and_says_which_folder_it_made(
    tmp_path: Path, smoke_store: SmokeStore
) -> None:
    """However many sweeps ask for the run."""
    store = fill(tmp_path / "store", smoke_store, "PF-1")
    whole = len(Store(store).read().table)
    note_request(store, "PF-1", "smoke", ["data.m=100"])
    out = tmp_path / "new" / "runs.html"
    said = one_file.write_file([store], None, out)
    assert said.startswith(f"The folder {out.parent} was made. ")
    assert f" MB. {whole} runs, as one file." in said
    assert not one_file.write_file([store], None, out).startswith("The folder")


def test_of_many_settings_a_file_has_the_maps_and_fewer_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every setting is there, with as many of its runs as there is room for; it says how many."""
    make_store(tmp_path / "made", 2_000)
    out = tmp_path / "runs.html"
    monkeypatch.setattr(one_file, "MOST_LISTED", 100)
    monkeypatch.setattr(one_file, "MOST_DRAWN", 10)
    said = one_file.write_file([tmp_path / "made"], None, out)

    assert said.endswith(
        " MB. 2,000 runs, as one file. There are no curves in it. Tables have the first 5 runs of "
        "a setting. Weights and arrays are left out."
    )
    (packed,) = re.findall('id="data"[^>]*>([^<]+)<', out.read_text("utf-8"))
    answers = json.loads(gzip.decompress(base64.b64decode(packed)))
    settings = [answer for name, answer in answers.items() if name.startswith("setting?")]
    assert len(settings) == 20
    assert all(each["n"] == 100 and each["curves"] == [] for each in settings)
    seeds = [each["runs"][each["columns"].index("seed")] for each in settings]
    assert seeds == [[0, 1, 2, 3, 4]] * 20


def test_the_bench_has_every_number_once(tmp_path: Path) -> None:
    """Of a made store of twenty settings; the one more shard is seen."""
    make_store(tmp_path / "made", 2_000)
    row = {"runs": 2_000, **explorer_answers._measured(tmp_path / "made")}
    lines = explorer_answers.explorer_table([row]).splitlines()

    assert row["settings"] == 20
    assert lines[0].split() == ["runs", "2,000"]
    assert [line.split("  ")[0] for line in lines[2:5]] == [
        "open, s",
        "open, on one core, s",
        "first value, s",
    ]
    assert len(lines) == len(row)
    assert all(float(line.split()[-1]) > 0 for line in lines[2:])
