"""What a claim speaks of must be declared: its arms, its columns and their values, its restarts.

And it must not be what the choice of the runs takes for granted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from petridish.choices import describe
from petridish.errors import UserError, nearest
from petridish.rules.cells import RESTART, as_tuple
from petridish.rules.claims import Judges, Reads, Simulated, columns_of
from petridish.rules.comparisons import BestOrTied
from petridish.rules.layouts import ARM
from petridish.rules.measures import Measure
from petridish.rules.outcome_values import has_classes
from petridish.rules.rule import Rule
from petridish.rules.success import Beats, FrontierShrinks
from petridish.rules.times import Quicker
from petridish.sweeps import Arms, Sweep
from petridish.sweeps.sweep import MOST_NAMED, SHORT, with_value
from petridish.training import Outcome, RunSpec, cell_text, flat

ENDS = (
    *("outcome", "solved_at", "fitted_at", "steps", "test_error", "train_loss", "seconds"),
    *("restart", "seed"),
)
AT_START = ("restart", "seed")  # of these, what is known before a run
CELL = "cell"  # the whole spec, which every table has: a measure may ask it (`rules.specs`)


def check_rule(rule: Judges, sweep: Sweep, declared: Collection[Sweep] = ()) -> None:
    """Refuse a rule that speaks of an arm, a column or a value that no run of a sweep will have.

    Also one that would count the restarts of a seed, or runs of different settings, as seeds, and
    one that compares runs along an axis along which their allocation takes success to rise. Nothing
    is trained for it: the specs say which columns their runs have. By --set a user may leave values
    out and add axes to what is `declared`: a value counts as known if one of these sweeps has it,
    and of a further axis, of which these have no two values, the verdict will speak.
    """
    if isinstance(rule, Simulated):
        return  # no run takes part
    _check_assumed(rule, sweep)
    if isinstance(rule, Rule):
        _check_arms(rule, sweep)
    named = {*columns_of(rule), *_columns_named(rule)} - {CELL}
    # Whether an instrument returns numbers or arrays is known only once it has been read.
    named = {f"curve.{n.removeprefix('array.')}" if n.startswith("array.") else n for n in named}
    missing, known = set(named), set[str]()
    for spec, _ in sweep.cells() if missing else ():
        found = columns_of_run(spec)
        missing, known = missing - found, known | found
        if not missing:
            break
    if missing and (isinstance(rule, Rule) or missing & _columns_named(rule)):
        name = min(missing)
        what, of = f"column {name!r} among", name
        if name.startswith("final."):  # as the rule has it: AtEnd("train_error")
            of = name.removeprefix("final.")
            what = f"metric {of!r} at the end of"
            metrics = {n.removeprefix("final.") for n in known if n.startswith("final.")}
            known = metrics | (known & {"test_error", "train_loss"})
        whole = [path for path in known if path == SHORT.get(name) or path.endswith(f".{name}")]
        cure = f"Give its whole path, {' or '.join(sorted(whole))}." if whole else ""
        raise UserError(
            f"There is no {what} the runs of this sweep, which its rule reads. "
            f"{cure or nearest(of, known)}"
        )
    _check_values(rule, sweep, declared)
    over = rule.over if isinstance(rule, Reads) else ()
    restarts = max(len(part.axes.get(RESTART, (0,))) for part in sweep.grids())
    if restarts > 1 and RESTART not in over:
        raise UserError(
            f"The sweep has {restarts} restarts per seed, and its rule counts each as a seed. "
            'Judge BestOf(…, over="restart"), or choose one by --set restart=0.'
        )
    if isinstance(rule, Rule):
        _check_measure(rule.measure)
    own = not declared or sweep in declared
    _check_apart(rule, sweep, None if own else _varied(declared))


def _columns_named(rule: Judges) -> set[str]:
    """Return the columns that a general rule of this package names by its fields."""
    if isinstance(rule, Reads) or not type(rule).__module__.startswith("petridish.rules."):
        return set()
    fields = [
        getattr(rule, name, ()) for name in ("along", "over", "condition", "within", "best_over")
    ]
    fields.append(tuple(getattr(rule, "at_least", ())))
    return {name for field in fields for name in as_tuple(field)}


def _values_named(rule: Judges) -> list[tuple[str, Any]]:
    """Return the values that a rule names, each with its column."""
    if isinstance(rule, Beats):
        return [(rule.condition, rule.better), (rule.condition, rule.worse)]
    if isinstance(rule, BestOrTied):
        return [(rule.condition, rule.candidate)]
    if isinstance(rule, Quicker | FrontierShrinks):
        return [(rule.along, end) for end in rule.ends or ()]
    if not isinstance(rule, Rule):
        return []
    only = [(name, value) for name, each in rule.layout.only.items() for value in as_tuple(each)]
    return [(name, value) for name, value in (*rule.layout.named, *only) if name != ARM]


def _check_values(rule: Judges, sweep: Sweep, declared: Iterable[Sweep]) -> None:
    sweeps = (sweep, *declared)
    for column, value in _values_named(rule):
        if column in ENDS and column not in (*AT_START, "outcome"):
            continue  # known at the end of a run
        # One axis at a time finds nearly all; the text of a choice may need several together.
        near: Iterable[Any]
        every: Iterable[Any]
        if column == "outcome":
            near = every = [outcome.name for outcome in Outcome]
        elif column == "seed":
            near, every = (), (seed for s in sweeps for _, seeds in s.cells() for seed in seeds)
        else:
            near = (_value(spec, column) for each in sweeps for spec in one_axis_at_a_time(each))
            every = (_value(spec, column) for each in sweeps for spec, _ in each.cells())
        if value not in near and value not in (known := list(every)):
            raise UserError(
                f"No run of this sweep has {column} = {_shown(value, known)}, of which its rule "
                f"speaks. {_known_values(value, known)}"
            )


def _shown(value: Any, known: Iterable[Any]) -> str:
    """Write a value; a text as Python does where numbers are known."""
    numbers = all(isinstance(each, int | float) for each in known if each is not None)
    return repr(value) if isinstance(value, str) and numbers else str(value)


def _known_values(value: Any, known: Iterable[Any]) -> str:
    """Return what values there are, numbers by their size."""
    there = {each for each in known if each is not None}
    if there and all(isinstance(each, int | float) for each in there):
        shown = [f"{each:g}" for each in sorted(there)]
        more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
        return f"Known: {', '.join(shown[:MOST_NAMED])}{more}."
    return nearest(str(value), {str(each) for each in there})


def _value(spec: RunSpec, column: str) -> Any:
    value = flat(spec).get(column)
    return tuple(value) if isinstance(value, list) else value


def one_axis_at_a_time(sweep: Sweep) -> Iterator[RunSpec]:
    """Yield specs of a sweep that differ in one axis at a time from the first of their grid."""
    for part in sweep.grids():
        first = next(part.cells())[0]
        yield first
        for axis, values in part.axes.items():
            if axis != "seed":
                yield from (with_value(first, axis, value) for value in values[1:])


def _check_measure(measure: Measure) -> None:
    """Refuse a measure that reads a column which it does not declare, tried on no runs at all."""
    import polars as pl

    from petridish.store.schema import FIXED, SEED, is_kept, is_measured, kind_of

    known = {**FIXED, **SEED}
    schema = {
        name: known[name] if name in known else kind_of(name)
        for name in measure.columns
        if name in known or is_kept(name) or is_measured(name)
    }
    if len(schema) < len(set(measure.columns)):
        return  # of fields of the spec the type is not known
    try:
        measure.known(pl.DataFrame(schema=schema))
    except pl.exceptions.ColumnNotFoundError as error:
        name = str(error).split()[0].strip("\"'`")
        raise UserError(
            f"The measure «{measure.label}» reads the column {name!r} and declares "
            f"{', '.join(measure.columns) or 'none'}. Name it in `columns`."
        ) from error
    except Exception:  # no runs at all may be too few for a measure of the user's own
        return


def _varied(declared: Iterable[Sweep]) -> set[str]:
    """Return the axes of which a declared sweep has two values or more."""
    grids = (grid for sweep in declared for grid in sweep.grids())
    return {axis for grid in grids for axis, values in grid.axes.items() if len(values) > 1}


def _check_apart(rule: Judges, sweep: Sweep, known: Collection[str] | None) -> None:
    """Refuse a rule that takes runs of different settings for seeds of one.

    Of axes that are not among the `known` the verdict speaks, if these are given.
    """
    only: Mapping[str, Any] = rule.layout.only if isinstance(rule, Rule) else {}
    needed = set(rule.measure.columns) - {CELL} if isinstance(rule, Rule) else set()
    named = rule.over if isinstance(rule, Rule) else _columns_named(rule)
    columns = [name for name in named if name != ARM]
    if not columns and not isinstance(rule, Rule):
        return  # of a rule of one's own nothing is known
    arms = rule.arms if isinstance(rule, Rule) and isinstance(sweep, Arms) else ()
    parts = [sweep[name] for name in arms] if isinstance(sweep, Arms) and arms else [sweep]
    for part in (grid for each in parts for grid in each.grids() if not isinstance(grid, Arms)):
        chosen = {
            axis: [v for v in values if _fits(with_value(part.base, axis, v), only, axis)]
            for axis, values in part.axes.items()
        }
        first = part.base
        for axis, values in chosen.items():
            first = with_value(first, axis, values[0]) if values else first
        if not all(
            _fits(first, {name: values}, name) for name, values in only.items() if name != ARM
        ):
            continue
        for axis, values in chosen.items():
            if known is not None and axis not in known:
                continue
            specs = [
                with_value(first, axis, value) for value in values if axis not in ("seed", RESTART)
            ]
            specs = [s for s in specs if needed <= columns_of_run(s)]
            cells = {cell_text(spec) for spec in specs}
            told = {tuple(repr(_value(spec, name)) for name in columns) for spec in specs}
            if len(cells) > len(told):
                raise UserError(
                    f"The sweep has {len(values)} values of {axis}, and its rule counts runs of "
                    f"all of them as seeds. {_cure(rule, axis)}"
                )


def _cure(rule: Judges, axis: str) -> str:
    """Return what to do about an axis that a rule does not speak of."""
    if isinstance(rule, Rule):
        return (
            f"Lay them apart by the layout, take the best by best_over=({axis!r},), or choose one "
            f"by only={{{axis!r}: …}}."
        )
    ways = [
        way
        for name, way in (
            ("within", f"lay them apart by within=({axis!r},)"),
            ("best_over", f"take the best by best_over=({axis!r},)"),
        )
        if hasattr(rule, name)
    ]
    text = ", ".join([*ways, f"or choose one by --set {axis}=…"] if ways else [])
    return f"{text[:1].upper()}{text[1:]}." if text else f"Choose one by --set {axis}=…."


def _fits(spec: RunSpec, only: Any, axis: str) -> bool:
    """Return whether a spec has the values asked for, as far as an axis has a say in them."""
    for name, values in only.items():
        related = name == axis or name.startswith(f"{axis}.") or axis.startswith(f"{name}.")
        if related and _value(spec, name) not in as_tuple(values):
            return False
    return True


def _check_assumed(rule: Judges, sweep: Sweep) -> None:
    # A rule of its own says by a field `along` what it compares, as `NeverDecreases` does.
    own = getattr(rule, "along", None)
    compares = rule.layout.compares if isinstance(rule, Rule) else (own,)
    for part in sweep.grids():
        assumed = () if part.allocate is None else part.allocate.assumes
        for axis in assumed:
            if axis in compares:
                raise UserError(
                    f"The rule compares runs along {axis}, and these are chosen by "
                    f"{describe(part.allocate)}, which takes success to rise along it. Compare "
                    "along another axis, or declare the sweep without allocate."
                )


def _check_arms(rule: Rule, sweep: Sweep) -> None:
    arms = list(sweep.arms) if isinstance(sweep, Arms) else []
    speaks = rule.arms or "arm" in (*rule.layout.conditions, *rule.layout.only)
    if speaks and not arms:
        raise UserError(
            "The rule speaks of arms, and the sweep has none. Declare it as Arms({name: Sweep(…)})."
        )
    for name in rule.arms:
        if name not in arms:
            raise UserError(f"There is no arm called {name!r}. {nearest(name, arms)}")


def columns_of_run(spec: RunSpec) -> set[str]:
    """Return the columns of a table in which a run of this spec has something to say."""
    evaluation = spec.evaluation
    found = {*ENDS, *flat(spec)}
    if not has_classes(spec):
        found.discard("test_error")  # a column of all tables, NaN of real targets
    # The test error has a column of its own among the ends.
    found |= {f"final.{metric.column}" for metric in spec.metrics if metric.column not in ENDS}
    found |= {"drawn.attempts"} if spec.data.accept else set()
    found |= {f"reached.{threshold.column}" for threshold in evaluation.reached}
    if evaluation.curves:
        names = ["step", "train_loss", *(metric.column for metric in spec.curve_metrics)]
        names += [gauge.label for gauge in evaluation.gauges]
        found |= {f"curve.{name}" for name in names}
    return found | ({"weights", "weights.of"} if evaluation.weights else set())
