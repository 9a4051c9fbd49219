"""Markov chains in context: every sequence comes from a chain of its own [TH §8.2]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError, check_one_of, check_whole, nearest, require
from petridish.seeds import Streams
from petridish.tasks.base import Examples, HasStrategies
from petridish.tasks.chain_laws import (
    dirichlet_rows,
    doubly_rows,
    flat_rows,
    symmetric_rows,
    words_of_doubly,
)
from petridish.tasks.domain import Classes, Domain, Tokens
from petridish.theory.chain_predictors import (
    posterior_of_staying,
    posterior_predictions,
    transition_counts,
)
from petridish.theory.stationary import stationary
from petridish.values import LATER

Floats = NDArray[np.float64]
Rows = Literal["dirichlet", "unigram", "doubly", "symmetric"]
KINDS: tuple[Rows, ...] = ("dirichlet", "unigram", "doubly", "symmetric")


@dataclass(frozen=True)
class MarkovChains(HasStrategies):
    r"""The next token at every position of a Markov chain whose transition matrix is unknown.

    A sequence of `length` tokens is drawn from a matrix of its own, beginning with its stationary
    law; one token more is drawn, so that every position has a label. The fact `rows` is the matrix.

    Strategies, after the tokens :math:`x_1 … x_p` with :math:`n_j` tokens j and :math:`c_{ij}`
    transitions from i to j [TH (8.1)–(8.3), where N is :math:`N_i = \sum_j c_{ij}`]:

    - `uniform`: 1/k;
    - `unigram`: :math:`(n_j + α)/(p + kα)`, for the rows `unigram` the posterior mean;
    - `bigram`: :math:`(c_{x_p j} + α)/(N_{x_p} + kα)`, for the rows `dirichlet` the posterior mean
      but for what the first token says of the matrix;
    - `bayes`: the posterior mean, whatever the rows; of doubly stochastic rows with k > 2 it is
      not offered;
    - `truth`: row :math:`x_p` of the matrix.

    After (0, 1, 0) with k = 2 and α = 1 they predict the token 1 with probability 1/2, 2/5, 2/3 and
    (`bayes`) 0.6181.

    Attributes
    ----------
    k, length : int
        Number of states, and of the tokens that a model sees (the paper's t).
    rows : "dirichlet", "unigram", "doubly" or "symmetric"
        The law of the matrix: each row with the law Dirichlet(α, …, α), for α = 1 uniform on the
        probability vectors; one such row for all states, so that tokens are independent; uniform on
        the doubly stochastic matrices, under which unigrams say nothing; or a on the diagonal and
        (1 − a)/(k − 1) elsewhere, with a uniform on (½ − ε, ½ + ε) [TH Cor. E.2, Prop. E.3].
    alpha, epsilon : float
        The α and the ε of these laws.
    start : "stationary" or "uniform"
        The law of the first token.
    """

    name: ClassVar[str] = "markov"

    k: int
    length: int
    rows: Rows = "dirichlet"
    alpha: float = field(default=1.0, metadata=LATER)
    start: Literal["stationary", "uniform"] = field(default="stationary", metadata=LATER)
    epsilon: float = field(default=0.5, metadata=LATER)

    def __post_init__(self) -> None:
        check_whole("MarkovChains", 2, k=self.k)
        check_whole("MarkovChains", 1, length=self.length)
        if self.rows not in KINDS:
            raise UserError(f"MarkovChains: rows={self.rows!r}. {nearest(str(self.rows), KINDS)}")
        check_one_of("MarkovChains", ("stationary", "uniform"), start=self.start)
        require(
            0 < self.alpha < math.inf,
            f"MarkovChains: alpha={self.alpha}. Give a finite number above 0.",
        )
        require(
            0 < self.epsilon <= 0.5,
            f"MarkovChains: epsilon={self.epsilon}. Give a number above 0, at most 0.5.",
        )
        needs = {"alpha": ("dirichlet", "unigram"), "epsilon": ("symmetric",)}
        for name, kinds in needs.items():
            used = self.rows in kinds or getattr(self, name) == {"alpha": 1.0, "epsilon": 0.5}[name]
            require(
                used,
                f"MarkovChains: {name}={getattr(self, name)} has no effect with "
                f"rows={self.rows!r}. Leave it out, or give rows={kinds[0]!r}.",
            )

    @property
    def domain(self) -> Domain:
        """Tokens, and the next one at every position."""
        return Domain(Tokens(self.k, self.length), Classes(self.k, positions=self.length))

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies, the simplest first."""
        known = self.rows != "doubly" or self.k == 2
        return "uniform", "unigram", "bigram", *(("bayes",) if known else ()), "truth"

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw sequences: some words of the stream for the matrix, then one word per token."""
        size, of_matrix = self.length + 1, self._words
        words = of_matrix + size
        drawn = Streams(seeds, purpose).uniforms(start * words, count * words)
        drawn = drawn.reshape(len(seeds), count, words)
        rows = self._rows(drawn[..., :-size], list(seeds), purpose, start)
        first = (
            stationary(rows) if self.start == "stationary" else np.full(rows.shape[:-1], 1 / self.k)
        )
        tokens = _walk(rows, first, drawn[..., -size:])
        return Examples(tokens[..., 1:], dense=tokens[..., :-1], facts={"rows": rows})

    @property
    def _words(self) -> int:
        """Uniform numbers that a matrix takes."""
        if self.rows == "symmetric":
            return 1
        if self.rows == "doubly":
            return words_of_doubly(self.k)
        return self.k * (self.k - 1) if self.alpha == 1 else self.k**2

    def _rows(self, uniforms: Floats, seeds: list[int], purpose: str, start: int) -> Floats:
        """Return a matrix from the uniform numbers of each example, shape (run, example, k, k)."""
        k = self.k
        if self.rows == "symmetric":
            return symmetric_rows(uniforms[..., 0], k, self.epsilon)
        if self.rows == "doubly":
            return doubly_rows(uniforms, k, seeds, purpose, start)
        by_row = uniforms.reshape(*uniforms.shape[:-1], k, -1)
        rows = flat_rows(by_row, k) if self.alpha == 1 else dirichlet_rows(by_row, self.alpha)
        if self.rows == "unigram":
            rows[...] = rows[..., :1, :]
        return rows

    def predict(self, strategy: str, examples: Examples) -> Floats:
        """Return the probabilities of the next token, shape (run, example, position, token)."""
        return self._predict(strategy, examples, np.arange(self.length))

    def predict_last(self, strategy: str, examples: Examples) -> Floats:
        """Return those after the last token alone, shape (run, example, 1, token)."""
        return self._predict(strategy, examples, np.arange(self.length - 1, self.length))

    def _predict(self, strategy: str, examples: Examples, at: NDArray[np.int64]) -> Floats:
        """Return the predictions at some positions."""
        tokens, k = np.asarray(examples.x, np.int64), self.k
        here = tokens[..., at]  # (run, example, position)
        if strategy not in self.strategies:
            raise UserError(
                f"The task {describe(self)} knows no strategy called {strategy!r}. "
                f"{nearest(strategy, self.strategies)}"
            )
        if strategy == "uniform":
            return np.full((*here.shape, k), 1 / k)
        if strategy == "truth":
            rows: Floats = np.take_along_axis(examples.facts["rows"], here[..., None], axis=2)
            return rows
        if strategy == "unigram" or (strategy == "bayes" and self.rows == "unigram"):
            seen = np.cumsum(tokens[..., None] == np.arange(k), axis=2)[:, :, at]
            return _smoothed(seen, self.alpha)
        counts = transition_counts(tokens, k, at)  # (run, example, position, from, to)
        bigram = np.take_along_axis(counts, here[..., None, None], axis=-2)[..., 0, :]
        if strategy == "bigram" or (self.rows == "dirichlet" and self.start == "uniform"):
            return _smoothed(bigram, self.alpha)
        if self.rows != "dirichlet":  # symmetric, or doubly stochastic with two states
            stay = posterior_of_staying(counts, self.epsilon)[..., None]
            stays = np.arange(k) == here[..., None]
            return np.where(stays, stay, (1 - stay) / (k - 1))
        return posterior_predictions(counts, tokens[..., :1], here, self.alpha)


def _smoothed(counts: NDArray[Any], alpha: float) -> Floats:
    """Return (count + α) / (sum of counts + kα) over the last axis."""
    total = counts.sum(axis=-1, keepdims=True) + alpha * counts.shape[-1]
    found: Floats = (counts + alpha) / total
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
