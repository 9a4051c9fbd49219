"""One self-contained HTML page: claims, verdicts, figures, and how to run it all again."""

from __future__ import annotations

import html
import io
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from petridish import __version__
from petridish.analysis import Verdict
from petridish.experiment import Experiment
from petridish.sweeps.sweep import Sweep

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

_STYLE = """
:root { color-scheme: light; --ink: #222; --soft: #666; --line: #ddd; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); margin: 0 auto; padding: 1.5rem;
  max-width: 68rem; background: #fff; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; } h2 { margin: 2.5rem 0 .2rem; font-size: 1.3rem; }
.soft { color: var(--soft); font-size: .9rem; margin: 0 0 1rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: .5rem .7rem .5rem 0;
  border-bottom: 1px solid var(--line); font-size: .92rem; }
th { color: var(--soft); font-weight: 600; } td.claim { min-width: 16rem; }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
.verdict { display: inline-block; padding: .1rem .6rem; border-radius: 1rem; font-size: .85rem;
  font-weight: 600; white-space: nowrap; }
.supported { background: #d7ebf7; color: #004d7a; } .contradicted { background: #fde3d3;
  color: #8a3b00; } .undecided { background: #eee; color: #444; }
figure { margin: 1.2rem 0; overflow-x: auto; }
figure svg { width: 100%; min-width: 40rem; max-width: 62rem; height: auto; }
code, pre { font: .88rem/1.5 ui-monospace, monospace; background: #f6f6f6; border-radius: 4px; }
code { padding: .1rem .3rem; } pre { padding: .8rem; overflow-x: auto; }
"""


@dataclass(frozen=True)
class Chapter:
    """One experiment at one scale, with its runs."""

    experiment: Experiment
    scale: str
    sweep: Sweep
    runs: pl.DataFrame
    verdicts: list[Verdict]


def report_page(chapters: Iterable[Chapter], *, store: str) -> str:
    """Write the page; nothing in it is fetched from anywhere."""
    body = "".join(_chapter(chapter, store) for chapter in chapters)
    made_with = f"petridish {__version__}, Python {platform.python_version()}"
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>petridish report</title><style>{_STYLE}</style></head><body>"
        f"<h1>petridish report</h1><p class='soft'>{made_with}; runs from the store "
        f"<code>{html.escape(store)}</code></p>{body}</body></html>"
    )


def _chapter(chapter: Chapter, store: str) -> str:
    experiment, runs = chapter.experiment, chapter.runs
    solved = int((runs["outcome"] == "SOLVED").sum())
    diverged = int((runs["outcome"] == "DIVERGED").sum())
    seeds = runs["seed"].to_list()
    name = str(experiment.user_file or experiment.id)
    facts = (
        f"{experiment.source}; scale {chapter.scale}: {len(runs)} of {len(chapter.sweep)} runs, "
        f"{solved} solved, {diverged} diverged; seeds {min(seeds)} to {max(seeds)}; "
        f"{runs['steps'].sum():,} model-steps in {runs['seconds'].sum():,.0f} core-seconds"
    )
    title = f"{experiment.id}, {chapter.scale}: {experiment.title}"
    figures = "".join(
        f"<figure>{_svg(draw(runs, title))}</figure>"
        for draw in experiment.drawings(chapter.sweep).values()
    )
    scale = "" if experiment.user_file else f" --scale {chapter.scale}"
    again = "\n".join(
        f"petridish {verb} {name}{scale} --store {store}" for verb in ("run", "verdicts", "figure")
    )
    makers = runs.select("version", "commit", "clean", "engine").unique().iter_rows(named=True)
    made = ", ".join(sorted(_maker(**maker) for maker in makers))
    return (
        f"<h2>{html.escape(experiment.id)}: {html.escape(experiment.title)}</h2>"
        f"<p class='soft'>{html.escape(facts)}</p>{_verdicts(chapter.verdicts)}{figures}"
        f"<p>To run it again:</p><pre>{html.escape(again)}</pre>"
        f"<p class='soft'>Made with petridish {html.escape(made)}.</p>"
    )


def _maker(version: str, commit: str | None, clean: bool | None, engine: str) -> str:  # noqa: FBT001 - a row's own columns
    changed = " with changes" if clean is False else ""
    where = f"commit {commit[:10]}{changed}" if commit else "a release"
    return f"{version} ({where}), engine {engine}"


def _verdicts(verdicts: list[Verdict]) -> str:
    if not verdicts:
        return "<p>No claims are declared.</p>"
    rows = "".join(_verdict(verdict) for verdict in verdicts)
    return (
        "<div class='scroll'><table><thead><tr><th>Claim</th><th>Verdict</th><th>Estimate</th>"
        f"<th>n</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _verdict(verdict: Verdict) -> str:
    finding, claim = verdict.finding, verdict.claim
    kind = finding.judgement.value
    return (
        f"<tr><td class='claim'>({html.escape(claim.name)}) {html.escape(claim.text)} "
        f"<span class='soft'>[{html.escape(claim.source)}]<br>{html.escape(finding.remark)}</span>"
        "</td>"
        f"<td><span class='verdict {kind}'>{kind}</span></td>"
        f"<td class='number'>{finding.estimate:.3g} [{finding.low:.3g}, {finding.high:.3g}]<br>"
        f"<span class='soft'>{html.escape(finding.quantity)}</span></td>"
        f"<td class='number'>{finding.n}<br><span class='soft'>level {verdict.level:.3g}</span>"
        "</td></tr>"
    )


def _svg(figure: Figure) -> str:
    from petridish.figures.style import house_style

    buffer = io.StringIO()
    with house_style():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
