"""What the native engine serves of attention."""

from __future__ import annotations

from petridish.choices import describe
from petridish.models import AttentionOnly, ClsTransformer, MinimalAttention
from petridish.tasks.domain import Classes, Tokens
from petridish.training.losses import CrossEntropy
from petridish.training.optimisers import SGD, Adam, AdamW
from petridish.training.settings import Training
from petridish.training.spec import RunSpec

MOST = {"layers": 3, "heads": 4, "d": 64}
MAX_STATES, MAX_LENGTH = 16, 512
CLS_MOST = {"d": 256, "heads": 128, "dropout": 0.99}
MAX_HEAD, MAX_CLS_LENGTH, MAX_OUTPUTS = 16, 4096, 16


def attention_limit(spec: RunSpec) -> str | None:
    """Return why the native engine cannot train attention alone or the minimal model, or None."""
    model, training, inputs = spec.model, spec.training, spec.domain.inputs
    assert isinstance(model, AttentionOnly | MinimalAttention), "the engine asks of these alone"
    for name, most in MOST.items() if isinstance(model, AttentionOnly) else ():
        if (given := getattr(model, name)) > most:
            return f"it takes attention with {name} up to {most}, and the model has {name}={given}"
    assert isinstance(inputs, Tokens), "the model refuses other tasks"
    target = spec.domain.target
    if not isinstance(target, Classes) or target.k != inputs.vocabulary:
        return (
            f"its transformers answer with one of their {inputs.vocabulary} tokens, and the task "
            f"has {target}"
        )
    if inputs.vocabulary > MAX_STATES or inputs.length > MAX_LENGTH:
        return (
            f"it takes sequences of up to {MAX_LENGTH} tokens of {MAX_STATES} values, and the task "
            f"has {inputs.length} of {inputs.vocabulary}"
        )
    return _training_limit(training)


def cls_limit(spec: RunSpec) -> str | None:
    """Return why the native engine cannot train a block with [CLS], or None."""
    model, inputs = spec.model, spec.domain.inputs
    assert isinstance(model, ClsTransformer), "the engine asks of these models alone"
    assert isinstance(inputs, Tokens), "the model refuses other tasks"
    for name, most in CLS_MOST.items():
        if (given := getattr(model, name)) > most:
            return f"it takes blocks with {name} up to {most}, and the model has {name}={given:g}"
    if model.d // model.heads > MAX_HEAD:
        return (
            f"it takes heads of up to {MAX_HEAD} dimensions, and the model's have "
            f"{model.d // model.heads}"
        )
    if inputs.vocabulary > MAX_STATES or inputs.length > MAX_CLS_LENGTH:
        return (
            f"it takes sequences of up to {MAX_CLS_LENGTH} tokens of {MAX_STATES} values, and the "
            f"task has {inputs.length} of {inputs.vocabulary}"
        )
    if reason := _training_limit(spec.training):
        return reason
    if spec.n_outputs > MAX_OUTPUTS:
        return f"it takes up to {MAX_OUTPUTS} classes, and the task has {spec.n_outputs}"
    return None


def _training_limit(training: Training) -> str | None:
    if training.loss != CrossEntropy():
        return f"it trains transformers on cross entropy, and the loss is {describe(training.loss)}"
    if type(training.optimiser) not in (SGD, Adam, AdamW):
        return f"it has SGD, Adam and AdamW, and the optimiser is {describe(training.optimiser)}"
    if training.penalty.strength:
        return f"it has no penalty, and this run has {describe(training.penalty)}"
    if training.precision != "float32":
        return f"it computes in float32, and this run in {training.precision}"
    return None
