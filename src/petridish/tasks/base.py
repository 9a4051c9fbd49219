"""What every task offers: examples of a number of runs, as pure functions of the runs' seeds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from petridish.choices import blamed, describe
from petridish.errors import UserError
from petridish.seeds import Streams, Words, unpack_bits
from petridish.tasks.domain import Bits, Classes, Domain, Tokens
from petridish.theory.checks import check_size
from petridish.values import has_users, settle

Booleans = NDArray[np.uint8]


@dataclass(frozen=True)
class Examples:
    """Inputs and labels: axis 0 is the run, axis 1 the example.

    Attributes
    ----------
    labels : array, shape (run, example, …)
        As the task's domain says: classes (run, example), classes at every position
        (run, example, position), of which −1 is no label, or real targets (run, example, d).
    packed : array of uint64, shape (run, example, word), optional
        Inputs in {−1, +1}^n as bits, the bit 1 for −1; `n_bits` of them.
    dense : array, shape (run, example, …), optional
        Inputs of any other kind: reals, or tokens.
    hot : array of int64, shape (run, example, one), optional
        Inputs in {0, 1}^n by the places of their ones, as many in each; n is `n_bits`.
    facts : mapping of str to array, shape (run, example, …)
        What the task knows of an example and no model sees: the part of a mixture that it comes
        from, its transition matrix. Metrics may ask for them.
    """

    labels: NDArray[Any]
    packed: Words | None = None
    n_bits: int = 0
    dense: NDArray[Any] | None = None
    hot: NDArray[np.int64] | None = None
    facts: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @cached_property
    def x(self) -> NDArray[Any]:
        """Inputs as numbers, ±1 or 0 and 1 as float32; unpacked once, when first asked for."""
        if self.hot is not None:
            x = np.zeros((*self.hot.shape[:2], self.n_bits), np.float32)
            np.put_along_axis(x, self.hot, 1.0, axis=2)
            return x
        if self.packed is None:
            assert self.dense is not None, "examples have packed or dense inputs"
            return self.dense
        return np.float32(1) - np.float32(2) * unpack_bits(self.packed)[..., : self.n_bits]


class Task(Hashable, Protocol):
    """A distribution of inputs and labels: a frozen dataclass with these three names.

    `draw` returns the examples start … start + count − 1 of the stream `purpose` of each run: the
    training examples of a run are the first m of an endless stream, its held-out sample the first
    of another. All randomness comes from `Streams(seeds, …)`, so that example i of a run is always
    the same.

    A task that can do more inherits from the class that says so: `Finite`, `HasStrategies`,
    `HasParts`, `HasDirections`, `HasCentres`, `LimitsData`.
    """

    name: ClassVar[str]

    @property
    def domain(self) -> Domain:
        """What its inputs and its targets are."""

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw examples of the runs `seeds` from their stream `purpose`."""


class Finite(ABC):
    """A task of finitely many inputs: a run may then see each at most once, or all of them."""

    @property
    @abstractmethod
    def n_possible(self) -> int:
        """Number of different inputs, all equally likely."""

    @abstractmethod
    def at(self, seeds: Sequence[int], places: NDArray[np.int64]) -> Examples:
        """Return the inputs of the numbers `places` (run, example), from 0 to n_possible − 1."""


class HasStrategies(ABC):
    """A task that can compute the answers of named strategies, such as the truth or bigrams."""

    @property
    @abstractmethod
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies."""

    @abstractmethod
    def predict(self, strategy: str, examples: Examples) -> NDArray[np.floating[Any]]:
        """Return the probabilities of the classes, shape (run, example, [position,] class)."""

    def predict_last(self, strategy: str, examples: Examples) -> NDArray[np.floating[Any]]:
        """Return those of labels at every position at the last one alone, (run, example, 1, class).

        A task whose predictions take long may compute these alone.
        """
        return self.predict(strategy, examples)[:, :, -1:]


class HasParts(ABC):
    """A mixture of parts; `Examples.facts["part"]` has the place of an example's part."""

    @property
    @abstractmethod
    def parts(self) -> tuple[str, ...]:
        """Names of the parts."""


