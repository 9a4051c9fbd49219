"""N-grams in context: the next token depends on the n − 1 before it [TH §8.2.1, §8.3.3]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError, check_whole, nearest, require
from petridish.seeds import Streams
from petridish.tasks.base import Examples, HasStrategies
from petridish.tasks.chain_laws import flat_rows
from petridish.tasks.domain import Classes, Domain, Tokens
from petridish.theory.stationary import stationary

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
NAMES = ("uniform", "unigram", "bigram", "trigram")
MOST_CONTEXTS = 1024
EXAMPLES_AT_ONCE = 64


def strategy_name(n: int) -> str:
    """Return the name of the strategy that counts n-grams: `unigram`, …, `4-gram`."""
    return NAMES[n] if n < len(NAMES) else f"{n}-gram"


@dataclass(frozen=True)
class NGrams(HasStrategies):
    r"""The next token of a sequence in which it depends on the n − 1 tokens before it.

    For each of the :math:`k^{n-1}` contexts the law of the next token is uniform on the probability
    vectors. A sequence begins with a context from the stationary law of the chain of contexts; one
    token more than a model sees is drawn. The fact `rows` has the laws, one row per context, whose
    first token counts most; the fact `contexts` its stationary law.

    Strategies: `uniform`, `unigram`, `bigram`, … up to n. The one of m counts what followed the
    last m − 1 tokens earlier in the sequence, and adds one to each count; before there are as many
    tokens it is uniform. `truth` is the law given the tokens so far: of a beginning shorter than a
    context, the mean over the contexts that end with it.

    Attributes
    ----------
    k, length : int
        Number of states, and of the tokens that a model sees (the paper's t).
    n : int
        Tokens of an n-gram: 3 for trigrams, 2 for Markov chains.
    """

    name: ClassVar[str] = "ngrams"

    k: int
    length: int
    n: int = 3

    def __post_init__(self) -> None:
        check_whole("NGrams", 2, k=self.k, n=self.n)
        check_whole("NGrams", 1, length=self.length)
        require(
            self.length >= self.n,
            f"NGrams: length={self.length}, and a sequence of so few tokens has no n-gram of "
            f"n={self.n} tokens. Raise length or lower n.",
        )
        require(
            self.n_contexts <= MOST_CONTEXTS,
            f"NGrams: k={self.k} and n={self.n} give {self.n_contexts} contexts, and at most "
            f"{MOST_CONTEXTS} are drawn. Lower k or n.",
        )

    @property
    def n_contexts(self) -> int:
        """Number of contexts."""
        return int(self.k ** (self.n - 1))

    @property
    def domain(self) -> Domain:
        """Tokens, and the next one at every position."""
        return Domain(Tokens(self.k, self.length), Classes(self.k, positions=self.length))

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies, the simplest first."""
        return *(strategy_name(n) for n in range(self.n + 1)), "truth"

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw sequences: words of the stream for the laws, one for the first context, the rest.

        Tokens of the first context come from one word, each later one from its own.
        """
        k, contexts, order = self.k, self.n_contexts, self.n - 1
        later = self.length + 1 - order
        words = contexts * (k - 1) + 1 + later
        drawn = Streams(seeds, purpose).uniforms(start * words, count * words)
        drawn = drawn.reshape(len(seeds), count, words)
        of_rows = drawn[..., : contexts * (k - 1)].reshape(len(seeds), count, contexts, k - 1)
        rows = flat_rows(of_rows, k)
        law = stationary(_chain_of_contexts(rows))
        chances = drawn[..., contexts * (k - 1) :]
        # Rounding may leave the last bound below 1, and a chance above it.
        context = (chances[..., :1] >= np.cumsum(law, axis=-1)[..., :-1]).sum(axis=-1)
        tokens = np.empty((len(seeds), count, self.length + 1), np.int64)
        for place in range(order):
            tokens[..., place] = context // k ** (order - 1 - place) % k
        tokens[..., order:] = _walk(rows, context, chances[..., 1:])
        facts = {"rows": rows, "contexts": law}
        return Examples(tokens[..., 1:], dense=tokens[..., :-1], facts=facts)

    def predict(self, strategy: str, examples: Examples) -> Floats:
        """Return the probabilities of the next token, shape (run, example, position, token)."""
        tokens = np.asarray(examples.x, np.int64)
        if strategy == "truth":
            return self._truth(tokens, examples.facts["rows"], examples.facts["contexts"])
        if strategy not in self.strategies:
            raise UserError(
                f"The task {describe(self)} knows no strategy called {strategy!r}. "
                f"{nearest(strategy, self.strategies)}"
            )
        n = self.strategies.index(strategy)
        if n == 0:
            return np.full((*tokens.shape, self.k), 1 / self.k)
        return _after_contexts(tokens, self.k, n - 1)

    def _truth(self, tokens: Whole, rows: Floats, law: Floats) -> Floats:
        found = np.empty((*tokens.shape, self.k))
        order = self.n - 1
        for place in range(tokens.shape[-1]):
            length = min(place + 1, order)
            code = _codes(tokens[..., place + 1 - length : place + 1], self.k)
            if length == order:
                found[..., place, :] = np.take_along_axis(rows, code[..., None, None], axis=2)[
                    :, :, 0
                ]
                continue
            # The first tokens of the first context are its most significant digits. What comes
            # next is its next digit, or, given the whole, what its row says.
            weight = law.reshape(*law.shape[:2], self.k**length, self.k, -1).sum(axis=-1)
            chosen = np.take_along_axis(weight, code[..., None, None], axis=2)[:, :, 0]
            found[..., place, :] = chosen / chosen.sum(axis=-1, keepdims=True)
        return found


def _walk(rows: Floats, context: Whole, chances: Floats) -> Whole:
    """Return the tokens (run, example, place) that follow a context, each from one chance.

    All sequences go on together, place by place, on arrays without short axes.
    """
    *shape, contexts, k = rows.shape
    bounds = np.cumsum(rows, axis=-1)[..., :-1].reshape(-1, k - 1).T.copy()  # (bound, row)
    by_place = np.moveaxis(chances, -1, 0).reshape(chances.shape[-1], -1)
    context = context.reshape(-1)
    first = np.arange(len(context)) * contexts  # each sequence's row 0
    tokens = np.empty(by_place.shape, np.int64)
    for token, chance in zip(tokens, by_place, strict=True):
        row = first + context
        token[...] = 0
        for bound in bounds:
            token += chance >= bound[row]
        context = context * k % contexts + token
    return np.moveaxis(tokens.reshape(len(tokens), *shape), 0, -1)  # of no sequences too


def _codes(tokens: Whole, k: int) -> Whole:
    """Return numbers whose digits are the tokens, the first the most significant."""
    code = np.zeros(tokens.shape[:-1], np.int64)
    for place in range(tokens.shape[-1]):
        code = code * k + tokens[..., place]
    return code


def _chain_of_contexts(rows: Floats) -> Floats:
    """Return the transition matrices of contexts, shape (…, context, context)."""
    contexts, k = rows.shape[-2:]
    chain = np.zeros((*rows.shape[:-1], contexts))
    for context in range(contexts):
        for token in range(k):
            chain[..., context, context * k % contexts + token] += rows[..., context, token]
    return chain


def _after_contexts(tokens: Whole, k: int, order: int) -> Floats:
    """Return (count + 1) / (total + k) of what followed the last `order` tokens before."""
    runs, examples, length = tokens.shape
    flat = tokens.reshape(-1, length)
    counts = np.zeros((*flat.shape, k), np.float32)  # whole numbers: exact
    # Number i is the context before token order + i; the last is that of the next token.
    before = np.stack(
        [_codes(flat[:, p - order : p], k) for p in range(order, length + 1)], axis=-1
    )
    earlier = np.tril(np.ones((length - order, length - order), bool))
    hot = (flat[:, order:, None] == np.arange(k)).astype(np.float32)
    for low in range(0, len(flat), EXAMPLES_AT_ONCE):
        part = slice(low, low + EXAMPLES_AT_ONCE)
        same = (before[part, None, :-1] == before[part, 1:, None]) & earlier
        counts[part, order:] = same.astype(np.float32) @ hot[part]
    found: Floats = (counts + 1.0) / (counts.sum(axis=-1, keepdims=True) + float(k))
    return found.astype(np.float64).reshape(runs, examples, length, k)
