"""Images from files of several layouts, and what is wrong with some files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import loadmat, savemat

from petridish.errors import UserError, first_line
from petridish.tasks import Images, Injected, find_images
from petridish.tasks.image_files import load_pictures
from petridish.testing import check_task
from petridish.training import Data
from tests.conftest import Command

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


def test_tiny_imagenet_as_it_is_distributed(tmp_path: Path, arrays: Arrays) -> None:
    """Its own test part has no labels: the test part here is the list of `val`."""
    place = tmp_path / "tiny-imagenet-200"
    for part in ("val", "test"):
        (place / part / "images").mkdir(parents=True)
    Image.fromarray(arrays["x_test"][0]).save(place / "test" / "images" / "test_0.png")
    lines = []
    for at, (x, y) in enumerate(zip(arrays["x_test"], arrays["y_test"], strict=True)):
        Image.fromarray(x).save(place / "val" / "images" / f"val_{at}.png")
        lines.append(f"val_{at}.png\tn{y}\t0\t0\t62\t62\n")
    for at, (x, y) in enumerate(zip(arrays["x_train"], arrays["y_train"], strict=True)):
        path = place / "train" / f"n{y}" / "images"
        path.mkdir(parents=True, exist_ok=True)
        Image.fromarray(x).save(path / f"{at}.png")
    np.savez(tmp_path / "tiny.npz", **arrays)
    for content, line in ((b"val_0.png\tn4\n", "val_0.png\tn4"), (b"\xff a\n", "\ufffd a")):
        (place / "val" / "val_annotations.txt").write_bytes(content)
        with pytest.raises(UserError) as refused:
            find_images(place.name, folder=tmp_path)
        assert str(refused.value) == (
            f"{place}/val/val_annotations.txt: line 1 is {line!r}. Give the name of a file in "
            "val/images and its class, one of the folders of train."
        )
    (place / "val" / "val_annotations.txt").write_text("".join(lines))
    theirs = find_images(place.name, folder=tmp_path)
    ours = load_pictures("tiny", tmp_path, None)
    found = load_pictures(place.name, tmp_path, None)

    assert (theirs.n_train, theirs.n_test, theirs.classes) == (8, 4, (0, 1, 2))
    assert np.array_equal(found.x["test"], ours.x["test"])
    assert np.array_equal(found.y["test"], np.searchsorted([3, 5, 7], ours.y["test"]))


def test_images_are_shrunk_by_means(folder: Path, arrays: Arrays) -> None:
    """Of squares of pixels; then they can be injected among images of that size."""
    arrays = arrays | {name: arrays[name][:, :, :2] for name in ("x_train", "x_test")}
    np.savez(folder / "images" / "even.npz", **arrays)
    np.savez(
        folder / "images" / "half.npz",
        **arrays
        | {"x_train": arrays["x_train"][:, :2, :1]}
        | {"x_test": arrays["x_test"][:, :2, :1]},
    )
    whole, small = find_images("even"), find_images("even", shrink=2)
    x, less = (task.draw([0], "train", 0, 3).x[0] for task in (whole, small))
    by_hand = x[:, :, 0::2, 0::2] + x[:, :, 1::2, 0::2] + x[:, :, 0::2, 1::2] + x[:, :, 1::2, 1::2]

    assert small.domain.input_shape == (3, 2, 1)
    assert np.allclose(less, by_hand / 4, atol=1e-6)
    assert Injected(find_images("half"), 0.5, small).draw([0], "train", 0, 4).x.shape[2:] == (
        3,
        2,
        1,
    )
    with pytest.raises(UserError) as refused:
        find_images("even", shrink=4)
    assert str(refused.value) == (
        "Images: shrink=4 does not divide the sides of shape=(3, 4, 2). Give a divisor of both."
    )


def test_the_command_line_names_a_folder(
    tmp_path: Path, arrays: Arrays, inside: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`petridish run --data`: a file of one's own finds its images there."""
    monkeypatch.setenv("PETRIDISH_DATA", "")
    np.savez(tmp_path / "tiny.npz", **arrays)
    own = tmp_path / "own.py"
    own.write_text(
        '"""Two seeds on images."""\n'
        "from petridish import Data, MLP, RunSpec, Sweep, Training, find_images\n"
        "RUN = RunSpec(task=find_images('tiny', (3, 5)), data=Data(m=6, n_test=3), model=MLP(2),\n"
        "              training=Training(steps=2))\n"
        "SWEEP = Sweep(RUN, {'seed': range(2)})\n"
    )
    base = ("run", str(own), "--store", str(tmp_path / "store"), "--executor", "inline")
    done = inside(*base, "--data", str(tmp_path), "--json")
    missing = inside(*base, "--data", str(tmp_path / "none"))

    assert done.returncode == 0, done.stderr
    assert '"done": 2' in done.stdout
    assert missing.returncode == 2
    assert missing.stderr == (
        f"petridish: There is no folder {tmp_path}/none. Give --data one that holds the images or "
        "tables.\n"
    )


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