class HasHypotheses(ABC):
    """A task whose label is one of a known set of functions of the input, its hypotheses."""

    @abstractmethod
    def several_explain(self, sample: Examples) -> NDArray[np.bool_]:
        """Return whether several hypotheses have all labels of each run's sample, shape (run,)."""


class HasDirections(ABC):
    """A task whose label depends on an input by its components along a few directions."""

    @abstractmethod
    def directions(self, seeds: Sequence[int]) -> NDArray[np.float64]:
        """Return the directions of each run, shape (run, direction, input)."""


class HasCentres(ABC):
    """A task whose inputs gather around a few centres, such as a mixture of Gaussians."""

    @abstractmethod
    def centres(self, seeds: Sequence[int]) -> NDArray[np.float64]:
        """Return the centres of each run, shape (run, centre, input)."""


class Sample(Protocol):
    """The sizes that a run asks of its task; its `Data` has them."""

    @property
    def m(self) -> float:
        """Training examples."""

    @property
    def n_test(self) -> int:
        """Size of the held-out sample."""


class LimitsData(ABC):
    """A task with a limited number of examples, which it checks before a run begins."""

    @abstractmethod
    def check_data(self, data: Sample) -> None:
        """Refuse a run that asks for more than there is."""


def draw_examples(
    task: Task, seeds: Sequence[int], purpose: str, start: int, count: int
) -> Examples:
    """Draw examples of a task, and refuse what is not of its domain."""
    with blamed("task", task, "draw", seeds=seeds, purpose=purpose, start=start, count=count):
        examples = task.draw(seeds, purpose, start, count)
    check_examples(task, examples, len(seeds), count)
    return examples


def examples_at(task: Any, seeds: Sequence[int], places: NDArray[np.int64]) -> Examples:
    """Return inputs of a task by their numbers, and refuse what is not of its domain."""
    with blamed("task", task, "at", seeds=seeds, places=places):
        examples: Examples = task.at(seeds, places)
    check_examples(task, examples, *places.shape)
    return examples


def check_examples(task: Task, drawn: Examples, runs: int, count: int) -> None:
    """Refuse examples whose kinds or shapes differ from the domain; inputs are not read."""
    name, domain = describe(task), task.domain
    if not isinstance(drawn, Examples):
        raise UserError(
            f"The task {name} drew {type(drawn).__name__}. Return Examples, such as "
            "Examples(labels, dense=x)."
        )
    if not isinstance(drawn.facts, Mapping):
        raise UserError(
            f"The task {name} drew facts as {type(drawn.facts).__name__}. Return a mapping, "
            'such as Examples(labels, dense=x, facts={"part": part}).'
        )
    arrays = {"labels": drawn.labels, **{f"the fact {k!r}": v for k, v in drawn.facts.items()}}
    given = {"packed": drawn.packed, "dense": drawn.dense, "hot": drawn.hot}
    inputs = {what: array for what, array in given.items() if array is not None}
    for what, array in (arrays | inputs).items():
        if not isinstance(array, np.ndarray):
            raise UserError(
                f"The task {name} drew {what} as {type(array).__name__}. Return NumPy arrays."
            )
    domain.check_labels(drawn.labels, name)
    if len(inputs) != 1:
        raise UserError(
            f"The task {name} drew inputs in {len(inputs)} ways. Give Examples one of packed, "
            "dense and hot."
        )
    ((what, array),) = inputs.items()
    # Packed and one-hot inputs are not unpacked: engines take them as they are.
    found = array.shape if what == "dense" else (*array.shape[:2], drawn.n_bits)
    if found != (runs, count, *domain.input_shape):
        raise UserError(
            f"The task {name} drew inputs of shape {found}, and its domain asks for "
            f"{(runs, count, *domain.input_shape)}. Return such inputs from draw, or state another "
            "domain."
        )
    if what == "dense" and array.dtype.kind == "f" and has_users(task):
        finite = np.isfinite(array).reshape(runs, count, -1).all(axis=2)
        if not finite.all():
            raise UserError(
                f"The task {name} drew {int((~finite).sum())} of {finite.size} examples with "
                "inputs that are NaN or infinite. Return finite floats from draw."
            )
    whole = isinstance(domain.inputs, Tokens)
    if what == "dense" and array.dtype.kind not in ("iu" if whole else "f"):
        raise UserError(
            f"The task {name} drew inputs of the type {array.dtype}, and its domain asks for "
            f"{'whole numbers' if whole else 'floats'}. Return such inputs from draw."
        )
    for what, array in arrays.items():
        if array.shape[:2] != (runs, count):
            raise UserError(
                f"The task {name} was asked for {count} examples of {runs} runs, and drew {what} "
                f"of shape {array.shape}. Return (run, example) first."
            )
    if isinstance(task, HasParts) and task.parts and "part" not in drawn.facts:
        raise UserError(
            f"The task {name} is a mixture, and drew no fact 'part'. Return from draw which of its "
            f"{len(task.parts)} parts each example is of."
        )


