"""Outputs of trained members for new rows."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray

from petridish.estimator.threads import THREADS
from petridish.models import MLP
from petridish.models.base import Weights

PIECE = 4096  # rows whose outputs are computed in one go


def outputs_of(
    weights: Sequence[Weights], model: MLP, x: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Compute the members' outputs for rows of inputs, shape (member, row, output).

    In double precision: a row's outputs then depend on the rows beside it only in the 15th digit.
    """
    parameters = [torch.tensor(weight, dtype=torch.float64) for weight in weights]

    def piece(first: int) -> NDArray[np.float64]:
        torch.set_num_threads(1)
        rows = torch.tensor(x[first : first + PIECE], dtype=torch.float64)
        stacked = rows.expand(len(weights[0]), *rows.shape)
        outputs: NDArray[np.float64] = model.forward(parameters, stacked).numpy()
        return outputs

    starts = range(0, len(x), PIECE)
    with THREADS.one_each() as threads:
        if len(starts) == 1:
            return piece(0)
        with ThreadPoolExecutor(min(threads, len(starts))) as pool:
            return np.concatenate(list(pool.map(piece, starts)), axis=1)
