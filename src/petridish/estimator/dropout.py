"""Members whose hidden neurons fall silent at random while they learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from petridish.seeds import Streams
from petridish.training.members import Members


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

    def _heard(self, h: Tensor) -> Tensor:
        return h.mul_(self._mask(h.shape)).mul_(self.loud)
