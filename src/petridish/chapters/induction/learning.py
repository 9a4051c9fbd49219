"""How the networks of IH are trained: fresh sequences at every step, until the steps are over."""

from __future__ import annotations

from petridish.training import SGD, Adam, AdamW, CrossEntropy, Loss, Training


def learning(
    *,
    rate: float,
    steps: int,
    loss: Loss | None = None,
    optimiser: SGD | Adam | None = None,
    batch_size: int = 64,
) -> Training:
    """Return training without weight decay, by AdamW on cross entropy if not said otherwise."""
    return Training(
        loss=loss or CrossEntropy(),
        optimiser=optimiser or AdamW(),
        learning_rate=rate,
        weight_decay=0.0,
        batch_size=batch_size,
        steps=steps,
        target_error=None,
    )
