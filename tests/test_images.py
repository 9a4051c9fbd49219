"""Images from files of several layouts, and what is wrong with some files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from petridish.errors import UserError
from petridish.tasks import Images, Injected, find_images
from petridish.testing import check_task
from petridish.training import Data

Arrays = dict[str, Any]


@pytest.fixture
def arrays() -> Arrays:
    """Return eight training and four test images of 4 × 3 pixels in three colours."""
    rng = np.random.default_rng(0)
    return {
        "x_train": rng.integers(0, 256, (8, 4, 3, 3), dtype=np.uint8),
        "y_train": np.array([3, 5, 3, 5, 5, 7, 7, 3]),
        "x_test": rng.integers(0, 256, (4, 4, 3, 3), dtype=np.uint8),
        "y_test": np.array([5, 3, 3, 7]),
    }


@pytest.fixture
def folder(tmp_path: Path, arrays: Arrays, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with tiny.npz, to which the environment points."""
    (tmp_path / "images").mkdir()
    np.savez_compressed(tmp_path / "images" / "tiny.npz", **arrays)
    monkeypatch.setenv("PETRIDISH_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_images_of_some_classes(arrays: Arrays) -> None:
    """The first class is 0; channels come first; each run has its own order of all rows."""
    task = find_images("tiny", (5, 3))
    drawn = task.draw([0, 1], "train", 0, 6)
    kept = np.isin(arrays["y_train"], (3, 5))
    pixels = np.moveaxis(arrays["x_train"][kept], 3, 1) / 255
    mean, std = pixels.mean(axis=(0, 2, 3)), pixels.std(axis=(0, 2, 3))
    expected = (pixels - mean[:, None, None]) / std[:, None, None]

    check_task(task)
    assert task.domain.input_shape == (3, 4, 3)
    for run in range(2):
        order = [int(np.abs(expected - x).sum(axis=(1, 2, 3)).argmin()) for x in drawn.x[run]]
        assert sorted(order) == list(range(6))
        assert np.allclose(drawn.x[run], expected[order], atol=1e-5)
        assert np.array_equal(drawn.labels[run], (arrays["y_train"][kept] == 3)[order])
    assert not np.array_equal(drawn.x[0], drawn.x[1])


@pytest.mark.usefixtures("folder")
def test_all_classes_and_grey_images() -> None:
    """Three classes of the file; ten of scikit-learn's digits, which have one channel."""
    assert find_images("tiny").domain.n_classes == 3
    digits = find_images("digits")
    assert (digits.shape, digits.domain.n_classes) == ((1, 8, 8), 10)
    assert digits.n_train + digits.n_test == 1797


def test_files_of_svhn(tmp_path: Path, arrays: Arrays) -> None:
    """Rows come last, and the class 10 is the digit 0."""
    place = tmp_path / "svhn"
    place.mkdir()
    classes = {3: 10, 5: 1, 7: 2}
    for part in ("train", "test"):
        y = np.vectorize(classes.get)(arrays[f"y_{part}"])
        savemat(
            place / f"{part}_32x32.mat",
            {"X": np.moveaxis(arrays[f"x_{part}"], 0, 3), "y": y[:, None]},
        )
    np.savez(tmp_path / "tiny.npz", **arrays)
    theirs, ours = find_images("tiny", (3, 5), tmp_path), find_images("svhn", (0, 1), tmp_path)

    assert (ours.shape, ours.n_train, ours.n_test) == ((3, 4, 3), 6, 3)
    assert (theirs.shape, theirs.n_train, theirs.n_test) == ((3, 4, 3), 6, 3)


def test_a_folder_for_each_class(
    tmp_path: Path, arrays: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Tiny ImageNet has them; PNG keeps every pixel."""
    for part in ("train", "test"):
        for place, (x, y) in enumerate(zip(arrays[f"x_{part}"], arrays[f"y_{part}"], strict=True)):
            path = tmp_path / "tiny" / part / f"n{y}" / "images"
            path.mkdir(parents=True, exist_ok=True)
            Image.fromarray(x).save(path / f"{place}.png")
    monkeypatch.setenv("PETRIDISH_DATA", str(tmp_path))
    task = find_images("tiny")
    content = task.pictures()

    assert (task.shape, task.classes, task.n_train, task.n_test) == ((3, 4, 3), (0, 1, 2), 8, 4)
    order = np.argsort(arrays["y_train"], kind="stable")
    assert np.array_equal(content.x["train"], np.moveaxis(arrays["x_train"][order], 3, 1))
    assert np.array_equal(content.y["train"], np.searchsorted([3, 5, 7], arrays["y_train"][order]))


def test_no_more_images_than_there_are(folder: Path) -> None:
    """Neither by a run's sizes nor by a draw; a mixture asks for its share alone."""
    task = find_images("tiny", (3, 5))
    for asked, message in (
        (
            Data(m=7, n_test=3),
            "There are 6 training images of tiny, and data.m=7. Give data.m of at most 6.",
        ),
        (
            Data(n_test=3),
            "There are 6 training images of tiny, and data.m=inf asks for fresh ones. Give data.m "
            "of at most 6.",
        ),
        (
            Data(m=6, n_test=4),
            "There are 3 test images of tiny, and data.n_test=4. Give data.n_test of at most 3.",
        ),
    ):
        with pytest.raises(UserError) as refused:
            task.check_data(asked)
        assert str(refused.value) == message
    Injected(task, 0.5).check_data(Data(m=12, n_test=6))
    with pytest.raises(UserError, match="There are 6 training images of tiny"):
        Injected(task, 0.5).check_data(Data(m=13, n_test=6))
    with pytest.raises(UserError) as refused:
        task.draw([0], "train", 4, 3)
    assert str(refused.value) == (
        "There are 6 train images of tiny, and 7 were asked for. Ask for at most 6."
    )
    with pytest.raises(UserError) as refused:
        task.draw([0], "more", 0, 1)
    assert str(refused.value) == (
        "The images tiny have the parts train and test, and examples of 'more' were asked for. "
        "They cannot be drawn anew."
    )


def test_other_images_under_the_same_name(folder: Path, arrays: Arrays) -> None:
    """The digest tells."""
    task = find_images("tiny")
    arrays["x_train"][0, 0, 0, 0] ^= 1
    np.savez(folder / "images" / "tiny.npz", **arrays)
    with pytest.raises(UserError) as refused:
        task.draw([0], "train", 0, 1)
    found = find_images("tiny").digest
    assert str(refused.value) == (
        f"{folder}/images/tiny.npz has the digest {found}, but this run is of the images tiny with "
        f"the digest {task.digest}. Give the folder that holds these with --data or "
        "PETRIDISH_DATA, or declare the runs anew with those."
    )


def changed(**new: Any) -> Callable[[Arrays], Arrays]:
    """Return a function that replaces some arrays, or drops those that are None."""
    return lambda old: {k: v for k, v in (old | new).items() if v is not None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            changed(y_test=None),
            "{path} has the arrays x_test, x_train, y_train, and lacks y_test. Give x_train, "
            "y_train, x_test and y_test.",
        ),
        (
            changed(x_train=np.zeros((8, 4, 3))),
            "{path}: x_train has the type float64 and the shape (8, 4, 3). Give bytes (uint8) of "
            "shape (row, height, width) or (row, height, width, channel).",
        ),
        (
            changed(y_train=np.zeros(7, int)),
            "{path}: y_train has the type int64 and the shape (7,) for 8 images. Give one whole "
            "number for each.",
        ),
        (
            changed(y_test=np.array([3, 3, 3, 7])),
            "{path}: y_test has no images of the class 5. It has 3, 7.",
        ),
        (
            changed(x_test=np.zeros((4, 2, 3, 3), np.uint8)),
            "{path}: training images have the shape (3, 4, 3) and test images (3, 2, 3). Give "
            "images of one size.",
        ),
    ],
)
def test_files_that_are_not_what_they_say(
    folder: Path, arrays: Arrays, change: Callable[[Arrays], Arrays], message: str
) -> None:
    """One sentence each, with the file."""
    path = folder / "images" / "tiny.npz"
    np.savez(path, **change(arrays))
    with pytest.raises(UserError) as refused:
        find_images("tiny", (3, 5))
    assert str(refused.value) == message.format(path=path)


