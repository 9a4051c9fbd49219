"""The entry point: commands, and what happens when one goes wrong."""

from __future__ import annotations

import sys
import warnings
from io import TextIOWrapper
from typing import TextIO

import typer
from typer.exceptions import Abort, TyperException

from petridish import __version__
from petridish.cli import store, tabular_bench, tabular_compare, tabular_fetch
from petridish.cli.bench import bench
from petridish.cli.demo import demo
from petridish.cli.figure import figure
from petridish.cli.frontier import frontier
from petridish.cli.list import list_experiments
from petridish.cli.plan import plan
from petridish.cli.record import record
from petridish.cli.report import report
from petridish.cli.run import run
from petridish.cli.verdicts import verdicts
from petridish.errors import UserError

INTERRUPTED = 130

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: drawing it with Rich would take a third of the time
    help="A laboratory for the science of deep learning on small exact tasks.",
)


@app.callback(invoke_without_command=True)
def _main(
    version: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


app.command()(demo)
app.command("list")(list_experiments)
for function in (run, plan, verdicts, figure, frontier, report, record, bench):
    app.command()(function)
app.add_typer(store.app, name="store")
tabular_compare.app.command()(tabular_bench.bench)
tabular_compare.app.command()(tabular_fetch.fetch)
app.add_typer(tabular_compare.app, name="tabular")


def main() -> None:
    """Run the command line: 0 done, 2 the user's mistake in one line, 130 interrupted."""
    warnings.showwarning = _warn
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a letter that the terminal lacks ends no command
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Carry out one command and give its exit code."""
    try:
        code = app(arguments, prog_name="petridish", standalone_mode=False)
    except UserError as error:
        return _fail(str(error))
    except TyperException as error:  # an unknown option, a missing argument
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "petridish"
        if not error.format_message():  # a group without a command has printed its help
            return 2
        return _fail(f"{error.format_message().rstrip('.')}. Try `{where} --help`.")
    except MemoryError:
        return _fail("There is not enough memory for this. Give smaller samples, nets or sweeps.")
    except (KeyboardInterrupt, Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:  # what Typer makes of Ctrl-C
        kept = arguments[:2] != ["tabular", "compare"]  # which has no store to go on from
        again = "go on" if kept else "begin anew"
        print(f"petridish: interrupted; give the same command again to {again}.", file=sys.stderr)
    return code if isinstance(code, int) else 0


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning as one line: where in the code it arose says nothing to a user."""
    print(f"petridish: {' '.join(str(message).split())}", file=sys.stderr)


def _fail(message: str) -> int:
    print(f"petridish: {' '.join(message.split())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
