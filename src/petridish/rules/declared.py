"""What a claim speaks of must be declared: its arms, its columns, its restarts.

And it must not be what the choice of the runs takes for granted.
"""

from __future__ import annotations

from petridish.choices import describe
from petridish.errors import UserError, nearest
from petridish.rules.claims import Judges, Reads, Simulated, columns_of
from petridish.rules.layouts import RESTART
from petridish.rules.rule import Rule
from petridish.sweeps import Arms, Sweep
from petridish.training import RunSpec, flat

ENDS = (
    *("outcome", "solved_at", "fitted_at", "steps", "test_error", "train_loss", "seconds"),
    *("restart", "seed"),
)


def check_rule(rule: Judges, sweep: Sweep) -> None:
    """Refuse a rule that speaks of an arm or a column that the runs of a sweep will not have.

    Also one that would count the restarts of a seed as seeds, and one that compares runs along an
    axis along which their allocation takes success to rise. Nothing is trained for it: the specs
    say which columns their runs have.
    """
    if isinstance(rule, Simulated):
        return  # no run takes part
    _check_assumed(rule, sweep)
    if isinstance(rule, Rule):
        _check_arms(rule, sweep)
    missing = set(columns_of(rule))
    known: set[str] = set()
    for spec, _ in sweep.cells() if missing else ():
        found = columns_of_run(spec)
        missing, known = missing - found, known | found
        if not missing:
            break
    if missing and isinstance(rule, Rule):
        name = min(missing)
        raise UserError(
            f"There is no column {name!r} among the runs of this sweep, which its rule reads. "
            f"{nearest(name, known)}"
        )
    over = rule.over if isinstance(rule, Reads) else ()
    restarts = max(len(part.axes.get(RESTART, (0,))) for part in sweep.grids())
    if restarts > 1 and RESTART not in over:
        raise UserError(
            f"The sweep has {restarts} restarts per seed, and its rule counts each as a seed. "
            'Judge BestOf(…, over="restart"), or choose one by --set restart=0.'
        )


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
    # The test error has a column of its own among the ends.
    found |= {f"final.{metric.column}" for metric in spec.metrics if metric.column not in ENDS}
    found |= {"drawn.attempts"} if spec.data.accept else set()
    found |= {f"reached.{threshold.column}" for threshold in evaluation.reached}
    if evaluation.curves:
        names = ["step", "train_loss", *(metric.column for metric in spec.curve_metrics)]
        names += [gauge.label for gauge in evaluation.gauges]
        found |= {f"curve.{name}" for name in names}
    return found | ({"weights", "weights.of"} if evaluation.weights else set())