def test_files_that_cannot_be_read(folder: Path) -> None:
    """A text called .npz; no file; a folder of a class with no images; a damaged image."""
    path = folder / "images" / "tiny.npz"
    path.write_text("not an archive")
    with pytest.raises(UserError) as refused:
        find_images("tiny")
    assert re.fullmatch(
        re.escape(str(path)) + r" cannot be read as NumPy's \.npz \(.*\)\. Give a whole file with "
        r"the arrays x_train, y_train, x_test and y_test\.",
        str(refused.value),
    )
    with pytest.raises(UserError) as refused:
        find_images("nothing")
    assert str(refused.value) == (
        f"There are no images called 'nothing' in {folder}. Let PETRIDISH_DATA (or --data) name a "
        "directory that holds nothing.npz or a folder nothing with train and test images; 'digits' "
        "comes with scikit-learn."
    )
    (folder / "some" / "train" / "cat").mkdir(parents=True)
    with pytest.raises(UserError) as refused:
        find_images("some")
    assert str(refused.value) == (
        f"{folder}/some has no images of the part train. Give PNG or JPEG files in "
        "some/train/CLASS, one folder per class."
    )
    (folder / "some" / "train" / "cat" / "a.png").write_text("no image")
    with pytest.raises(UserError, match=r"a\.png is no image that can be read"):
        find_images("some")
    (folder / "svhn").mkdir()
    (folder / "svhn" / "train_32x32.mat").write_text("no mat")
    with pytest.raises(UserError, match=r"train_32x32\.mat cannot be read as a file of SVHN"):
        find_images("svhn")


def test_what_is_no_set_of_images() -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        Images("tiny", (4, 4), 5, 5, (0, 1), "a" * 16)
    assert str(refused.value) == (
        "Images: shape=(4, 4), classes=(0, 1). Give channels, height and width, and two classes or "
        "more."
    )
    with pytest.raises(UserError) as refused:
        Images("tiny", (1, 4, 4), 5, 5, (0, 1), "xyz")
    assert str(refused.value) == (
        "Images: digest='xyz'. Give the 16 hexadecimal digits that find_images finds."
    )
