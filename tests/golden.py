"""Golden files: keys, verdicts, and what every class draws and computes, written down.

    python -m tests.golden        write the files of tests/golden anew, and say what changed

They are written by code that is trusted and read by code that has changed since. Write them anew
only for a change that is meant, in the commit that means it. Keys, counts, words, what is drawn by
whole numbers, and the native engine's weights are compared exactly: they are the same everywhere.
What NumPy, BLAS and PyTorch compute is compared to a tolerance.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.datasets import load_breast_cancer, load_diabetes

from petridish import SparseMLPClassifier, SparseMLPRegressor
from petridish.chapters import EXPERIMENTS
from petridish.choices import describe
from petridish.compare.splits import divide
from petridish.models import (
    MLP,
    AttentionOnly,
    ByName,
    ClsTransformer,
    Constant,
    KaimingGaussian,
    MinimalAttention,
    Normal,
    Uniform,
)
from petridish.publish.records import read_record, read_sweep
from petridish.seeds import Streams
from petridish.tasks import BiasedAnd, GroupProduct, MarkovChains, SparseParity
from petridish.training import (
    ENGINES,
    INSTRUMENTS,
    LOSSES,
    AttentionMap,
    BackAttention,
    ClsAttention,
    ClsAttentionMap,
    CrossEntropy,
    Error,
    Evaluation,
    ReadsUnlabelled,
    RunSpec,
    Silent,
    StrategyLoss,
    cell_text,
    flat,
    load_engine,
    run_key,
)
from petridish.training.data import batch_indices, initial_weights, test_examples, training_examples
from petridish.values import known_classes, plain
from tests.agreement import allowed, differences
from tests.domains import bits
from tests.pattern_runs import OF_PATTERNS, PATTERNED, refuses
from tests.test_engines import SPECS, on_group, spec_of
from tests.test_models import ALL_INITS, fits
from tests.test_tasks import ALL_TASKS
from tests.test_tickets import CHILD
from tests.test_trained_parts import GREEDY
from tests.test_wide import SPECS as TABLE_SPECS

FOLDER = Path(__file__).parent / "golden"
RECORDS = Path(__file__).parent.parent / "records"
LISTED = 40  # keys of a record; of longer lists a hash is kept

ENTROPY = {"loss": CrossEntropy()}
RUNS: dict[str, RunSpec] = {
    **SPECS,
    "ticket": CHILD,
    "greedy": GREEDY,
    **{f"group {name}": on_group(task=GroupProduct(name)) for name in ("Z7", "Q8", "Z2xS3")},
    **{
        f"deep, init {describe(init)}": spec_of(init=init, model=MLP(4, (2, 6)))
        for init in ALL_INITS
        if fits(init, MLP(4, (2, 6)))
    },
    "init by_name": spec_of(init=ByName((("@bias", Constant(0.0)), ("*", Uniform())))),
    **{f"task {describe(task)}": spec_of(task=task) for task in ALL_TASKS},
    "chains": spec_of(task=MarkovChains(3, 6), model=AttentionOnly(4), training=ENTROPY),
    "minimal": spec_of(task=MarkovChains(2, 10), model=MinimalAttention(), training=ENTROPY),
    **{f"table, {name}": spec for name, spec in TABLE_SPECS.items()},
}
CLS = spec_of(task=BiasedAnd(6), model=ClsTransformer(8, 2), training=ENTROPY)
"""What the instruments of [CLS] read; the run itself is among the digests."""


def digest(*parts: ArrayLike | str) -> str:
    """Hash whole numbers, signs, classes or text."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            found.update(part.encode() + b"\n")
            continue
        array = np.asarray(part)
        whole = array.astype(np.uint64 if array.dtype == np.uint64 else np.int64)
        assert np.array_equal(whole, array), "a number that is not whole is not exact everywhere"
        found.update(f"{array.shape}".encode() + np.ascontiguousarray(whole).tobytes())
    return found.hexdigest()[:16]


