"""One self-contained HTML page: claims, verdicts, figures, and how to run it all again."""

from __future__ import annotations

import base64
import html
import io
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from petridish import __version__
from petridish.errors import UserError
from petridish.experiment import Draw, Experiment
from petridish.rules.claims import Verdict
from petridish.sweeps.sweep import Sweep

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

LARGEST_SVG = 500_000  # characters; a figure of more, with hundreds of curves, becomes a PNG

_STYLE = """
:root { color-scheme: light; --ink: #1d1d1f; --soft: #6b6b70; --line: #e2e2e5; --paper: #fbfaf7; }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, -apple-system, 'Segoe UI', sans-serif; color: var(--ink);
  margin: 0 auto; padding: 2rem 1.5rem 4rem; max-width: 70rem; background: #fff; }
h1 { font-size: 1.9rem; letter-spacing: -.01em; margin: 0 0 .3rem; }
h2 { margin: 3.5rem 0 .2rem; padding-top: 1.2rem; font-size: 1.35rem;
  border-top: 2px solid var(--ink); }
a { color: #0060a0; text-decoration: none; } a:hover { text-decoration: underline; }
p { max-width: 46rem; } .soft { color: var(--soft); font-size: .88rem; margin: .2rem 0 1rem; }
.number { font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: left; vertical-align: baseline; padding: .45rem .9rem .45rem 0;
  border-bottom: 1px solid var(--line); font-size: .92rem; }
th { color: var(--soft); font-weight: 600; } td.number { white-space: nowrap; }
.verdict { display: inline-block; padding: .05rem .6rem; border-radius: 1rem; font-size: .8rem;
  font-weight: 650; letter-spacing: .01em; white-space: nowrap; }
.supported { background: #d5eaf7; color: #004d7a; } .contradicted { background: #fde0cf;
  color: #8a3b00; } .undecided, .check { background: #ececee; color: #444; }
.claim { border: 1px solid var(--line); border-radius: 10px; margin: 1rem 0; overflow: hidden; }
.claim h3 { font-size: 1rem; margin: 0; padding: .8rem 1rem; font-weight: 600; }
.sides { display: grid; grid-template-columns: 2fr 3fr; border-top: 1px solid var(--line); }
.sides > div { padding: .7rem 1rem .8rem; } .sides > div:first-child { background: var(--paper);
  border-right: 1px solid var(--line); }
.sides h4 { margin: 0 0 .2rem; font-size: .74rem; text-transform: uppercase; letter-spacing: .06em;
  color: var(--soft); } .sides p { margin: 0 0 .3rem; font-size: .92rem; }
.estimate { font-size: 1.05rem; font-weight: 600; }
figure { margin: 1.6rem 0; overflow-x: auto; }
figure svg, figure img { max-width: 100%; min-width: min(100%, 40rem); height: auto;
  display: block; }
code, pre { font: .85rem/1.5 ui-monospace, 'SF Mono', Menlo, monospace; background: #f4f4f5;
  border-radius: 6px; } code { padding: .1rem .3rem; }
pre { padding: .8rem 1rem; overflow-x: auto; }
@media (max-width: 44rem) { body { padding: 1.2rem 1rem 3rem; } h1 { font-size: 1.5rem; }
  figure svg, figure img { max-width: none; min-width: 40rem; }
  .overview thead { display: none; } .overview td { display: block; border: 0; padding: .1rem 0; }
  .overview tr { display: block; border-bottom: 1px solid var(--line); padding: .6rem 0; }
  .sides { grid-template-columns: 1fr; } .sides > div:first-child { border-right: 0;
  border-bottom: 1px solid var(--line); } }
@media print { figure svg, figure img { min-width: 0; } h2 { break-before: page; } }
"""


@dataclass(frozen=True)
class Chapter:
    """One experiment at one scale, with its runs."""

    experiment: Experiment
    scale: str
    sweep: Sweep
    runs: pl.DataFrame
    verdicts: list[Verdict]

    @property
    def made(self) -> str:
        """Say how much of the sweep the verdicts rest on."""
        part = "" if len(self.runs) == len(self.sweep) else f" of {len(self.sweep):,}"
        return f"{len(self.runs):,}{part} runs"

    @property
    def anchor(self) -> str:
        """Where the page's table of verdicts links to."""
        return f"{self.experiment.id}-{self.scale}"


def report_page(chapters: Sequence[Chapter], *, store: str) -> str:
    """Write the page; nothing in it is fetched from anywhere."""
    body = _overview(chapters) + "".join(_chapter(chapter, store) for chapter in chapters)
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "polars", "torch"))
    made_with = f"petridish {__version__}, Python {platform.python_version()}, {libraries}"
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>petridish report</title><style>{_STYLE}</style></head><body>"
        f"<h1>petridish report</h1><p class='soft'>Written with {made_with}, from the runs in "
        f"<code>{html.escape(store)}</code></p>{body}</body></html>"
    )


