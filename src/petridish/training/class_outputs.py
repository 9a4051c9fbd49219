"""Outputs of few classes at many positions, laid out as PyTorch is quick with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def classes_first(outputs: Tensor) -> Tensor:
    """Return outputs (run, example, class, position), laid out so, with classes last before.

    Along positions PyTorch goes in vectors: a softmax over three classes takes a fifteenth of the
    time that it takes where they are neighbours.
    """
    return outputs.transpose(2, 3).contiguous()


def largest_class(outputs: Tensor) -> Tensor:
    """Return the class (axis 2) with the largest output, of several the first; −2 beside a NaN."""
    largest = outputs.amax(dim=2)
    found = outputs.new_full(largest.shape, -2)
    for place in range(outputs.shape[2] - 1, -1, -1):
        found.masked_fill_(outputs[:, :, place] == largest, place)
    return found
