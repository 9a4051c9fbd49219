"""Sets of images on disk: where they are found, and what they hold.

Three layouts are read, each with a training and a test part:

- ``NAME.npz`` with the arrays x_train, y_train, x_test, y_test of whole numbers 0 … 255, images
  (row, height, width) or (row, height, width, channel);
- ``NAME/train_32x32.mat`` and ``NAME/test_32x32.mat``, as SVHN has them, the class 10 being a 0;
- ``NAME/train/CLASS/…`` and ``NAME/test/CLASS/…`` with PNG or JPEG files; classes are numbered in
  the order of their names. Tiny ImageNet has no labels for its own test part: where there is a
  ``NAME/val/val_annotations.txt``, lines of a file in ``NAME/val/images`` and its class, these are
  the test part.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, first_line
from petridish.tasks.table_files import DATA_VARIABLE

Pixels = NDArray[np.uint8]
PARTS = ("train", "test")
BYTES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "LAB", "HSV")
"""Pillow's kinds of pictures whose numbers are bytes; others would be cut off at 255."""
ARRAYS = tuple(f"{letter}_{part}" for part in PARTS for letter in "xy")
BUNDLED = "digits"  # 8 × 8, of scikit-learn
TEST_OF_DIGITS = 360  # the last ones; the set has no test part of its own


@dataclass(frozen=True, eq=False)
class Pictures:
    """What a set of images holds.

    Attributes
    ----------
    source : str
        The file or folder.
    x : mapping of part to array of uint8, shape (row, channel, height, width)
    y : mapping of part to array of int64, shape (row,)
        The classes as the files number them.
    mean, std : array of float32, shape (channel, 1, 1)
        Of the training part, by which images are standardised.
    digest : str
        16 hexadecimal digits of a hash of everything above but `source`.
    """

    source: str
    x: Mapping[str, Pixels]
    y: Mapping[str, NDArray[np.int64]]
    mean: NDArray[np.float32]
    std: NDArray[np.float32]
    digest: str


def load_pictures(dataset: str, folder: Path | None, only: tuple[int, ...] | None) -> Pictures:
    """Read a set of images, once per process; with `only`, the rows of these classes."""
    place = find_pictures(dataset, folder)
    if place is None:
        if dataset == BUNDLED:
            return _read_bundled(only)
        looked = [f" in {place}" for place in _places(folder)] or [f": {DATA_VARIABLE} is not set"]
        raise UserError(
            f"There are no images called {dataset!r}{looked[0]}. Let {DATA_VARIABLE} (or --data) "
            f"name a directory that holds {dataset}.npz or a folder {dataset} with train and test "
            f"images; {BUNDLED!r} comes with scikit-learn."
        )
    return _read(place, _stamp(place), only)


def find_pictures(dataset: str, folder: Path | None = None) -> Path | None:
    """Return the file or folder of a set of images, or None."""
    for place in _places(folder):
        for root in (place, place / "images"):
            for path in (root / f"{dataset}.npz", root / dataset):
                if path.is_file() or (path / "train").is_dir() or any(path.glob("*_32x32.mat")):
                    return path
    return None


def _places(folder: Path | None) -> list[Path]:
    named = os.environ.get(DATA_VARIABLE)
    return [folder] if folder is not None else [Path(named)] if named else []


def _stamp(place: Path) -> tuple[int, int]:  # notices a changed file
    status = place.stat()
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4)
def _read(place: Path, stamp: tuple[int, int], only: tuple[int, ...] | None) -> Pictures:
    if place.suffix == ".npz":
        arrays = _of_npz(place)
    elif any(place.glob("*_32x32.mat")):
        arrays = _of_mat(place)
    else:
        arrays = _of_folders(place)
    return checked(str(place), arrays, only)


@lru_cache(maxsize=4)
def _read_bundled(only: tuple[int, ...] | None) -> Pictures:
    from sklearn.datasets import load_digits

    found = load_digits()
    x, y = np.round(found.images * (255 / 16)).astype(np.uint8), found.target
    cut = len(y) - TEST_OF_DIGITS
    arrays = {"x_train": x[:cut], "y_train": y[:cut], "x_test": x[cut:], "y_test": y[cut:]}
    return checked("scikit-learn's digits", arrays, only)


def _of_npz(path: Path) -> dict[str, NDArray[Any]]:
    try:
        # Opened here: NumPy leaves a damaged archive open.
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            found = {name: file[name] for name in file}
    except Exception as error:  # a damaged archive may raise anything, as a bare array does
        # NumPy takes what is no archive for a pickle, and advises loading it.
        why = first_line(error) if is_zipfile(path) else "it is no zip archive"
        raise UserError(
            f"{path} cannot be read as NumPy's .npz ({why}). Give a whole file with the arrays "
            "x_train, y_train, x_test and y_test."
        ) from error
    if missing := [name for name in ARRAYS if name not in found]:
        raise UserError(
            f"{path} has the arrays {', '.join(sorted(found)) or 'none'}, and lacks "
            f"{', '.join(missing)}. Give x_train, y_train, x_test and y_test."
        )
    return found


def _of_mat(place: Path) -> dict[str, NDArray[Any]]:
    from scipy.io import loadmat

    found: dict[str, NDArray[Any]] = {}
    for part in PARTS:
        path = place / f"{part}_32x32.mat"
        if not path.is_file():
            raise UserError(f"{place} has no {path.name}. Give the two .mat files of SVHN.")
        try:
            file = loadmat(path)
            found[f"x_{part}"] = np.moveaxis(file["X"], 3, 0)  # it has the row last
            found[f"y_{part}"] = file["y"].ravel() % 10
        except Exception as error:  # a damaged file may raise anything
            raise UserError(
                f"{path} cannot be read as a file of SVHN ({first_line(error)}). Give its two .mat "
                "files, with X (height, width, channel, row) and y."
            ) from error
    return found


