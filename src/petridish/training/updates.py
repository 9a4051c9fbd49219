"""The optimisers' steps on a stack of runs, each run with its own rate and decay."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from petridish.training.optimisers import SGD, Adam, AdamW, Factors, Piece
from petridish.training.spec import RunSpec


class Update(ABC):
    """One optimiser for the trained weights of a stack; `keep` drops runs from it."""

    def __init__(self, specs: Sequence[RunSpec], weights: Sequence[Tensor]) -> None:
        training = specs[0].training
        self.schedule, self.clip = training.schedule, training.clip
        self.parameters = specs[0].parameters
        rates = [spec.training.learning_rate for spec in specs]
        decays = [spec.training.weight_decay for spec in specs]
        lies: dict[str, Any] = {"dtype": weights[0].dtype, "device": weights[0].device}
        self.rate, self.decay = torch.tensor(rates, **lies), torch.tensor(decays, **lies)
        self.state: list[list[Tensor]] = []  # what the optimiser remembers of each weight
        self.ranks = [weight.dim() for weight in weights]
        self.piece: Piece | None = None

    def __call__(self, weights: Sequence[Tensor], gradients: Sequence[Tensor], step: int) -> None:
        """Change the weights in place, by the gradients of the step `step` (the first is 0)."""
        self._follow(self.schedule.at(step))
        with torch.no_grad():
            if self.clip is not None:
                gradients = clipped(gradients, self.clip)
            for place, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
                self.change(place, weight, gradient, step)

    def _follow(self, piece: Piece) -> None:
        """Spread the schedule's factors over runs and parameters, when they change."""
        if piece == self.piece:
            return
        self.piece = piece
        factors = self._trained(piece, piece.rate)
        self.rates = [_column(self.rate * f, r) for f, r in zip(factors, self.ranks, strict=True)]
        factors = self._trained(piece, piece.decay)
        self.decays = [_column(self.decay * f, r) for f, r in zip(factors, self.ranks, strict=True)]
        self.kept = self._trained(piece, piece.keep)

    def _trained(self, piece: Piece, factors: Factors) -> list[float]:
        """Return the factors of the parameters that are trained."""
        spread = piece.spread(factors, self.parameters)
        return [f for f, p in zip(spread, self.parameters, strict=True) if p.trained]

    def _forget(self, place: int, weight: Tensor) -> None:
        """Multiply the old value by the schedule's `keep` factor: 0 forgets it exactly."""
        if self.kept[place] != 1:
            weight.mul_(self.kept[place])

    @abstractmethod
    def change(self, place: int, weight: Tensor, gradient: Tensor, step: int) -> None:
        """Change the weight at `place` of the model's list."""

    def keep(self, kept: Callable[[Tensor], Tensor]) -> None:
        """Keep some runs of the stack: those that `kept` returns of a tensor (run, …)."""
        self.rate, self.decay = kept(self.rate), kept(self.decay)
        self.state = [[kept(memory) for memory in memories] for memories in self.state]
        self.piece = None


def clipped(gradients: Sequence[Tensor], most: float) -> list[Tensor]:
    """Scale each run's gradients so that their norm over all parameters is at most `most`.

    The divisor's 1e-6 is that of PyTorch's `clip_grad_norm_`.
    """
    squares = [gradient.flatten(1).square().sum(dim=1) for gradient in gradients]
    norm = torch.stack(squares).sum(dim=0).sqrt()  # (run,)
    scale = (most / (norm + 1e-6)).clamp(max=1.0)
    return [gradient * _column(scale, gradient.dim()) for gradient in gradients]


def _column(values: Tensor, rank: int) -> Tensor:
    return values.view(-1, *[1] * (rank - 1))


def _decayed(gradient: Tensor, weight: Tensor, decay: Tensor) -> Tensor:
    """Add the decay's part, laid out in memory as the weight is.

    Autograd may return the transpose of a transpose, beside which every later operation is slow.
    """
    if gradient.is_contiguous():
        return torch.addcmul(gradient, weight, decay)
    return torch.addcmul(gradient, weight, decay, out=torch.empty_like(weight))


class _SGD(Update):
    def __init__(self, specs: Sequence[RunSpec], weights: Sequence[Tensor], rule: SGD) -> None:
        super().__init__(specs, weights)
        self.momentum = rule.momentum
        if self.momentum:
            self.state = [[torch.zeros_like(weight)] for weight in weights]

    def change(self, place: int, weight: Tensor, gradient: Tensor, step: int) -> None:
        gradient = _decayed(gradient, weight, self.decays[place])
        if self.momentum:
            (memory,) = self.state[place]
            gradient = memory.mul_(self.momentum).add_(gradient)
        self._forget(place, weight)
        weight.addcmul_(gradient, self.rates[place], value=-1)


class _Adam(Update):
    def __init__(self, specs: Sequence[RunSpec], weights: Sequence[Tensor], rule: Adam) -> None:
        super().__init__(specs, weights)
        self.rule = rule
        self.decoupled = isinstance(rule, AdamW)
        self.state = [[torch.zeros_like(w), torch.zeros_like(w)] for w in weights]

    def change(self, place: int, weight: Tensor, gradient: Tensor, step: int) -> None:
        rate, decay, rule = self.rates[place], self.decays[place], self.rule
        if self.decoupled:
            weight.mul_(1 - rate * decay)
            gradient = gradient.contiguous()
        else:
            gradient = _decayed(gradient, weight, decay)
        mean, square = self.state[place]
        mean.lerp_(gradient, 1 - rule.beta1)
        square.mul_(rule.beta2).addcmul_(gradient, gradient, value=1 - rule.beta2)
        mean_share, square_share = 1 - rule.beta1 ** (step + 1), 1 - rule.beta2 ** (step + 1)
        size = square.sqrt().div_(square_share**0.5).add_(rule.epsilon)
        self._forget(place, weight)
        weight.addcmul_(mean / size, rate / mean_share, value=-1)


def make_update(specs: Sequence[RunSpec], weights: Sequence[Tensor]) -> Update:
    """Return the optimiser of a stack."""
    rule = specs[0].training.optimiser
    if isinstance(rule, SGD):
        return _SGD(specs, weights, rule)
    return _Adam(specs, weights, rule)
