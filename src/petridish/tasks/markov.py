"""Markov chains in context: every sequence comes from a chain of its own [TH §8.2]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError, check_whole, nearest
from petridish.seeds import Streams
from petridish.tasks.base import Examples, HasStrategies
from petridish.tasks.domain import Classes, Domain, Tokens

Floats = NDArray[np.float64]
Rows = Literal["dirichlet", "unigram", "doubly"]
KINDS: tuple[Rows, ...] = ("dirichlet", "unigram", "doubly")
MOST_DOUBLY = 6  # states; of 43 matrices one is then doubly stochastic, of 150 with one state more


@dataclass(frozen=True)
class MarkovChains(HasStrategies):
    r"""The next token at every position of a Markov chain whose transition matrix is unknown.

    A sequence of `length` tokens is drawn from a matrix of its own, beginning with its stationary
    law; one token more is drawn, so that every position has a label. The fact `rows` is the matrix.

    Strategies, after the tokens :math:`x_1 … x_p` with :math:`n_j` tokens j and :math:`c_{ij}`
    transitions from i to j [TH (8.1)–(8.3), where N is :math:`N_i = \sum_j c_{ij}`]:

    - `uniform`: 1/k;
    - `unigram`: :math:`(n_j + 1)/(p + k)`, for the rows `unigram` the posterior mean;
    - `bigram`: :math:`(c_{x_p j} + 1)/(N_{x_p} + k)`, for the rows `dirichlet` the posterior mean
      but for what the first token says of the matrix;
    - `truth`: row :math:`x_p` of the matrix.

    After (0, 1, 0) with k = 2 they predict the token 1 with probability 1/2, 2/5 and 2/3.

    Attributes
    ----------
    k, length : int
        Number of states, and of the tokens that a model sees (the paper's t).
    rows : "dirichlet", "unigram" or "doubly"
        The law of the matrix: each row uniform on the probability vectors (Dirichlet(1, …, 1));
        one such row for all states, so that tokens are independent; or uniform on the doubly
        stochastic matrices, under which unigrams say nothing.
    """

    name: ClassVar[str] = "markov"

    k: int
    length: int
    rows: Rows = "dirichlet"

    def __post_init__(self) -> None:
        check_whole("MarkovChains", 2, k=self.k)
        check_whole("MarkovChains", 1, length=self.length)
        if self.rows not in KINDS:
            raise UserError(f"MarkovChains: rows={self.rows!r}. {nearest(str(self.rows), KINDS)}")
        if self.rows == "doubly" and self.k > MOST_DOUBLY:
            raise UserError(
                f"MarkovChains: rows='doubly' with k={self.k} states. Doubly stochastic matrices "
                f"are drawn by rejection, which is feasible up to k={MOST_DOUBLY}. Lower k."
            )

    @property
    def domain(self) -> Domain:
        """Tokens, and the next one at every position."""
        return Domain(Tokens(self.k, self.length), Classes(self.k, positions=self.length))

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies, the simplest first."""
        return "uniform", "unigram", "bigram", "truth"

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw sequences: k(k − 1) words of the stream for the matrix, then one word per token."""
        k, size = self.k, self.length + 1
        words = k * (k - 1) + size
        drawn = Streams(seeds, purpose).uniforms(start * words, count * words)
        drawn = drawn.reshape(len(seeds), count, words)
        rows = self._rows(drawn[..., :-size])
        if self.rows == "doubly":
            self._draw_again(rows, seeds, purpose, start)
        tokens = _walk(rows, stationary(rows), drawn[..., -size:])
        return Examples(tokens[..., 1:], dense=tokens[..., :-1], facts={"rows": rows})

    def _rows(self, uniforms: Floats) -> Floats:
        """Return matrices from k(k − 1) uniform numbers each, shape (…, k, k).

        The k gaps that k − 1 uniform points leave in [0, 1] have the law Dirichlet(1, …, 1), and
        their differences are exact. Doubly stochastic matrices have k − 1 such rows, and the last
        is what is left of each column; negative entries mean that they have to be drawn again.
        """
        points = np.sort(uniforms.reshape(*uniforms.shape[:-1], self.k, self.k - 1), axis=-1)
        rows: Floats = np.diff(points, axis=-1, prepend=0.0, append=1.0)
        if self.rows == "unigram":
            rows[...] = rows[..., :1, :]
        elif self.rows == "doubly":
            rows[..., -1, :] = 1 - rows[..., :-1, :].sum(axis=-2)
        return rows

    def _draw_again(self, rows: Floats, seeds: Sequence[int], purpose: str, start: int) -> None:
        """Replace the matrices that are not doubly stochastic, in place.

        Accepted ones are uniform on their polytope: its (k − 1)² free entries are uniform before.
        Attempt a of example i has its own words, so that no example depends on another.
        """
        count, words, attempt = rows.shape[1], self.k * (self.k - 1), 0
        while (wrong := (rows[..., -1, :] < 0).any(axis=-1)).any():
            attempt += 1  # a sample's name has no space: this stream is no other's
            again = Streams(seeds, f"{purpose}/attempt {attempt}")
            drawn = again.uniforms(start * words, count * words)
            rows[wrong] = self._rows(drawn.reshape(len(seeds), count, words)[wrong])

    def predict(self, strategy: str, examples: Examples) -> Floats:
        """Return the probabilities of the next token, shape (run, example, position, token)."""
        tokens, k = examples.x, self.k
        if strategy == "uniform":
            return np.full((*tokens.shape, k), 1 / k)
        if strategy == "truth":
            rows: Floats = np.take_along_axis(
                examples.facts["rows"], tokens[..., None].astype(np.int64), axis=2
            )
            return rows
        seen = tokens[..., None] == np.arange(k)  # (run, example, position, token)
        if strategy == "unigram":
            return _add_one(np.cumsum(seen, axis=2))
        if strategy == "bigram":
            counts = np.zeros(seen.shape)
            for state in range(k):
                after = np.zeros(seen.shape)
                after[:, :, 1:] = seen[:, :, 1:] & seen[:, :, :-1, state, None]
                here = seen[..., state, None]
                counts += np.where(here, np.cumsum(after, axis=2), 0)
            return _add_one(counts)
        raise UserError(
            f"The task {describe(self)} knows no strategy called {strategy!r}. "
            f"{nearest(strategy, self.strategies)}"
        )


def _add_one(counts: NDArray[Any]) -> Floats:
    """Return (count + 1) / (sum of counts + k) over the last axis."""
    found: Floats = (counts + 1) / (counts.sum(axis=-1, keepdims=True) + counts.shape[-1])
    return found


def _walk(rows: Floats, first: Floats, uniforms: Floats) -> NDArray[np.int64]:
    """Return the tokens of chains, shape (run, example, token), each from one uniform number."""
    bounds = np.cumsum(rows, axis=-1)[..., :-1]  # (run, example, state, bound)
    begin = np.cumsum(first, axis=-1)[..., :-1]
    # Where each state would lead: all comparisons at once, then one look-up per token.
    leads = np.zeros((*uniforms.shape, rows.shape[-1]), np.int64)  # (run, example, token, state)
    for place in range(bounds.shape[-1]):
        leads += uniforms[..., None] >= bounds[..., None, :, place]
    tokens = np.empty(uniforms.shape, np.int64)
    tokens[..., 0] = (uniforms[..., :1] >= begin).sum(axis=-1)
    for place in range(1, uniforms.shape[-1]):
        before = tokens[..., place - 1 : place]
        tokens[..., place : place + 1] = np.take_along_axis(leads[..., place, :], before, axis=-1)
    return tokens


def stationary(rows: Floats) -> Floats:
    """Return the stationary law of transition matrices (…, k, k), shape (…, k).

    By leaving out one state after the other [Grassmann, Taksar & Heyman 1985]: nothing is
    subtracted, so that the law is exact to rounding, however seldom a state is left.
    """
    left, k = np.array(rows, np.float64), rows.shape[-1]
    for state in range(k - 1, 0, -1):
        out = left[..., state, :state].sum(axis=-1)
        left[..., :state, state] /= out[..., None]
        left[..., :state, :state] += left[..., :state, state, None] * left[..., None, state, :state]
    law = np.ones(rows.shape[:-1])
    for state in range(1, k):
        law[..., state] = (law[..., :state] * left[..., :state, state]).sum(axis=-1)
    law /= law.sum(axis=-1, keepdims=True)
    return law
