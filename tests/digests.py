"""What every class of a spec computes, per class and version.

    python -m tests.digests        write tests/digests.json anew, and say what changed

A class whose entry moves computes something else than runs that are stored: its `version` has to be
raised. Whole numbers are compared exactly, floats to the tolerance of the golden files, so that the
entries hold on every processor.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from petridish.models import (
    MLP,
    AttentionOnly,
    BareHead,
    ByName,
    CausalTransformer,
    ClsTransformer,
    Constant,
    NoisyMLP,
    Normal,
    PublishedInduction,
    ResNet,
)
from petridish.tasks import (
    BiasedAnd,
    BiasedBits,
    Dictionary,
    HiddenLabels,
    Hypercube,
    Injected,
    MarkovChains,
    Mixed,
    NGrams,
    find_images,
)
from petridish.training import (
    KL,
    CrossEntropy,
    Data,
    Error,
    From,
    Instrument,
    MeanLoss,
    Metric,
    OneHypothesis,
    RunSpec,
    SquaredError,
    Taught,
    Training,
    Weighted,
)
from petridish.values import known_classes, version_of
from tests.golden import RUNS, changes, drawn, gist, losses, readings, two_steps

PATH = Path(__file__).parent / "digests.json"
AGAIN = "`python -m tests.digests`"
SERVED = {name: spec for name, spec in RUNS.items() if not name.startswith("table")}
SERVED["samples drawn anew"] = RunSpec(
    task=BiasedAnd(12, 2, encoding="signs"),
    data=Data(m=16, n_test=50, accept=OneHypothesis()),
    model=MLP(6),
)
SERVED["tokens"] = RunSpec(
    task=BiasedAnd(6),
    data=Data(m=16, n_test=50),
    model=ClsTransformer(8, 2),
    # Its own start is PyTorch's draw.
    init=ByName((("norm*.weight", Constant(1.0)), ("@bias", Constant(0.0)), ("*", Normal(0.02)))),
    training=Training(loss=CrossEntropy(), batch_size=None),
)
SERVED["bare head"] = RunSpec(
    task=BiasedBits(6, of="parity"),
    data=Data(m=16, n_test=50),
    model=BareHead(8, 2),
    init=Normal(0.1),
    training=Training(loss=CrossEntropy(), batch_size=None),
)
_SMALL = ByName((("@bias", Constant(0.0)), ("@scale", Constant(1.0)), ("*", Normal(0.3))))
for _name, _task, _model in (
    ("n-grams", NGrams(2, 6, 3), AttentionOnly(4)),
    ("mixed", Mixed(MarkovChains(3, 6, "doubly"), NGrams(3, 6, 2), 0.25), AttentionOnly(4)),
    ("causal", MarkovChains(3, 6), CausalTransformer(4, mlp=5, norm=True, readout="log")),
    ("published", MarkovChains(3, 6), PublishedInduction(2, dropout=0.0)),
):
    SERVED[_name] = RunSpec(
        task=_task,
        data=Data(m=16, n_test=50),
        model=_model,
        init=Normal(0.3) if isinstance(_model, AttentionOnly) else _SMALL,
        training=Training(loss=CrossEntropy(), batch_size=None),
    )
SERVED["dictionary"] = RunSpec(task=Dictionary(7, 5, 3), data=Data(m=16, n_test=50), model=MLP(6))
for task in (
    HiddenLabels(7, 5, 3, 2),
    Hypercube(5, 3, 0.7),
    Injected(Dictionary(6, 4, 3), 0.3),
    find_images("digits", (0, 1)),
):
    SERVED[task.name] = RunSpec(task=task, data=Data(m=16, n_test=50), model=MLP(6))
SERVED["filters"] = RunSpec(
    task=find_images("digits", (0, 1)),
    data=Data(m=16, n_test=50),
    model=ResNet(2),
    init=ByName((("@bias", Constant(0.0)), ("*", Normal(0.1)))),  # its own is PyTorch's draw
    training=Training(loss=CrossEntropy(), batch_size=None),
)
SERVED["noisy"] = RunSpec(
    task=Dictionary(7, 5, 3),
    data=Data(m=16, n_test=50),
    model=NoisyMLP(6, 0.3),
    init=Normal(0.1),
    training=Training(loss=Weighted((1, 2)), batch_size=None),
)
_FIRST = replace(RUNS["model mlp(6)"], seed=0)
SERVED["goes on"] = replace(_FIRST, init=From(_FIRST))
SERVED["taught"] = replace(_FIRST, task=Taught(_FIRST.task, _FIRST))


def parts(value: Any) -> Iterator[type]:
    """Yield the classes of a value and of what it holds."""
    if is_dataclass(value) and not isinstance(value, type):
        yield type(value)
        for part in fields(value):
            yield from parts(getattr(value, part.name))
    elif isinstance(value, tuple):
        for part in value:
            yield from parts(part)


def entry(kind: type) -> str:
    """Return the name of a class and its version, as the file has it."""
    return f"{kind.__name__}, version {version_of(kind)}"


@cache
def computed(name: str) -> dict[str, Any]:
    """Return what a run draws, and its first two steps by the plainest engine."""
    spec: RunSpec = SERVED[name]
    short = replace(spec, training=replace(spec.training, steps=2))
    return {"drawn": drawn(spec), "steps": two_steps(short, "reference")}


def shown_by(kind: type) -> str | None:
    """Return the name of the first run that has a value of a class, the plainest such run."""
    having = [name for name, spec in SERVED.items() if kind in set(parts(spec))]
    return having[0] if having else None


def digests() -> dict[str, Any]:
    """Return an entry for every class that stands in one of the runs, and for every loss."""
    found: dict[str, Any] = {}
    by_loss, read = losses(), readings()
    for _, kind in sorted(known_classes().items()):
        run = shown_by(kind)
        if run is not None and kind is not RunSpec:
            others = sorted({entry(part) for part in parts(SERVED[run])} - {entry(kind)})
            found[entry(kind)] = {"run": run, "with": others, **computed(run)}
        name = str(getattr(kind, "name", None))
        if name in by_loss:
            found[entry(kind)] = {"loss": by_loss[name]}
        if issubclass(kind, Instrument):
            own = {place: value for place, value in read.items() if place.startswith(f"{name},")}
            found[entry(kind)] = {"readings": own}
        if issubclass(kind, Metric):
            found[entry(kind)] = {"values": measured(kind)}
    return found


def measured(kind: type) -> dict[str, Any]:
    """Return what a metric makes of fixed outputs."""
    outputs = torch.linspace(-1.3, 1.7, 12).view(1, 6, 2)
    classes = torch.tensor([[0, 1, 1, -1, 0, 1]])
    targets = torch.linspace(0.0, 1.0, 12).view(1, 6, 2)
    shares = (2 * outputs).softmax(dim=-1).flip(-1)
    known = {name: torch.tensor(p) for name, p in KL("truth").known(shares.numpy()).items()}
    cases: dict[type, tuple[Metric, torch.Tensor, dict[str, torch.Tensor]]] = {
        Error: (Error(), classes, {}),
        SquaredError: (SquaredError(), targets, {}),
        MeanLoss: (MeanLoss(CrossEntropy()), classes, {}),
        KL: (KL("truth"), classes, known),
    }
    metric, labels, facts = cases[kind]
    return gist(metric.each(outputs, labels, facts).nan_to_num(nan=-1.0).numpy())


def moved(here: dict[str, Any], there: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each class that computes something else under the same version."""
    for name, value in here.items():
        if name not in there:
            yield f"{name} has no entry yet. Write it by {AGAIN}."
        elif value.get("with") != there[name].get("with"):
            yield f"{name} has no entry with these versions yet. Write it by {AGAIN}."
        elif places := list(changes(value, there[name])):
            kind = name.partition(",")[0]
            yield (
                f"{name} computes something else than it did ({places[0]}), or a class does that "
                f"its run has too. If that is meant, raise `version` of the one that changed, such "
                f"as {kind} (its stored runs are then trained again), and write the file by "
                f"{AGAIN}; if not, mend it."
            )


def written() -> dict[str, Any]:
    """Read the file; empty before it is written for the first time."""
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.is_file() else {}


def main() -> None:
    """Write the entries of today's versions, keeping those of older ones, and say what changed."""
    before, now = written(), digests()
    print(*list(moved(now, before)) or ["nothing changed"], sep="\n")
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in (before | now).items()]
    PATH.write_text("{\n" + ",\n".join(sorted(lines)) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
