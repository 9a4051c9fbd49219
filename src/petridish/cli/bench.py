"""`petridish bench`: measure this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from petridish.cli.common import Json, print_json
from petridish.errors import UserError, nearest

KINDS = ("all", "attention", "explorer")


def bench(
    what: Annotated[
        str,
        typer.Argument(
            metavar="[attention|explorer]",
            help="Transformers, or the explorer's page on made stores; else everything but these.",
        ),
    ] = "all",
    json: Json = False,
    quick: Annotated[
        bool, typer.Option(help="Shorter measurements, with rougher numbers.")
    ] = False,
    device: Annotated[
        str, typer.Option("--device", help="Measure an accelerator: cuda, cuda:1, mps or auto.")
    ] = "cpu",
) -> None:
    """Measure engines, runner and store against naive PyTorch."""
    if what not in KINDS:
        raise UserError(f"There is nothing to measure called {what!r}. {nearest(what, KINDS)}")
    if what != "all" and device != "cpu":
        raise UserError(
            f"--device {device} was given, and `bench {what}` measures the CPU. Leave one out."
        )
    if what == "attention":
        from petridish.bench.attention_steps import attention_table, measure_attention
        from petridish.bench.cls_steps import cls_table, measure_cls

        rounds, turn = (2, 0.2) if quick else (7, 1.0)
        causal = measure_attention(rounds=rounds, turn=turn)
        block = measure_cls(rounds=rounds, turn=turn)
        tables = f"{attention_table(causal)}\n\n{cls_table(block)}"
        _show({"attention": causal, "cls": block}, tables, json=json)
    elif what == "explorer":
        from petridish.bench.explorer_answers import SIZES, explorer_table, measure_explorer

        made = measure_explorer(SIZES[:1] if quick else SIZES)
        _show({"explorer": made}, explorer_table(made), json=json)
    elif device == "cpu":
        from petridish.bench import measure, table

        found = measure(quick=quick)
        _show(found, table(found), json=json)
    else:
        from petridish.bench.on_device import device_table, measure_device
        from petridish.training.devices import accelerator_called

        found = measure_device(accelerator_called(device), quick=quick)
        _show(found, device_table(found), json=json)


def _show(found: object, text: str, *, json: bool) -> None:
    if json:
        print_json(found)
    else:
        typer.echo(text)
