"""Classes of one's own, of every kind: what a user might bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from petridish.seeds import Streams
from petridish.tasks import (
    Classes,
    Domain,
    Examples,
    HasParts,
    HasStrategies,
    Reals,
    Tokens,
    Values,
)
from petridish.training import Instrument, MeanOfExamples, Metric, Reading


@dataclass(frozen=True)
class Waves:
    """Two real targets of n real inputs."""

    name: ClassVar[str] = "waves"
    n: int = 3

    @property
    def domain(self) -> Domain:
        """Return vectors, and two numbers."""
        return Domain(Reals((self.n,)), Values(2))

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw normal inputs."""
        drawn = Streams(seeds, purpose).normals(start * self.n, count * self.n)
        x = drawn.reshape(len(seeds), count, self.n).astype(np.float32)
        return Examples(np.stack([np.sin(x.sum(-1)), x[..., 0]], axis=-1), dense=x)


@dataclass(frozen=True)
class Stripes:
    """Images whose stripes run down or across; every fourth has no label."""

    name: ClassVar[str] = "stripes"
    side: int = 6

    @property
    def domain(self) -> Domain:
        """Return images of one channel, and two classes."""
        return Domain(Reals((1, self.side, self.side)), Classes(2))

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw noise, and add the stripes."""
        pixels = self.side**2
        noise = Streams(seeds, purpose).normals(start * pixels, count * pixels)
        x = noise.reshape(len(seeds), count, 1, self.side, self.side).astype(np.float32)
        labels = Streams(seeds, f"{purpose}/labels").bits(start, count).astype(np.int64)
        stripes = np.where(np.arange(self.side) % 2, 1.0, -1.0).astype(np.float32)
        across = np.broadcast_to(stripes[:, None], (self.side, self.side))
        x += np.where(labels[..., None, None, None], across, across.T)
        none = (np.arange(start, start + count) % 4 == 3) & (purpose == "train")
        return Examples(np.where(none, -1, labels), dense=x)


@dataclass(frozen=True)
class Coins(HasStrategies, HasParts):
    """Sequences of biased coins, two kinds of them; the label of a position is the next toss."""

    name: ClassVar[str] = "coins"
    length: int = 8
    bias: float = 0.8
    parts: ClassVar[tuple[str, ...]] = ("heads", "tails")
    strategies: ClassVar[tuple[str, ...]] = ("truth", "uniform")

    @property
    def domain(self) -> Domain:
        """Return tokens, and a class at every position."""
        return Domain(Tokens(2, self.length), Classes(2, positions=self.length))

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Toss one coin more than is shown; the first position has no label."""
        size = self.length + 1
        uniform = Streams(seeds, purpose).uniforms(start * size, count * size)
        kinds = Streams(seeds, f"{purpose}/kinds").bits(start, count).astype(np.int64)
        heads = np.where(kinds == 0, self.bias, 1 - self.bias)  # probability of the token 0
        tossed = (uniform.reshape(len(seeds), count, size) >= heads[..., None]).astype(np.int64)
        labels = tossed[..., 1:].copy()
        labels[..., 0] = -1
        facts = {"part": kinds, "heads": heads}
        return Examples(labels, dense=tossed[..., :-1], facts=facts)

    def predict(self, strategy: str, examples: Examples) -> NDArray[np.floating[Any]]:
        """Return the true coin, or a fair one."""
        heads = examples.facts["heads"] if strategy == "truth" else 0.5
        heads = np.broadcast_to(np.asarray(heads)[..., None], examples.labels.shape)
        return np.stack([heads, 1 - heads], axis=-1)


@dataclass(frozen=True)
class Dropped:
    """A module with dropout, noise, two kinds of normalisation and running means."""

    name: ClassVar[str] = "dropped"
    width: int = 8
    rate: float = 0.25

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return layers one after another."""
        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(domain.n_inputs, self.width),
            nn.BatchNorm1d(self.width),
            nn.ReLU(),
            nn.Dropout(self.rate),
            nn.LayerNorm(self.width),
            Noisy(),
            nn.Linear(self.width, n_outputs),
        )


class Noisy(nn.Module):
    """Adds a little noise in training."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the input and noise."""
        return x + 0.1 * torch.randn_like(x) if self.training else x