def _of_folders(place: Path) -> dict[str, NDArray[Any]]:
    from PIL import Image

    names = sorted(path.name for path in (place / "train").iterdir() if path.is_dir())
    annotations = place / "val" / "val_annotations.txt"
    if (place / "test").is_dir() and not annotations.is_file():
        others = sorted(path.name for path in (place / "test").iterdir() if path.is_dir())
        if alone := sorted(set(others) - set(names)):
            raise UserError(
                f"{place} has the class {alone[0]!r} in test alone. Give every class images of "
                "both parts."
            )
    found: dict[str, NDArray[Any]] = {}
    for part in PARTS:
        if part == "test" and annotations.is_file():
            files = _annotated(annotations, names)
        else:
            files = [
                (label, path)
                for label, name in enumerate(names)
                for path in sorted((place / part / name).rglob("*"))
                if path.suffix.lower() in (".png", ".jpg", ".jpeg")
            ]
        if not files:
            raise UserError(
                f"{place} has no images of the part {part}. Give PNG or JPEG files in "
                f"{place.name}/{part}/CLASS, one folder per class."
            )
        if absent := sorted(set(range(len(names))) - {label for label, _ in files}):
            raise UserError(
                f"{place} has no images of the class {names[absent[0]]!r} in the part {part}. Give "
                "every class images of both parts."
            )
        pictures = []
        for _, path in files:
            try:
                with Image.open(path) as picture:
                    kind = picture.mode
                    pictures.append(np.asarray(picture.convert("RGB")))
            except Exception as error:  # a damaged file may raise anything
                raise UserError(
                    f"{path} is no image that can be read ({first_line(error)}). Mend it or leave "
                    "it out."
                ) from error
            if kind not in BYTES:
                raise UserError(
                    f"{path} has pixels of the kind {kind!r}, which are no bytes. Save it with 8 "
                    "bits per channel."
                )
        sizes = {picture.shape for picture in pictures}
        if len(sizes) > 1:
            raise UserError(
                f"{place} has images of different sizes: {', '.join(map(str, sorted(sizes)[:3]))}. "
                "Give images of one size."
            )
        found[f"x_{part}"] = np.stack(pictures)
        found[f"y_{part}"] = np.array([label for label, _ in files])
    return found


def _annotated(annotations: Path, names: list[str]) -> list[tuple[int, Path]]:
    """Return the class and the file of every line of Tiny ImageNet's list."""
    found = []
    text = annotations.read_text("utf-8", errors="replace")  # what is no text is no class either
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if len(words) < 2 or words[1] not in names:
            raise UserError(
                f"{annotations}: line {number} is {line!r}. Give the name of a file in "
                f"{annotations.parent.name}/images and its class, one of the folders of train."
            )
        found.append((names.index(words[1]), annotations.parent / "images" / words[0]))
    return found


def checked(
    source: str, arrays: Mapping[str, NDArray[Any]], only: tuple[int, ...] | None
) -> Pictures:
    """Check the arrays of a set of images, keep the classes asked for, and name the content."""
    x: dict[str, Pixels] = {}
    y: dict[str, NDArray[np.int64]] = {}
    for part in PARTS:
        images, labels = arrays[f"x_{part}"], arrays[f"y_{part}"]
        if images.dtype != np.uint8 or images.ndim not in (3, 4) or not images.size:
            raise UserError(
                f"{source}: x_{part} has the type {images.dtype} and the shape {images.shape}. "
                "Give bytes (uint8) of shape (row, height, width) or (row, height, width, channel)."
            )
        if labels.shape != images.shape[:1] or labels.dtype.kind not in "iu":
            raise UserError(
                f"{source}: y_{part} has the type {labels.dtype} and the shape {labels.shape} for "
                f"{len(images)} images. Give one whole number for each."
            )
        images = images[:, None] if images.ndim == 3 else np.moveaxis(images, 3, 1)
        labels = labels.astype(np.int64)
        if only is not None:
            if absent := [each for each in only if not (labels == each).any()]:
                raise UserError(
                    f"{source}: y_{part} has no images of the class {absent[0]}. It has "
                    f"{', '.join(map(str, np.unique(labels)[:12]))}."
                )
            kept = np.isin(labels, only)
            images, labels = images[kept], labels[kept]
        x[part], y[part] = np.ascontiguousarray(images), labels
    if x["train"].shape[1:] != x["test"].shape[1:]:
        raise UserError(
            f"{source}: training images have the shape {x['train'].shape[1:]} and test images "
            f"{x['test'].shape[1:]}. Give images of one size."
        )
    for part in PARTS:  # shared by all runs of the process
        x[part].flags.writeable = y[part].flags.writeable = False
    pixels = x["train"].astype(np.float32) / 255
    mean, std = (f(pixels, axis=(0, 2, 3))[:, None, None] for f in (np.mean, np.std))
    return Pictures(source, x, y, mean, np.where(std > 0, std, 1), _digest(x, y))


def _digest(x: Mapping[str, Pixels], y: Mapping[str, NDArray[np.int64]]) -> str:
    """Hash the content; the digits begin at the first letter, so that they are no number."""
    running = hashlib.sha256()
    for part in PARTS:
        running.update(repr(x[part].shape).encode() + x[part].tobytes())
        running.update(y[part].astype("<i8").tobytes())
    found = re.search("[a-f][0-9a-f]{15}", running.hexdigest() + "a" * 16)
    assert found is not None, "the text ends in 16 letters"
    return found[0]
