"""Wide ReLU networks on tables: stacked members, a backward pass by hand, fused updates.

At width r the matrix products of a hidden layer cost 6 B r² operations per step. The rest is kept
small: no graph is recorded, buffers of activations are reused, ReLU's derivative is taken in place,
and the optimiser goes over the weights once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from petridish.training.optimisers import SGD, Adam, AdamW

MemberLoss = Literal["logistic", "cross_entropy", "square"]
PerParameter = float | Sequence[float]


class Members:
    """Several networks of one shape, trained side by side on one table.

    Parameters
    ----------
    start : sequence of array
        Weights (member, fan_out, fan_in) and biases (member, fan_out), layer by layer, as an
        initialisation draws them; they are copied.
    loss : "logistic", "cross_entropy" or "square"
        Of one output and the probability of y = 1; of one output per class and the classes'
        probabilities; or ½ the squared distance to the target.
    optimiser : SGD, Adam or AdamW
        The rule of a step; its rate and decay come with the step.
    """

    kept_scale: float = 1.0  # factor of the activations that dropout keeps

    def __init__(
        self,
        start: Sequence[NDArray[np.float32]],
        *,
        loss: MemberLoss,
        optimiser: SGD | Adam | AdamW,
    ) -> None:
        if loss not in get_args(MemberLoss):
            raise ValueError(f"Members: loss={loss!r}. Give one of {get_args(MemberLoss)}.")
        self.weights = [torch.tensor(values, dtype=torch.float32) for values in start]
        self.loss, self.optimiser = loss, optimiser
        self.steps = 0
        self.n_members = len(self.weights[0])
        self._slopes = [torch.empty_like(weight) for weight in self.weights]
        self._memory = [
            [torch.zeros_like(weight) for weight in self.weights]
            for _ in range(_memories(optimiser))
        ]
        self._rooms: dict[int, list[Tensor]] = {}  # activations and their gradients, by batch size

    @property
    def depth(self) -> int:
        """Number of hidden layers."""
        return len(self.weights) // 2 - 1

    def outputs(self, x: Tensor) -> Tensor:
        """Return the outputs of every member, shape (member, example, output)."""
        h = self._stacked(x)
        for layer in range(self.depth):
            h = self._affine(layer, h).relu_()
        return self._affine(self.depth, h)

    def step(
        self,
        x: Tensor,
        target: Tensor,
        weight: Tensor | None = None,
        *,
        rate: PerParameter,
        decay: PerParameter = 0.0,
    ) -> Tensor:
        """Take one step, and return each member's loss before it, shape (member,).

        Parameters
        ----------
        x : Tensor, shape (batch, input) or (member, batch, input)
            Inputs, shared by the members or each member's own.
        target : Tensor, shape (batch, output) or (member, batch, output)
            Probabilities or values, as the loss asks for.
        weight : Tensor, shape (batch,) or (member, batch), optional
            The loss is the mean over the batch of weight × loss of the example.
        rate, decay : float or one per parameter
            The paper's η and λ.
        """
        loss = self._differentiate(x, target, weight)
        self.steps += 1
        self._update(_spread(rate, len(self.weights)), _spread(decay, len(self.weights)))
        return loss

    def gradients(self, x: Tensor, target: Tensor, weight: Tensor | None = None) -> list[Tensor]:
        """Return the gradient of each member's loss by its weights, without a step."""
        self._differentiate(x, target, weight)
        return [slope.clone() for slope in self._slopes]

    def _stacked(self, x: Tensor) -> Tensor:
        return x.expand(self.n_members, *x.shape[-2:])

    def _affine(self, layer: int, h: Tensor, out: Tensor | None = None) -> Tensor:
        weight, bias = self.weights[2 * layer], self.weights[2 * layer + 1]
        return torch.baddbmm(bias.unsqueeze(1), h, weight.mT, out=out)

    def _room(self, batch: int) -> list[Tensor]:
        """Return buffers for the activations of each hidden layer and their gradients."""
        if batch not in self._rooms:
            widths = [bias.shape[1] for bias in self.weights[1:-2:2]]
            self._rooms[batch] = [
                torch.empty(self.n_members, batch, width) for width in widths for _ in range(2)
            ]
        return self._rooms[batch]

    def _dropped_out(self, h: Tensor) -> Tensor:
        """Return a hidden layer's activations after dropout; here there is none."""
        return h

    def _differentiate(self, x: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
        """Compute the gradients of all parameters, from the last layer to the first."""
        room = self._room(x.shape[-2])
        hidden = [self._stacked(x)]
        for layer in range(self.depth):
            hidden.append(
                self._dropped_out(self._affine(layer, hidden[-1], room[2 * layer]).relu_())
            )
        loss, slope = _loss_and_slope(
            self.loss, self._affine(self.depth, hidden[-1]), target, weight
        )
        for layer in range(self.depth, -1, -1):
            torch.bmm(slope.mT, hidden[layer], out=self._slopes[2 * layer])
            torch.sum(slope, dim=1, out=self._slopes[2 * layer + 1])
            if layer:
                below = torch.bmm(slope, self.weights[2 * layer], out=room[2 * layer - 1])
                # A neuron that is dropped or inactive has the value 0 and the gradient 0.
                slope = torch.ops.aten.threshold_backward(below, hidden[layer], 0, grad_input=below)
                if self.kept_scale != 1:
                    slope.mul_(self.kept_scale)
        return loss

    def _update(self, rates: Sequence[float], decays: Sequence[float]) -> None:
        if isinstance(self.optimiser, SGD):
            self._descend(self.optimiser.momentum, rates, decays)
            return
        rule = self.optimiser
        fused = torch._fused_adamw_ if isinstance(rule, AdamW) else torch._fused_adam_
        step = [torch.tensor(float(self.steps))]
        means, squares = self._memory
        for place, (rate, decay) in enumerate(zip(rates, decays, strict=True)):
            fused(
                [self.weights[place]],
                [self._slopes[place]],
                [means[place]],
                [squares[place]],
                [],
                step,
                lr=rate,
                beta1=rule.beta1,
                beta2=rule.beta2,
                weight_decay=decay,
                eps=rule.epsilon,
                amsgrad=False,
                maximize=False,
            )

    def _descend(self, momentum: float, rates: Sequence[float], decays: Sequence[float]) -> None:
        for place, (weight, slope) in enumerate(zip(self.weights, self._slopes, strict=True)):
            if decays[place]:
                slope.add_(weight, alpha=decays[place])
            if momentum:
                slope = self._memory[0][place].mul_(momentum).add_(slope)
            weight.add_(slope, alpha=-rates[place])


def _memories(optimiser: SGD | Adam | AdamW) -> int:
    return int(optimiser.momentum > 0) if isinstance(optimiser, SGD) else 2


def _spread(value: PerParameter, n_parameters: int) -> Sequence[float]:
    return [float(value)] * n_parameters if isinstance(value, int | float) else value


def _loss_and_slope(
    loss: MemberLoss, outputs: Tensor, target: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the loss of each member, and its gradient by the outputs (member, batch, output)."""
    if loss == "square":
        slope = outputs - target
        each = 0.5 * slope.square().sum(dim=2)
    elif loss == "logistic":
        slope = outputs.sigmoid() - target
        each = (torch.nn.functional.softplus(outputs) - target * outputs).sum(dim=2)
    else:
        logs = outputs.log_softmax(dim=2)
        slope = logs.exp() - target
        each = -(target * logs).sum(dim=2)
    share = 1 / outputs.shape[1]
    if weight is None:
        return each.mean(dim=1), slope.mul_(share)
    return (each * weight).mean(dim=1), slope.mul_((weight * share).unsqueeze(-1))