def _overview(chapters: Sequence[Chapter]) -> str:
    """Give every verdict in one table."""
    rows = "".join(
        f"<tr><td><a href='#{html.escape(chapter.anchor)}'>{html.escape(chapter.experiment.id)}</a>"
        f" <span class='soft'>{html.escape(chapter.scale)}, {chapter.made}</span></td>"
        f"<td>{html.escape(verdict.claim.text)}</td><td>{verdict.claim.kind}</td>"
        f"<td>{_badge(verdict)}</td>"
        f"<td class='number'>{verdict.finding.numbers()}</td></tr>"
        for chapter in chapters
        for verdict in chapter.verdicts
    )
    if not rows:
        return ""
    return (
        "<p>A verdict is <em>supported</em>, <em>contradicted</em> (the runs speak significantly "
        "against the claim) or <em>undecided</em> (they leave it open). A claim is the paper's, or "
        "ours where it says more, less or something else; a <em>check</em> is a statement that no "
        "run could contradict, and never counts as supported. The claims of an experiment share "
        "its level.</p><div class='scroll'><table class='overview'><thead><tr>"
        "<th>Experiment</th><th>Claim</th><th>Kind</th><th>Verdict</th><th>Estimate</th></tr>"
        "</thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _chapter(chapter: Chapter, store: str) -> str:
    experiment, runs = chapter.experiment, chapter.runs
    solved = int((runs["outcome"] == "SOLVED").sum())
    diverged = int((runs["outcome"] == "DIVERGED").sum())
    seeds = runs["seed"].to_list()
    name = str(experiment.user_file or experiment.id)
    facts = (
        f"{experiment.source}. Scale {chapter.scale}: {len(runs):,} of {len(chapter.sweep):,} "
        f"runs, {solved:,} solved, {diverged:,} diverged; seeds {min(seeds)} to {max(seeds)}; "
        f"{runs['steps'].sum():,} model-steps in {runs['seconds'].sum():,.0f} core-seconds."
    )
    title = f"{experiment.id}, {chapter.scale}: {experiment.title}"
    figures = "".join(
        _figure(draw, runs, title, f"{experiment.id}: {label}")
        for label, draw in experiment.drawings(chapter.sweep).items()
    )
    tables = "".join(_table(label, tabulate(runs)) for label, tabulate in experiment.tables.items())
    scale = "" if experiment.user_file else f" --scale {chapter.scale}"
    again = "\n".join(
        f"petridish {verb} {name}{scale} --store {store}" for verb in ("run", "verdicts", "figure")
    )
    makers = runs.select("version", "commit", "clean", "engine").unique().iter_rows(named=True)
    made = "; ".join(sorted(_maker(**maker) for maker in makers))
    claims = "".join(_claim(verdict) for verdict in chapter.verdicts)
    return (
        f"<h2 id='{html.escape(chapter.anchor)}'>{html.escape(experiment.id)}: "
        f"{html.escape(experiment.title)}</h2><p class='soft'>{html.escape(facts)}</p>"
        f"{claims or '<p>No claims are declared.</p>'}{figures}{tables}"
        f"<p>To run it again:</p><pre>{html.escape(again)}</pre>"
        f"<p class='soft'>Runs made with petridish {html.escape(made)}.</p>"
    )


def _maker(version: str, commit: str | None, clean: bool | None, engine: str) -> str:  # noqa: FBT001 - a row's own columns
    changed = " with changes" if clean is False else ""
    where = f"commit {commit[:10]}{changed}" if commit else "a release"
    return f"{version} ({where}), engine {engine}"


def _badge(verdict: Verdict) -> str:
    return f"<span class='verdict {verdict.word.partition(' ')[0]}'>{verdict.word}</span>"


def _claim(verdict: Verdict) -> str:
    """Set the paper's statement beside what was found."""
    finding, claim = verdict.finding, verdict.claim
    paper = html.escape(claim.paper) if claim.paper else "–"
    remark = f"<p class='soft'>{html.escape(finding.remark)}</p>" if finding.remark else ""
    return (
        f"<div class='claim'><h3>({html.escape(claim.name)}) {html.escape(claim.text)}</h3>"
        f"<div class='sides'><div><h4>The paper</h4><p>{paper}</p>"
        f"<p class='soft'>{html.escape(claim.source)}; kind: {claim.kind}</p></div>"
        f"<div><h4>Here</h4><p>{_badge(verdict)} <span class='estimate number'>"
        f"{finding.numbers()}</span></p><p>{html.escape(finding.quantity)}; n = {finding.n:,}, "
        f"level {verdict.level:.3g}</p>{remark}</div></div></div>"
    )


def _figure(draw: Draw, runs: pl.DataFrame, title: str, label: str) -> str:
    try:
        return f"<figure>{_picture(draw(runs, title), label)}</figure>"
    except UserError as missing:  # such as curves that were not kept
        return f"<p class='soft'>{html.escape(label)} is not drawn. {html.escape(str(missing))}</p>"


def _table(label: str, table: pl.DataFrame) -> str:
    """Put a small table into the page."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.columns)
    body = "".join(
        "<tr>" + "".join(f"<td class='number'>{_cell(value)}</td>" for value in row) + "</tr>"
        for row in table.iter_rows()
    )
    return (
        f"<h4>{html.escape(label)}</h4><div class='scroll'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else html.escape(str(value))


def _picture(figure: Figure, label: str) -> str:
    """Put a figure into the page, as SVG where that is small enough."""
    from petridish.figures.style import house_style

    text, pixels = io.StringIO(), io.BytesIO()
    with house_style():
        figure.savefig(text, format="svg", metadata={"Date": None})
        if len(text.getvalue()) > LARGEST_SVG:
            figure.savefig(pixels, format="png", dpi=160, metadata={"Software": "petridish"})
    if pixels.getvalue():
        encoded = base64.b64encode(pixels.getvalue()).decode()
        return f"<img alt='{html.escape(label)}' src='data:image/png;base64,{encoded}'>"
    drawn = text.getvalue()
    return drawn[drawn.index("<svg") :]
