"""Members with dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from petridish.seeds import Streams
from petridish.training.members import Members

AHEAD = 2**14  # words per member drawn at once: to begin takes as long as to draw a thousand


class DropoutMembers(Members):
    """`Members` with inverted dropout after each hidden layer [Srivastava et al. 2014].

    Parameters
    ----------
    dropout : float
        The chance of a neuron to be left out for an example, rounded to a multiple of 1/256
        below 1.
    seeds : sequence of int
        One per member: what is left out in a member depends on its seed and the step alone.
    """

    def __init__(self, *arguments: Any, dropout: float, seeds: Sequence[int], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.silent = min(255, round(256 * dropout))  # of the 256 values of a byte
        self.kept_scale = 256 / (256 - self.silent)
        self.stream = Streams(seeds, "dropout")
        self.drawn = 0  # words so far
        self.kept = np.empty((len(seeds), 0), np.uint8)  # of words drawn ahead, 1 or 0 per byte

    def _mask(self, shape: torch.Size) -> Tensor:
        """Draw which neurons are kept, 1 or 0, shape (member, batch, neuron): a byte for each."""
        size = shape[1] * shape[2]
        count = -(-size // 8)
        if self.kept.shape[1] < 8 * count:
            words = self.stream.words(self.drawn, max(count, AHEAD))
            octets = words.astype("<u8", copy=False).view(np.uint8)
            self.kept = (octets >= self.silent).view(np.uint8)  # floats times Booleans are slow
        mask, self.kept = self.kept[:, :size], self.kept[:, 8 * count :]
        self.drawn += count
        return torch.from_numpy(mask).view(shape)

    def _dropped_out(self, h: Tensor) -> Tensor:
        return h.mul_(self._mask(h.shape)).mul_(self.kept_scale)
