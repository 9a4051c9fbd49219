"""Members whose hidden neurons fall silent at random while they learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from petridish.seeds import Streams
from petridish.training.members import Members, _loss_and_slope


class DropoutMembers(Members):
    """`Members` with inverted dropout after each hidden layer [Srivastava et al. 2014].

    Parameters
    ----------
    dropout : float
        The chance of a neuron to be silent for an example, rounded to a multiple of 1/256 below 1.
    seeds : sequence of int
        One a member: what falls silent in a member depends on its seed and the step alone.
    """

    def __init__(self, *arguments: Any, dropout: float, seeds: Sequence[int], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.silent = min(255, round(256 * dropout))  # of the 256 values of a byte
        self.loud = 256 / (256 - self.silent)
        self.stream = Streams(seeds, "dropout")
        self.drawn = 0  # words so far

    def _mask(self, shape: torch.Size) -> Tensor:
        """Draw which neurons are heard, 1 or 0, shape (member, batch, neuron): a byte for each."""
        size = shape[1] * shape[2]
        words = self.stream.words(self.drawn, -(-size // 8))
        self.drawn += words.shape[1]
        octets = words.astype("<u8", copy=False).view(np.uint8)[:, :size]
        heard = (octets >= self.silent).view(np.uint8)  # floats times Booleans are slow in PyTorch
        return torch.from_numpy(heard).view(shape)

    def _differentiate(self, x: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
        room = self._room(x.shape[-2])
        hidden = [self._stacked(x)]
        for layer in range(self.depth):
            h = self._affine(layer, hidden[-1], room[2 * layer]).relu_()
            hidden.append(h.mul_(self._mask(h.shape)).mul_(self.loud))
        loss, slope = _loss_and_slope(
            self.loss, self._affine(self.depth, hidden[-1]), target, weight
        )
        for layer in range(self.depth, -1, -1):
            torch.bmm(slope.mT, hidden[layer], out=self._slopes[2 * layer])
            torch.sum(slope, dim=1, out=self._slopes[2 * layer + 1])
            if layer:
                below = torch.bmm(slope, self.weights[2 * layer], out=room[2 * layer - 1])
                # A neuron that is silent, or below 0, has the value 0 and the slope 0.
                slope = torch.ops.aten.threshold_backward(below, hidden[layer], 0, grad_input=below)
                slope.mul_(self.loud)
        return loss
