"""The minibatches of a stack, chosen by the device on which it lies; see `training.data`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from petridish.training.data import epoch_steps
from petridish.training.device_streams import device_streams
from petridish.training.devices import Device
from petridish.training.spec import RunSpec


class Drawn:
    """Which training examples the steps see: the same as `training.data.batch_indices` chooses."""

    def __init__(self, specs: Sequence[RunSpec], device: Device) -> None:
        self.specs, self.device = specs, device
        self.epochs = specs[0].training.batches == "epochs"
        self.batch = specs[0].examples_per_step
        self._orders: tuple[object, Tensor] | None = None  # of the epoch under way

    def places(
        self, rows: Sequence[int], first: NDArray[np.int64], step: int, steps: int
    ) -> Sequence[Tensor]:
        """Return where the examples of each step lie, (row, batch); row r begins at `first[r]`."""
        begin = self.device.take(torch.from_numpy(first))[:, None]
        if self.epochs:
            return [self._of_epoch(rows, step + ahead) + begin for ahead in range(steps)]
        sizes = np.array([int(self.specs[row].data.m) for row in rows])[:, None]
        streams = device_streams(self._lucks(rows), "batches", self.device)
        below = self.device.take(torch.from_numpy(sizes))
        drawn = streams.integers(below, step * self.batch, steps * self.batch) + begin
        return list(drawn.view(len(rows), steps, self.batch).transpose(0, 1).contiguous())

    def _lucks(self, rows: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.specs[row].luck for row in rows)

    def _of_epoch(self, rows: Sequence[int], step: int) -> Tensor:
        """Return the examples of one step in the samples of their runs, which agree in size."""
        m = int(self.specs[rows[0]].data.m)
        epoch, turn = divmod(step, epoch_steps(m, self.batch))
        lucks = self._lucks(rows)
        if self._orders is None or self._orders[0] != (lucks, epoch):
            streams = device_streams(lucks, "epochs", self.device)
            self._orders = (lucks, epoch), streams.order(epoch * m, m)
        return self._orders[1][:, turn * self.batch : (turn + 1) * self.batch]
