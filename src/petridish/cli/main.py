"""The entry point: commands, and what happens when one goes wrong."""

from __future__ import annotations

import _thread
import sys
import threading
import traceback
import warnings
from io import TextIOWrapper
from time import perf_counter
from typing import TextIO

import typer
from typer.exceptions import Abort, TyperException

from petridish import __version__
from petridish.cli import store, tabular_bench, tabular_compare, tabular_fetch
from petridish.cli.bench import bench
from petridish.cli.check import check
from petridish.cli.common import OnceCommand
from petridish.cli.demo import demo
from petridish.cli.explore import explore
from petridish.cli.figure import figure
from petridish.cli.frontier import frontier
from petridish.cli.list import list_experiments
from petridish.cli.new import new
from petridish.cli.plan import plan
from petridish.cli.record import record
from petridish.cli.report import report
from petridish.cli.run import run
from petridish.cli.scoreboard import scoreboard
from petridish.cli.verdicts import verdicts
from petridish.errors import UserError

INTERRUPTED = 130
TRACEBACK = "--traceback"
LONGEST = 1000  # characters of a message

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: drawing it with Rich would take a third of the time
    help="A laboratory for the science of deep learning on small exact tasks.",
)


@app.callback(invoke_without_command=True)
def _main(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    traceback: bool = typer.Option(
        False, TRACEBACK, help="Print a traceback after an error; may follow any command."
    ),
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


app.command(cls=OnceCommand)(demo)
app.command("list", cls=OnceCommand)(list_experiments)
COMMANDS = (
    *(new, check, run, plan, verdicts, scoreboard, figure, frontier, report, explore, record),
    bench,
)
for function in COMMANDS:
    app.command(cls=OnceCommand)(function)
app.add_typer(store.app, name="store")
tabular_compare.app.command(cls=OnceCommand)(tabular_bench.bench)
tabular_compare.app.command(cls=OnceCommand)(tabular_fetch.fetch)
app.add_typer(tabular_compare.app, name="tabular")


def main() -> None:
    """Run the command line: 0 done, 2 the user's mistake in one line, 130 interrupted."""
    warnings.showwarning = _warn
    sys.unraisablehook = _interrupt_again
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a letter that the terminal lacks ends no command
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Carry out one command and return its exit code."""
    whole = TRACEBACK in arguments
    arguments = [argument for argument in arguments if argument != TRACEBACK]
    try:
        return _carry_out(arguments)
    except UserError as error:
        if whole:
            traceback.print_exception(error)
        return _fail(str(error))
    except MemoryError:
        return _fail("There is not enough memory for this. Give smaller samples, nets or sweeps.")
    except Exception as error:
        if whole:
            traceback.print_exception(error)
        from petridish.choices import fault_sentence, own_frame

        if own := own_frame(error):
            return _fail(
                f"{fault_sentence(error, *own)} Add {TRACEBACK} to see how it was reached."
            )
        frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
        _fail(
            "A fault of petridish itself, for which we are sorry: "
            f"{fault_sentence(error, frame, line)} Please report it, with what {TRACEBACK} prints."
        )
        return 1


def _carry_out(arguments: list[str]) -> int:
    try:
        # Commands that have a time to keep count it from here.
        code = app(arguments, prog_name="petridish", standalone_mode=False, obj=perf_counter())
    except TyperException as error:  # an unknown option, a missing argument
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "petridish"
        if type(error).__name__ == "NoArgsIsHelpError":  # it is private to Typer
            print(error.format_message())
            return 0
        return _fail(f"{error.format_message().rstrip('.')}. Try `{where} --help`.")
    except (KeyboardInterrupt, Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:  # what Typer makes of Ctrl-C
        kept = arguments[:2] != ["tabular", "compare"]  # which has no store to go on from
        again = "go on" if kept else "begin anew"
        print(f"petridish: interrupted; give the same command again to {again}.", file=sys.stderr)
    return code if isinstance(code, int) else 0


def _interrupt_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Repeat a Ctrl-C that fell into a callback, such as importlib's, where Python ignores it."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        threading.Timer(0.05, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(unraisable)


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
    text = " ".join(message.split())
    if len(text) > LONGEST:  # some value in it: what was wrong stands before, what to do behind
        text = f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
    print(f"petridish: {text}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
