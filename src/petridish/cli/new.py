"""`petridish new`: a file to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from petridish.errors import UserError

TEMPLATE = '''"""How much data does a network need to tell which half of its input has more bits?

    petridish check {name}      contracts, first steps, memory, price
    petridish run {name}        train what is missing, judge the claim
    petridish figure {name}     draw it
"""

from dataclasses import dataclass
from typing import ClassVar

from petridish import (
    MLP,
    Bits,
    Claim,
    Classes,
    Data,
    Domain,
    Examples,
    Experiment,
    NeverDecreases,
    RunSpec,
    Streams,
    Sweep,
    Training,
    unpack_bits,
)


@dataclass(frozen=True)
class Halves:
    """A task of your own: what its inputs are, and examples drawn from a run's random stream."""

    name: ClassVar[str] = "halves"

    n: int = 11

    @property
    def domain(self):
        return Domain(Bits(self.n), Classes(2))

    def draw(self, seeds, purpose, start, count):
        packed = Streams(seeds, purpose).packed(self.n, start, count)
        bits = unpack_bits(packed)[..., : self.n]
        left, right = bits[..., : self.n // 2].sum(-1), bits[..., self.n // 2 :].sum(-1)
        return Examples((left > right).astype("uint8"), packed, self.n)


SWEEP = Sweep(
    RunSpec(
        task=Halves(),
        data=Data(n_test=1000),
        model=MLP(width=30),
        training=Training(steps=300, learning_rate=0.1, target_error=0.1),
    ),
    {{"model.width": (3, 30), "data.m": (20, 60, 200, 600), "seed": range(10)}},
)
EXPERIMENT = Experiment(
    id="{stem}",
    title="data to compare two halves",
    source="this file",
    scales={{"own": SWEEP}},
    claims=(
        Claim(
            name="a",
            text="More data never lower the share of runs that succeed.",
            source="this file",
            rule=NeverDecreases(along="data.m", within=("model.width",)),
        ),
    ),
)
'''


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE.py", help="The file to write.")],
) -> None:
    """Write a file to begin with: a task, a sweep and a claim."""
    if file.suffix != ".py":
        raise UserError(f"{file} was given. Give the path of a new file that ends in .py.")
    try:
        with file.open("x", encoding="utf-8") as there:
            there.write(TEMPLATE.format(name=file.name, stem=file.stem))
    except FileExistsError as error:
        raise UserError(f"{file} is there already. Give the path of a new file.") from error
    except OSError as error:
        raise UserError(
            f"{file} cannot be written: {error.strerror}. Give another path."
        ) from error
    typer.echo(f"{file} is written. Try `petridish check {file}`, then `petridish run {file}`.")