@dataclass(frozen=True)
class Convolved:
    """A small convolution."""

    name: ClassVar[str] = "convolved"

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return a convolution, a channel dropout and a mean over the image."""
        assert isinstance(domain.inputs, Reals)
        return nn.Sequential(
            nn.Conv2d(domain.inputs.shape[0], 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Dropout2d(0.2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4, n_outputs),
        )


@dataclass(frozen=True)
class Reader:
    """An embedding and a causal mean: an answer at every position."""

    name: ClassVar[str] = "reader"
    width: int = 6

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the module."""
        assert isinstance(domain.inputs, Tokens)
        return ReaderModule(domain.inputs.vocabulary, self.width, n_outputs)


class ReaderModule(nn.Module):
    """The mean of all embeddings so far passes through `mixed`."""

    def __init__(self, vocabulary: int, width: int, n_outputs: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.mixed = nn.Identity()
        self.output = nn.Linear(width, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return outputs (batch, position, output)."""
        seen = self.embedding(x).cumsum(dim=1)
        count = torch.arange(1, x.shape[1] + 1).view(-1, 1)
        outputs: Tensor = self.output(self.mixed(seen / count))
        return outputs


@dataclass(frozen=True)
class Recurrent:
    """An LSTM, which torch.func cannot stack."""

    name: ClassVar[str] = "recurrent"
    width: int = 5

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the module."""
        return RecurrentModule(self.width, n_outputs)


class RecurrentModule(nn.Module):
    """Reads numbers one after another."""

    def __init__(self, width: int, n_outputs: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, width, batch_first=True)
        self.output = nn.Linear(width, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the answer at the end."""
        outputs: Tensor = self.output(self.lstm(x.unsqueeze(-1))[0][:, -1])
        return outputs


@dataclass(frozen=True)
class Confidence(Metric):
    """The probability of the most likely class, over all positions."""

    name: ClassVar[str] = "confidence"
    on: str = "test"

    def each(self, outputs: Tensor, labels: Tensor, facts: Any) -> Tensor:
        """Return one number per example."""
        return outputs.softmax(dim=-1).amax(dim=-1).flatten(2).mean(dim=2)


@dataclass(frozen=True)
class Mixed(Instrument):
    """What passes through a part of the module, its mean by position."""

    name: ClassVar[str] = "mixed"
    part: str = "mixed"
    at: tuple[int, ...] | None = None

    def read(self, reading: Reading) -> NDArray[Any]:
        """Return one number per position."""
        found: NDArray[Any] = reading.capture(self.part, n=16).mean(dim=(0, 2)).numpy()
        return found


@dataclass(frozen=True)
class Ramp:
    """An activation with a slope of its own for each neuron, made at every call."""

    name: ClassVar[str] = "ramp"

    def __call__(self, z: Tensor) -> Tensor:
        """Return the sloped ReLU."""
        return z.relu() * torch.linspace(0.5, 1.5, z.shape[-1])


@dataclass(frozen=True)
class RampLoss(MeanOfExamples):
    """A logistic loss that weighs each place of the batch; its weights are made at every call."""

    name: ClassVar[str] = "ramp_loss"
    asks: bool = False

    def n_outputs(self, domain: Domain) -> int:
        """Return 1."""
        return 1

    def each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each example."""
        if self.asks and (labels < 0).any():
            raise ValueError("an example has no label")
        margin = outputs.squeeze(-1) * (1 - 2 * labels.float())
        return nn.functional.softplus(-margin) * torch.linspace(0.5, 1.5, margin.shape[-1])


@dataclass(frozen=True)
class RampMetric(Metric):
    """Outputs, each weighed by its place among those that are measured at once."""

    name: ClassVar[str] = "ramp_metric"
    on: str = "test"
    asks: bool = False

    def each(self, outputs: Tensor, labels: Tensor, facts: Any) -> Tensor:
        """Return one number per example."""
        found = outputs.squeeze(-1)
        if self.asks:
            found = found / max(found.abs().max().item(), 1e-9)
        return found * torch.arange(found.shape[-1])


class Asking(nn.Module):
    """A module that asks for a number."""

    def __init__(self, n_inputs: int, n_outputs: int) -> None:
        super().__init__()
        self.line = nn.Linear(n_inputs, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return outputs of one sign or the other."""
        found: Tensor = self.line(x)
        return found if found.abs().max().item() >= 0 else -found


@dataclass(frozen=True)
class AsksInside:
    """The model of such a module."""

    name: ClassVar[str] = "asks_inside"

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the module."""
        return Asking(domain.n_inputs, n_outputs)