def gist(array: ArrayLike) -> dict[str, Any]:
    """Sum up floats: their mean size, and a weighted mean in which no two places count alike."""
    values = np.asarray(array, np.float64)
    weights = np.cos(np.arange(values.size))
    size, mark = np.abs(values).mean(), weights @ values.ravel() / values.size
    return {"shape": list(values.shape), "size": float(f"{size:.8g}"), "mark": float(f"{mark:.8g}")}


# Keys: every cell of every record.


def records() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the names of the records that have a spec, and the specs."""
    for path in sorted(RECORDS.glob("*/spec.json")):
        yield path.parent.name, json.loads(path.read_text(encoding="utf-8"))


def keys_of(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of the cells of a record, each of its first run."""
    cells: dict[str, str] = {}
    for run, seeds in read_sweep(spec["sweep"]).cells():
        cells.setdefault(cell_text(run), run_key(replace(run, seed=seeds[0])))
    keys = list(cells.values())
    return {"cells": len(keys), "keys": keys if len(keys) <= LISTED else digest(*keys)}


@cache
def verdicts_of(name: str) -> dict[str, Any]:
    """Judge the claims of a record again from its runs, once per process."""
    spec = dict(records())[name]
    found = EXPERIMENTS[spec["id"]].judge(read_record(RECORDS / name), spec["scale"])
    return {verdict.claim.name: verdict.as_json() for verdict in found}


# Runs: what is drawn for them, and their first two steps in every engine.


def drawn(spec: RunSpec) -> dict[str, Any]:
    """Return what a run's seed draws: examples and minibatches exactly, weights to a tolerance."""
    specs = [spec, replace(spec, seed=spec.seed + 1)]
    n_train = 50 if spec.data.online else min(50, int(spec.data.m))
    found: dict[str, Any] = {}
    samples = {"train": training_examples(specs, 0, n_train), "test": test_examples(specs)}
    for name, sample in samples.items():
        found[f"{name} labels"] = digest(sample.labels)
        of_table = sample.dense is not None
        found[f"{name} inputs"] = gist(sample.x) if of_table else digest(sample.x)
    if not spec.data.online:
        found["batches"] = digest(batch_indices(specs, 1, 1))
    found["start"] = [gist(weight) for weight in initial_weights(specs)]
    return found


def two_steps(spec: RunSpec, engine: str) -> dict[str, Any]:
    """Return the losses of two steps and the weights after them, to the bit from `native`."""
    training = replace(spec.training, steps=2)
    if engine == "wide":  # which keeps neither curves nor weights
        end = Evaluation(every=1, fitted_error=None)
        (record,) = load_engine(engine).run(
            [replace(spec, training=training, evaluation=end)], Silent()
        )
        return {"losses": [gist(record.train_loss)]}
    every = Evaluation(every=1, curves=True, fitted_error=None, weights=True)
    (record,) = load_engine(engine).run(
        [replace(spec, training=training, evaluation=every)], Silent()
    )
    assert record.weights is not None, f"{engine} kept no weights: {record.outcome}"
    found: dict[str, Any] = {
        "losses": [gist(loss) for loss in record.curves["train_loss"][1:]],
        "weights": [gist(weight) for weight in record.weights],
    }
    if engine == "native" and not isinstance(spec.init, KaimingGaussian | Normal):
        # Logarithms and cosines make a normal number, and NumPy's differ between processors.
        bits = [np.asarray(weight, np.float32).view(np.uint32) for weight in record.weights]
        found["bits"] = digest(*bits)
    return found


def of_run(spec: RunSpec) -> dict[str, Any]:
    """Return all that is written down of a run."""
    parts = {part: describe(getattr(spec, part)) for part in ("task", "model", "init")}
    engines = [name for name, engine in ENGINES.items() if engine.refusal(spec) is None]
    return {
        "key": run_key(spec),
        "parts": parts,
        "columns": digest(*sorted(flat(spec))),
        "drawn": drawn(spec),
        "engines": {name: two_steps(spec, name) for name in engines if name != "fit"},
    }


