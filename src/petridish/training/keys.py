"""The name of a run: a hash of its whole spec, the same in every process and on every machine."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import math
import textwrap
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from petridish.choices import LATER, describe
from petridish.training.optimisers import Schedule
from petridish.training.spec import RunSpec

SCHEMA = 2  # rises when a spec comes to mean another run, or a stored column changes


def plain(value: object) -> Any:
    """Give the JSON form of a spec; type names keep two tasks with equal fields apart."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = {
            part.name: plain(getattr(value, part.name))
            for part in fields(value)
            if part.metadata != LATER or getattr(value, part.name) != part.default
        }
        if code := code_digest(type(value)):
            parts["code"] = code
        return {"type": type(value).__name__, **parts}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if isinstance(value, float):
        # One spelling for equal numbers: 0 and 0.0 make one run, and one entry of a cache.
        return "inf" if math.isinf(value) else int(value) if value.is_integer() else value
    return value


@lru_cache(maxsize=256)
def code_digest(kind: type) -> str:
    """Hash the code of a user's own class, comments aside; empty for petridish's classes.

    A class in a user's file may change between two runs of one sweep, so its code is part of its
    name. petridish's own classes change with `SCHEMA`.
    """
    if kind.__module__.startswith("petridish."):
        return ""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError):  # typed at a prompt: no source to read
        return ""
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]


SEED_TEXT = r', "seed": ([0-9]+)}$'  # the end of a spec's text, by which a run leaves its cell


def spec_text(spec: RunSpec) -> str:
    """Write a spec as one line of JSON, from which its key is made; the seed comes last."""
    return f'{cell_text(spec)}, "seed": {spec.seed}}}'


def cell_text(spec: RunSpec) -> str:
    """Write all of a spec but its seed: runs of one cell share it."""
    parts = [part.name for part in fields(spec) if part.name != "seed"]
    return "{" + ", ".join(f'"{name}": {_part_text(getattr(spec, name))}' for name in parts)


@lru_cache(maxsize=4096)
def _part_text(part: object) -> str:  # the runs of a sweep share most of their parts
    return json.dumps(plain(part), sort_keys=True)


def run_key(spec: RunSpec) -> str:
    """Name a run by the hash of its whole spec and of the schema."""
    text = f"petridish {SCHEMA} {spec_text(spec)}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def flat(spec: RunSpec) -> dict[str, Any]:
    """Give one entry a spec field, named by its path: `task.n`, `data.m`, `model.width`.

    A choice stands under its own path as text (`init`: "sparse(2)"), its fields below it
    (`init.s`: 2).
    """
    columns: dict[str, Any] = {}
    for part in fields(spec):
        flatten(part.name, getattr(spec, part.name), columns)
    return columns


def flatten(path: str, value: object, columns: dict[str, Any]) -> None:
    """Enter a field under its path, and the fields of a choice below it."""
    if not is_dataclass(value):
        columns[path] = list(value) if isinstance(value, tuple) else value
        return
    if hasattr(value, "name"):
        columns[path] = describe(value)
        kind: type = type(value)
        if code := code_digest(kind):
            columns[f"{path}.code"] = code
    if not isinstance(value, Schedule):  # its pieces fit no column; they are in its text
        for part in fields(value):
            flatten(f"{path}.{part.name}", getattr(value, part.name), columns)
