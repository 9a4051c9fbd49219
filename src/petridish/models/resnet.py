"""ResNet-18 with a chosen number of filters [FL App. E.4.1, E.5]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from petridish.errors import UserError, check_whole
from petridish.tasks.domain import Domain, Reals

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class ResNet:
    """The paper's ResNet(m): ResNet-18 with m filters in its first stage; the usual one has 64.

    Four stages of two blocks with m, 2m, 4m and 8m filters of 3 × 3, batch normalisation after
    every convolution, and the mean over places before the last layer. As is usual for small images
    the first convolution has 3 × 3 filters and no pooling behind it. It starts as PyTorch's do.

    Attributes
    ----------
    filters : int
        The paper's m.
    """

    name: ClassVar[str] = "resnet"

    filters: int = 64

    def __post_init__(self) -> None:
        check_whole("ResNet", 1, filters=self.filters)

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the network for images of any size."""
        from petridish.models.resnet_module import ResNetModule

        inputs = domain.inputs
        if not isinstance(inputs, Reals) or len(inputs.shape) != 3:
            raise UserError(
                f"ResNet: the inputs are {inputs}. Give images of a shape (channel, height, width)."
            )
        return ResNetModule(inputs.shape[0], self.filters, n_outputs)