class HasSupport(ABC):
    """A task on inputs of n places, of which a few are relevant: those given, or each run's own.

    A subclass is a frozen dataclass with the fields `n`, `support` and that of the name `letter`.
    """

    letter: ClassVar[str] = "s"  # the paper's, of the number of relevant places
    n: int
    support: tuple[int, ...] | None

    def __post_init__(self) -> None:
        self.check_support()

    @property
    def n_relevant(self) -> int:
        """Number of relevant places."""
        size: int = getattr(self, self.letter)
        return size

    def supports(self, seeds: Sequence[int]) -> NDArray[np.int64]:
        """Return each run's relevant bits, shape (run, bit): those given, or the run's own draw."""
        if self.support is not None:
            return np.tile(np.array(self.support, np.int64), (len(seeds), 1))
        return Streams(seeds, "support").subsets(self.n, self.n_relevant, 0, 1)[:, 0]

    def check_support(self) -> None:
        """Refuse a support that does not fit the sizes."""
        settle(self)
        task, letter = type(self).__name__, self.letter
        n, size, support = self.n, self.n_relevant, self.support
        check_size(task, n, size, least=1, letter=letter)
        if support is None:
            return
        if len(support) != size:
            raise UserError(
                f"{task}: support={support} names {len(support)} bits, but {letter}={size}. "
                f"Give {size} different bits."
            )
        if repeated := sorted({bit for bit in support if support.count(bit) > 1}):
            raise UserError(
                f"{task}: support={support} repeats the bits {repeated}. Name each bit once."
            )
        if outside := [bit for bit in support if not 0 <= bit < n]:
            raise UserError(
                f"{task}: support={support} names the bits {outside}, but n={n} has only the "
                f"bits 0 to {n - 1}. Raise n or choose lower bits."
            )


class OnSupport(HasSupport, Finite):
    """A function of a few relevant bits of an input uniform on {−1, +1}^n.

    A subclass says what the label of the relevant bits is.
    """

    @abstractmethod
    def evaluate(self, bits: Booleans) -> Booleans:
        """Return the labels' bits from the relevant bits, shape (…, n_relevant) to (…)."""

    @property
    def domain(self) -> Domain:
        """The n bits, and two classes: a label is a bit."""
        return Domain(Bits(self.n), Classes(2))

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw uniform inputs and their labels."""
        packed = Streams(seeds, purpose).packed(self.n, start, count)
        return Examples(self.label(packed, self.supports(seeds)), packed, self.n)

    @property
    def n_possible(self) -> int:
        """The inputs of n bits."""
        return int(2**self.n)

    def at(self, seeds: Sequence[int], places: NDArray[np.int64]) -> Examples:
        """Return the inputs whose bits are the binary digits of `places`, lowest first."""
        packed = places.astype(np.uint64)[..., None]
        return Examples(self.label(packed, self.supports(seeds)), packed, self.n)

    def label(self, packed: Words, supports: NDArray[np.int64]) -> Booleans:
        """Label packed inputs (run, example, word) by each run's relevant bits (run, bit)."""
        place = supports[:, None, :]
        words = np.take_along_axis(packed, place // 64, axis=-1)  # (run, example, bit)
        bits = words >> (place % 64).astype(np.uint64) & np.uint64(1)
        return self.evaluate(bits.astype(np.uint8))