def readings() -> dict[str, Any]:
    """Return what each instrument reads off runs that it fits, at their start and after a step."""
    found: dict[str, Any] = {}
    of_attention = {kind.name for kind in (BackAttention, AttentionMap, StrategyLoss)}
    of_attention |= {"successor_attention", "effective_positions", "token_spread"}
    of_cls = {kind.name for kind in (ClsAttention, ClsAttentionMap)}
    of_minimal = {"even_odd", "peak_ratio", "position_share", "diagonal_share", "key_matrix"}
    kinds = {"chains": of_attention, "cls": of_cls, "minimal": of_minimal | {"loss_by_position"}}
    runs = {name: (run,) for run, names in kinds.items() for name in names}
    for name in INSTRUMENTS:
        named = runs.get(name, ("model mlp(6)", "model polynet(3)", "group"))
        for run in OF_PATTERNS.get(name, named):
            spec = CLS if run == "cls" else RUNS.get(run, PATTERNED)
            if refuses(INSTRUMENTS[name](), spec):
                continue
            short = replace(
                spec,
                training=replace(spec.training, steps=1),
                evaluation=Evaluation(every=1, curves=True, instruments=(name,)),
            )
            (record,) = load_engine("torch").run([short], Silent())
            curves, label = record.curves, INSTRUMENTS[name]().label
            values: list[Any] = curves.arrays.get(label) or curves.values[label]
            found[f"{name}, {run}"] = [None if np.isnan(v).any() else gist(v) for v in values]
    return found


def streams() -> dict[str, Any]:
    """Return draws of every kind."""
    stream = Streams([0, 1, 2**63], "golden")
    return {
        "words": digest(stream.words(3, 40)),
        "halves": digest(stream.halves(3, 40)),
        "signs": digest(stream.signs(3, 200)),
        "packed": digest(stream.packed(70, 3, 5)),
        "integers": digest(stream.integers(1000, 3, 40)),
        "subsets": digest(stream.subsets(50, 5, 3, 4)),
        "uniforms": digest(stream.uniforms(3, 40) * 2.0**53),
        "normals": gist(stream.normals(3, 40)),
    }


def endings() -> dict[str, Any]:
    """Return how whole runs of the native engine end, and what they found on the way."""
    found: dict[str, Any] = {}
    for name in ("model mlp(6)", "online", "noise", "and", "phases", "model polynet(3)"):
        spec = RUNS[name]
        long = replace(
            spec,
            task=SparseParity(6, 2) if name == "model mlp(6)" else spec.task,
            training=replace(spec.training, steps=2_000, target_error=0.1),
            evaluation=Evaluation(every=20, curves=True),
        )
        for seed in range(3):
            (record,) = load_engine("native").run([replace(long, seed=seed)], Silent())
            found[f"{name}, {seed}"] = {
                "outcome": record.outcome.name,
                "steps": [record.steps, record.solved_at, record.fitted_at],
                "test errors": digest(np.rint(np.array(record.curves["test_error"]) * 300)),
            }
    return found


def declared() -> dict[str, Any]:
    """Return the keys of the cells that every experiment declares, at the scales of a laptop."""
    found: dict[str, Any] = {}
    for name, experiment in EXPERIMENTS.items():
        for scale in (each for each in ("smoke", "laptop") if each in experiment.scales):
            keys = [run_key(spec) for spec, _ in experiment.sweep(scale).cells()]
            found[f"{name}, {scale}"] = {"cells": len(keys), "keys": digest(*keys)}
    return found


def losses() -> dict[str, Any]:
    """Return what each loss makes of some outputs, 0 among them, and labels."""
    every = torch.tensor([[0, 1, 1, 0, 1, 0]])
    found: dict[str, Any] = {}
    for name, kind in LOSSES.items():
        loss = kind()
        outputs = torch.tensor([[[0.3], [0.0], [-2.0], [-0.1], [0.9], [0.0]]])
        if loss.n_outputs(bits(3)) == 2:
            outputs = torch.cat([outputs, -outputs.flip(1)], dim=2)
        outputs.requires_grad_()
        unlabelled = isinstance(loss, ReadsUnlabelled)
        labels = torch.tensor([[0, -1, 1, 0, -1, 0]]) if unlabelled else every
        value = loss(outputs, labels)
        (gradient,) = torch.autograd.grad(value.sum(), outputs)
        found[name] = {
            "value": gist(value.detach().numpy()),
            "gradient": gist(gradient.numpy()),
            "wrong": digest(Error().each(outputs, every.long(), {}).bool().numpy()),
        }
    return found


