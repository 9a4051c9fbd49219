"""`petridish frontier`: trade data, width, steps and restarts for each other."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from petridish.cli.common import (
    DEFAULT_STORE,
    Id,
    Json,
    Scale,
    Settings,
    StoreDir,
    chosen_runs,
    exit_code,
    find_sweep,
    print_json,
    read_runs,
)
from petridish.errors import UserError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from petridish.rules.mixtures import Mixture


def frontier(
    name: Id,
    scale: Scale = None,
    store: StoreDir = DEFAULT_STORE,
    settings: Settings = None,
    target: Annotated[float, typer.Option(help="The success probability to reach.")] = 0.9,
    have: Annotated[
        str | None,
        typer.Option(metavar="m=…,r=…", help="Upper limits on m, r, steps, restarts, compute."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also mixtures that another beats in data and compute.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="A folder for the figure.")] = None,
    json: Json = False,
) -> int:
    """Print the non-dominated mixtures of data, width and steps."""
    from petridish.rules.mixtures import affordable, mixtures, no_mixture

    if not 0 < target < 1:
        raise UserError(f"--target {target:g} was given. Give a probability between 0 and 1.")
    limits = _limits(have)
    experiment, scale, sweep = find_sweep(name, scale, settings)
    reading = read_runs(store)
    runs = chosen_runs(sweep, reading.table, name, store)
    found = mixtures(runs, target=target)
    within = affordable(found, limits)
    if out is not None and found:
        from petridish.figures.mixture_front import mixture_front
        from petridish.figures.style import save

        title = f"{experiment.id}, {scale}: what reaches success {target:g}"
        figure = mixture_front(found, title, target=target)
        for file in save(figure, out, f"{experiment.id}-{scale}-mixtures"):
            typer.echo(str(file), err=json)
    if json:
        print_json(
            {
                "id": experiment.id,
                "scale": scale,
                "target": target,
                "have": {name: most for name, most in limits.items() if math.isfinite(most)},
                "cheapest": [option.as_json() for option in _cheapest(within)],
                "mixtures": [mixture.as_json() for mixture in found],
            }
        )
        return exit_code(reading.problems)
    if have is not None:
        tasks = dict.fromkeys(runs["task"].sort())
        for task in tasks:
            here = [[o for o in options if o.task == task] for options in (found, within)]
            typer.echo(_answer(task, here[0], here[1], limits, target))
        return exit_code(reading.problems)
    shown = [mixture for mixture in found if everything or mixture.best]
    typer.echo(_table(shown, target) if shown else no_mixture(runs))
    hidden = len(found) - len(shown)
    if hidden:
        typer.echo(f"Not shown, as others need no more data and compute: {hidden} (--all).")
    return exit_code(reading.problems)


def _limits(have: str | None) -> dict[str, float]:
    """Read `m=600,r=100`."""
    from petridish.rules.mixtures import LIMITS

    limits: dict[str, float] = {}
    for part in (have or "").split(",") if have is not None else ():
        name, equals, text = part.partition("=")
        name = {"T": "steps", "width": "r"}.get(name.strip(), name.strip())
        if name not in LIMITS:
            raise UserError(
                f"--have: there is no resource called {name!r}. {nearest(name, LIMITS)}"
            )
        if name in limits:
            raise UserError(f"--have gives {name} twice. Give it once.")
        try:
            limits[name] = float(text)
        except ValueError:
            limits[name] = math.nan
        if not equals or not limits[name] > 0:
            raise UserError(f"--have {part.strip()} gives no positive number. Write {name}=600.")
    return limits


def _limit(value: float) -> str:
    """Write a limit as it was given."""
    return "∞" if math.isinf(value) else f"{value:,.10g}"


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:,.0f}"


def _cheapest(within: Sequence[Mixture]) -> list[Mixture]:
    """Return the cheapest mixture of each task; they come in order of their compute."""
    first: dict[str, Mixture] = {}
    for option in within:
        first.setdefault(option.task, option)
    return list(first.values())


def _answer(
    task: str,
    found: Sequence[Mixture],
    within: Sequence[Mixture],
    limits: dict[str, float],
    target: float,
) -> str:
    """Return a sentence on what is cheapest within the limits, or that nothing is."""
    from petridish.rules.mixtures import FEWEST, LIMITS, affordable

    wanted = " and ".join(f"{name} ≤ {_limit(most)}" for name, most in limits.items())
    if within:
        best = within[0]
        low, high = best.compute_interval
        bound = (
            ""
            if math.isnan(best.bound)
            else (f"; Proposition 3 excludes less than {best.bound:.1e}")
        )
        runs = f"{best.restarts:.0f} runs" if best.restarts > 1 else "1 run"
        return (
            f"{task}: with {wanted}, the cheapest measured way to success {target:g}:\n"
            f"    m = {_number(best.m)}, width r = {_number(best.width)}, {best.init}, "
            f"{_number(best.steps)} steps, {runs} "
            f"[{_number(best.restarts_low)} to {_number(best.restarts_high)}]\n"
            f"    one run succeeds with probability {best.success:.2f} "
            f"[{best.low:.2f}, {best.high:.2f}], n = {best.runs}\n"
            f"    compute width × steps × restarts = {best.compute:.2e} [{low:.1e}, {high:.1e}]"
            f"{bound}"
        )
    lines = [f"{task}: with {wanted}, nothing that was measured reaches success {target:g}"]
    lines[0] += f" (by cells of which {FEWEST} runs succeeded or more)."
    for name in limits:
        others = {key: most for key, most in limits.items() if key != name}
        relaxed = [getattr(option, LIMITS[name]) for option in affordable(found, others)]
        if relaxed:
            lines.append(f"    {name} = {_number(min(relaxed))} would do, the rest as it is.")
    return "\n".join(lines)


def _table(options: Sequence[Mixture], target: float) -> str:
    lines = [f"Mixtures that reach success {target:g}"]
    for task in dict.fromkeys(option.task for option in options):
        lines.append(task)
        lines.append(
            f"{'m':>10} {'r':>7} {'init':>10} {'steps':>8}  {'restarts':<12} "
            f"{'success of a run, n':<23} {'compute':<24} {'÷ Prop. 3':>9}"
        )
        lines += [_line(option) for option in options if option.task == task]
    return "\n".join(lines)


def _line(option: Mixture) -> str:
    low, high = option.compute_interval
    luck = f"{option.restarts:.0f} [{_number(option.restarts_low)}, "
    luck += f"{_number(option.restarts_high)}]"
    success = f"{option.success:.2f} [{option.low:.2f}, {option.high:.2f}] {option.runs:>4}"
    compute = f"{option.compute:.1e} [{low:.1e}, {high:.1e}]"
    over = f"{option.compute / option.bound:.1e}" if option.bound > 0 else "–"
    return (
        f"{_number(option.m):>10} {_number(option.width):>7} {option.init:>10} "
        f"{_number(option.steps):>8}  {luck:<12} {success:<23} {compute:<24} {over:>9}"
    )
