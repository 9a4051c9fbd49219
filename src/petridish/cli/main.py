"""The entry point: commands, and what happens when one goes wrong."""

from __future__ import annotations

import sys

import click
import typer

from petridish import __version__
from petridish.cli import catalogue, running, storing
from petridish.naming import UserError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="A laboratory for the science of deep learning on small exact tasks.",
)


@app.callback(invoke_without_command=True)
def _main(
    version: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


for function in (
    running.demo,
    catalogue.list_experiments,
    running.run,
    catalogue.plan,
    catalogue.verdicts,
    catalogue.figure,
    catalogue.report,
    catalogue.bench,
):
    name = "list" if function is catalogue.list_experiments else function.__name__
    app.command(name)(function)
app.add_typer(storing.app, name="store")


def main() -> None:
    """Run the command line: 0 done, 2 the user's mistake in one line, 130 interrupted."""
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Carry out one command and give its exit code."""
    try:
        code = app(arguments, standalone_mode=False)
    except UserError as error:
        return _fail(str(error))
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "petridish"
        return _fail(f"{error.format_message()} Try `{where} --help`.")
    except click.ClickException as error:
        return _fail(error.format_message())
    except (KeyboardInterrupt, click.Abort):
        print("petridish: interrupted; give the same command again to go on.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has left, as `head` does
        sys.stderr.close()
        return 0
    return code if isinstance(code, int) else 0


def _fail(message: str) -> int:
    print(f"petridish: {' '.join(message.split())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