def defaults() -> dict[str, Any]:
    """Return the default of every field of every class that a spec may hold."""
    return {
        name: {
            part.name: plain(part.default) for part in fields(kind) if part.default is not MISSING
        }
        for name, kind in sorted(known_classes().items())
    }


def estimators() -> dict[str, Any]:
    """Return how tables are divided, and what the estimators predict after three epochs."""
    found: dict[str, Any] = {}
    for stratified in (False, True):
        parts = divide(np.arange(90) % 3, stratified=stratified, seed=1, repeat=2)
        found[f"split, {stratified}"] = digest(parts.training, parts.test)
    cases = {
        "classifier": (SparseMLPClassifier, load_breast_cancer),
        "regressor": (SparseMLPRegressor, load_diabetes),
    }
    for name, (kind, load) in cases.items():
        x, y = load(return_X_y=True)
        for start in ("dense", 2):
            model = kind(16, sparsity=start, n_members=2, epochs=3, random_state=0)
            model.fit(x[:120], y[:120])
            predict = getattr(model, "predict_proba", model.predict)
            found[f"{name}, {start}"] = gist(predict(x[120:180]))
    return found


FILES: dict[str, Callable[[], dict[str, Any]]] = {
    "keys": lambda: {name: keys_of(spec) for name, spec in records()},
    "verdicts": lambda: {name: verdicts_of(name) for name, _ in records()},
    "runs": lambda: {name: of_run(spec) for name, spec in RUNS.items()},
    "readings": readings,
    "streams": streams,
    "endings": endings,
    "declared": declared,
    "losses": losses,
    "defaults": defaults,
    "estimators": estimators,
}


def changes(here: Any, there: Any, path: str = "") -> Iterable[str]:
    """Name the places in which two golden values differ by more than rounding."""
    if isinstance(here, dict) and isinstance(there, dict):
        if here.keys() != there.keys():
            for name in sorted(here.keys() ^ there.keys()):
                yield f"{path}/{name}: {'new' if name in here else 'gone'}"
        if {"claim", "verdict"} <= here.keys() & there.keys():
            for name in differences(here, there):
                yield f"{path}/{name}: {here.get(name)!r} was {there.get(name)!r}"
        elif {"size", "mark"} <= here.keys() & there.keys():
            scale = allowed(there["size"], path)
            close = all(abs(here[name] - there[name]) <= scale for name in ("size", "mark"))
            if here["shape"] != there["shape"] or not close:
                yield f"{path}: {here} was {there}"
        else:
            for name in here.keys() & there.keys():
                yield from changes(here[name], there[name], f"{path}/{name}")
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for place, (one, other) in enumerate(zip(here, there, strict=True)):
            yield from changes(one, other, f"{path}/{place}")
    elif here != there:
        yield f"{path}: {here!r} was {there!r}"


def written(name: str) -> Any:
    """Read a golden file; empty before it is written for the first time."""
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write(name: str, values: dict[str, Any]) -> None:
    """Write a golden file: one line per entry, so that a change shows where it is."""
    text_of = partial(json.dumps, ensure_ascii=False, allow_nan=False)
    lines = [f"{text_of(entry)}: {text_of(value)}" for entry, value in values.items()]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


def main() -> None:
    """Write every golden file anew, and say what changed."""
    FOLDER.mkdir(exist_ok=True)
    for name, compute in FILES.items():
        now = compute()
        found = list(changes(now, written(name), name))
        print(*found or [f"{name}: nothing changed"], sep="\n")
        if found:
            write(name, now)


if __name__ == "__main__":
    main()
