"""Sets of images, each with its own training and test part [FL App. E.4, E.5]."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole, require
from petridish.seeds import Streams
from petridish.tasks.base import Examples, LimitsData, Sample
from petridish.tasks.domain import Classes, Domain, Reals
from petridish.tasks.image_files import PARTS, Pictures, load_pictures
from petridish.values import LATER, settle


@dataclass(frozen=True)
class Images(LimitsData):
    """Images and their classes, standardised per channel by the training part.

    A training sample of m is the first m of the training part in an order of each run's own, the
    held-out sample the first of the test part; a larger m only adds images. Inputs have the shape
    (channel, height, width); models that take vectors read them row by row.

    Attributes
    ----------
    dataset : str
        Its name, by which it is found in the folder that PETRIDISH_DATA names (`image_files`).
    shape : tuple of int
        Channels, height and width.
    n_train, n_test : int
        Images of the two parts.
    classes : tuple of int
        The classes that are kept, as the files number them: the first is class 0 here.
    digest : str
        Of the content; `find_images` knows all of these.
    shrink : int
        Inputs are the means over squares of so many pixels a side: 2 makes 32 × 32 of Tiny
        ImageNet's 64 × 64, which then can be injected among CIFAR-10's images.
    """

    name: ClassVar[str] = "images"

    dataset: str
    shape: tuple[int, ...]
    n_train: int
    n_test: int
    classes: tuple[int, ...]
    digest: str
    shrink: int = field(default=1, metadata=LATER)

    def __post_init__(self) -> None:
        settle(self)
        check_whole("Images", 1, n_train=self.n_train, n_test=self.n_test, shrink=self.shrink)
        require(
            len(self.shape) == 3 and len(self.classes) >= 2,
            f"Images: shape={self.shape}, classes={self.classes}. Give channels, height and width, "
            "and two classes or more.",
        )
        require(
            len(set(self.classes)) == len(self.classes),
            f"Images: classes={self.classes} has one class twice. Give each once.",
        )
        require(
            not any(side % self.shrink for side in self.shape[1:]),
            f"Images: shrink={self.shrink} does not divide the sides of shape={self.shape}. Give a "
            "divisor of both.",
        )
        require(
            isinstance(self.digest, str) and bool(re.fullmatch("[a-f][0-9a-f]{15}", self.digest)),
            f"Images: digest={self.digest!r}. Give the 16 hexadecimal digits that find_images "
            "finds.",
        )

    @property
    def domain(self) -> Domain:
        """Images, and as many classes as are kept."""
        channels, *sides = self.shape
        shape = (channels, *(side // self.shrink for side in sides))
        return Domain(Reals(shape), Classes(len(self.classes)))

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Take images of each run's own order; what follows a "/" in the purpose is not read."""
        part = purpose.partition("/")[0]
        there = {"train": self.n_train, "test": self.n_test}.get(part)
        if there is None:
            raise UserError(
                f"The images {self.dataset} have the parts {' and '.join(PARTS)}, and examples of "
                f"{purpose!r} were asked for. They cannot be drawn anew."
            )
        if start + count > there:
            raise UserError(
                f"There are {there} {part} images of {self.dataset}, and {start + count} were "
                f"asked for. Ask for at most {there}."
            )
        pictures = self.pictures()
        places = np.stack([_order(seed, part, there)[start : start + count] for seed in seeds])
        pixels = pictures.x[part][places].astype(np.float32)
        if self.shrink > 1:
            channels, height, width = self.domain.input_shape
            squares = (*places.shape, channels, height, self.shrink, width, self.shrink)
            pixels = pixels.reshape(squares).mean(axis=(4, 6))
        x = (pixels / 255 - pictures.mean) / pictures.std
        of_class = {original: place for place, original in enumerate(self.classes)}
        labels = np.vectorize(of_class.__getitem__, otypes=[np.int64])(pictures.y[part][places])
        return Examples(labels, dense=x.astype(np.float32))

    def pictures(self) -> Pictures:
        """Read the images, and refuse others than those described here."""
        found = load_pictures(self.dataset, None, self.classes)
        if found.digest != self.digest:
            raise UserError(
                f"{found.source} has the digest {found.digest}, but this run is of the images "
                f"{self.dataset} with the digest {self.digest}. Give the folder that holds these "
                "with --data or PETRIDISH_DATA, or declare the runs anew with those."
            )
        return found

    def check_data(self, data: Sample) -> None:
        """Refuse a run that asks for more images than there are."""
        for what, asked, there, part in (
            ("m", data.m, self.n_train, "training"),
            ("n_test", data.n_test, self.n_test, "test"),
        ):
            if asked > there:
                given = "inf asks for fresh ones" if asked == float("inf") else f"{int(asked)}"
                raise UserError(
                    f"There are {there} {part} images of {self.dataset}, and data.{what}={given}. "
                    f"Give data.{what} of at most {there}."
                )


def find_images(
    dataset: str,
    classes: Sequence[int] | None = None,
    folder: Path | None = None,
    *,
    shrink: int = 1,
) -> Images:
    """Return the task of a set of images that is there.

    Parameters
    ----------
    dataset : str
        The name of a file NAME.npz or of a folder, or "digits", which comes with scikit-learn.
    classes : sequence of int, optional
        Classes to keep, the first becoming class 0; all of them if not given.
    folder : Path, optional
        Where to look; otherwise in the folder that PETRIDISH_DATA names.
    shrink : int
        As in `Images`.
    """
    only = None if classes is None else tuple(int(each) for each in classes)
    found = load_pictures(dataset, folder, only)
    kept = tuple(int(each) for each in np.unique(found.y["train"])) if only is None else only
    sizes = {part: len(found.y[part]) for part in PARTS}
    shape = tuple(int(size) for size in found.x["train"].shape[1:])
    return Images(dataset, shape, sizes["train"], sizes["test"], kept, found.digest, shrink)


@lru_cache(maxsize=64)
def _order(seed: int, part: str, rows: int) -> NDArray[np.int64]:
    """Draw a run's order of the images of a part, by sorting words."""
    order = np.argsort(Streams([seed], f"split/{part}").words(0, rows)[0], kind="stable")
    order.flags.writeable = False
    return order