def refusal(name: str) -> str:
    """Return the sentence with which a set of images is refused."""
    with pytest.raises(UserError) as refused:
        find_images(name)
    return str(refused.value)


def test_files_that_cannot_be_read(
    folder: Path, arrays: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not an archive, half of one, a damaged one; no file, no folder; no images, or a damaged."""
    path = folder / "images" / "tiny.npz"
    np.savez(path, **arrays)
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[whole.index(b"NUMPY") + 200] ^= 1  # a pixel
    for content, why in (
        (b"not an archive", "it is no zip archive"),
        (whole[: len(whole) // 2], "it is no zip archive"),
        (bytes(damaged), "Bad CRC-32 for file 'x_train.npy'"),
    ):
        path.write_bytes(content)
        assert refusal("tiny") == (
            f"{path} cannot be read as NumPy's .npz ({why}). Give a whole file with the arrays "
            "x_train, y_train, x_test and y_test."
        )
    advice = (
        "Let PETRIDISH_DATA (or --data) name a directory that holds nothing.npz or a folder "
        "nothing with train and test images; 'digits' comes with scikit-learn."
    )
    assert refusal("nothing") == f"There are no images called 'nothing' in {folder}. {advice}"
    (folder / "some" / "train" / "cat").mkdir(parents=True)
    assert refusal("some") == (
        f"{folder}/some has no images of the part train. Give PNG or JPEG files in "
        "some/train/CLASS, one folder per class."
    )
    picture = folder / "some" / "train" / "cat" / "a.png"
    picture.write_text("no image")
    assert refusal("some") == (
        f"{picture} is no image that can be read ({unreadable(Image.open, picture)}). Mend it or "
        "leave it out."
    )
    (folder / "svhn").mkdir()
    file = folder / "svhn" / "train_32x32.mat"
    for content in (b"no mat", b"", b"x" * 200):
        file.write_bytes(content)
        assert refusal("svhn") == (
            f"{file} cannot be read as a file of SVHN ({unreadable(loadmat, file)}). Give its two "
            ".mat files, with X (height, width, channel, row) and y."
        )
    monkeypatch.delenv("PETRIDISH_DATA")
    assert refusal("nothing") == (
        f"There are no images called 'nothing': PETRIDISH_DATA is not set. {advice}"
    )


def test_folders_that_are_not_whole(folder: Path, arrays: Arrays) -> None:
    """A class of one part alone, in either, and 16 bits per pixel, which bytes would cut off."""
    whole, deep = arrays["x_train"][0], np.full((4, 3), 30_000, np.uint16)
    both = " Give every class images of both parts."
    for part, name, pixels, said in (
        ("train", "cat", whole, " has no images of the part test. Give PNG or JPEG files in "
         "pets/test/CLASS, one folder per class."),
        ("test", "dog", whole, " has the class 'dog' in test alone." + both),
        ("train", "dog", whole, " has no images of the class 'cat' in the part test." + both),
        ("test", "cat", deep, "/test/cat/a.png has pixels of the kind 'I;16', which are no bytes. "
         "Save it with 8 bits per channel."),
    ):  # fmt: skip
        path = folder / "pets" / part / name
        path.mkdir(parents=True)
        Image.fromarray(pixels).save(path / "a.png")
        assert refusal("pets") == f"{folder}/pets{said}"


def unreadable(read: Callable[[Path], Any], path: Path) -> str:
    """Return the first line of what a library says of a file."""
    with pytest.raises(Exception) as said:  # noqa: PT011 - whatever it raises
        read(path)
    return first_line(said.value)


def test_what_a_library_says_in_one_line() -> None:
    """The first line, without its full stop and at most 120 characters long; else the name."""
    assert first_line(ValueError("It is broken.\nCall 123.")) == "It is broken"
    assert first_line(MemoryError()) == "MemoryError"
    assert len(first_line(ValueError("a word " * 100))) <= 120


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
    with pytest.raises(UserError) as refused:
        find_images("digits", (0, 0))
    assert str(refused.value) == "Images: classes=(0, 0) has one class twice. Give each once."
