"""Modules of one's own: random numbers from the run's streams, state, patterns, and updates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from petridish.errors import UserError
from petridish.models import MLP, ByName, Constant, Normal, Own
from petridish.models.parameters import build, read_parameters
from petridish.seeds import Streams
from petridish.sweeps import Sweep
from petridish.tasks import Domain, SparseParity
from petridish.testing import check_engine, short_run
from petridish.training import (
    SGD,
    Adam,
    AdamW,
    Data,
    Hinge,
    Piece,
    RunRecord,
    RunSpec,
    Schedule,
    Silent,
    Training,
    choose_engine,
    load_engine,
)
from petridish.training.data import initial_weights
from petridish.training.networks import numbers_per_example
from petridish.training.noise import Call, draw_numbers, note_calls
from tests.faults import refused
from tests.own_parts import Coins, Convolved, Dropped, Reader, Recurrent, Stripes, Waves


def record_of(spec: RunSpec, engine: str = "torch") -> RunRecord:
    """Carry out one run."""
    return next(iter(load_engine(engine).run([spec], Silent())))


# Random numbers inside a module


def test_a_mask_takes_the_16_bit_lanes_of_its_call() -> None:
    """Lane i of step t is a quarter of word t·w + i // 4, lowest first; kept from round(2^16 p)."""
    call, p = Call("mask", (5, 3), 0.3), 0.3
    (mask,) = draw_numbers([call], [7], 2, full=5, examples=5)
    words = Streams([7], "module/0").words(2 * 4, 4)[0]  # 15 lanes take 4 words
    lanes = [int(word) >> 16 * i & 0xFFFF for word in words for i in range(4)][:15]
    kept = [np.float32(1) / np.float32(1 - p) if lane >= round(65536 * p) else 0 for lane in lanes]

    assert mask.shape == (1, 5, 3)
    assert np.array_equal(mask.numpy().ravel(), np.array(kept, np.float32))
    (short,) = draw_numbers([call], [7], 2, full=5, examples=2)
    assert torch.equal(short, mask[:, :2])


def test_the_calls_of_a_module_are_noted_in_order() -> None:
    """Dropout's mask, then the noise; running means are as they were before."""
    module = build(Dropped(4, 0.25), Waves().domain, 2)
    before = {name: value.clone() for name, value in module.named_buffers()}

    assert note_calls(module, torch.randn(6, 3)) == [
        Call("mask", (6, 4), 0.25),
        Call("normal", (6, 4)),
    ]
    assert all(torch.equal(value, before[name]) for name, value in module.named_buffers())
    channels = note_calls(build(Convolved(), Stripes().domain, 2), torch.randn(6, 1, 6, 6))
    assert channels == [Call("mask", (6, 4, 1, 1), 0.2)]


@dataclass(frozen=True)
class Drawing:
    """A module that draws by itself."""

    name: ClassVar[str] = "drawing"
    how: str

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the module."""
        return DrawingModule(self.how, domain.n_inputs, n_outputs)


class DrawingModule(nn.Module):
    """Draws in one of several ways."""

    def __init__(self, how: str, n_inputs: int, n_outputs: int) -> None:
        super().__init__()
        self.how = how
        self.layer = nn.Linear(n_inputs, n_outputs)
        self.alpha = nn.AlphaDropout(0.5)
        self.heads = nn.MultiheadAttention(n_inputs, 1, dropout=0.5, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Return outputs with noise."""
        if self.how == "alpha":
            x = self.alpha(x)
        if self.how == "heads":
            x = self.heads(x[:, None], x[:, None], x[:, None])[0][:, 0]
        if self.how == "attention":
            q = x[:, None, None]
            attended = nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
            x = attended[:, 0, 0]
        if self.how == "rand":
            x = x + torch.rand(x.shape)
        if self.how == "numpy":  # which no call of PyTorch's generator shows
            x = x + float(np.random.randn())  # noqa: NPY002 - what a user might write
        if self.how == "always":
            x = nn.functional.dropout(x, 0.5)
        outputs: Tensor = self.layer(x)
        return outputs


def calls(name: str) -> str:
    """Return the sentence about a function that draws."""
    return (
        f"The module calls {name}, which draws random numbers of its own: the run could not be "
        "made again. Use nn.Dropout, torch.rand_like or torch.randn_like, or set its dropout to 0."
    )


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("alpha", calls("alpha_dropout")),
        ("heads", calls("multi_head_attention_forward")),
        ("attention", calls("scaled_dot_product_attention")),
        ("rand", calls("rand")),
        (
            "numpy",
            "The module of drawing(numpy) returns other outputs for the same inputs and weights: "
            "it draws random numbers that are not the run's. Use nn.Dropout, torch.rand_like or "
            "torch.randn_like.",
        ),
        (
            "always",
            "The module of drawing(always) draws random numbers in evaluation too. Draw them only "
            "where self.training is true, as nn.Dropout does.",
        ),
    ],
)
def test_randomness_that_streams_cannot_serve_is_refused(how: str, sentence: str) -> None:
    """By the name of the function, or by two passes that ought to agree, before the first step."""
    with pytest.raises(UserError) as error:
        short_run(Waves(), Drawing(how)).check()
    assert str(error.value) == sentence


def test_the_callers_generator_is_left_alone() -> None:
    """Building, noting and training draw nothing from it."""
    torch.manual_seed(0)
    before = torch.get_rng_state()
    record_of(short_run(Waves(), Dropped()))
    record_of(short_run(Waves(), Dropped()), "reference")

    assert torch.equal(torch.get_rng_state(), before)


# State, starts and parameters


def test_running_means_are_kept_with_the_weights() -> None:
    """A record's weights are all that the module's state has."""
    spec = short_run(Waves(), Dropped())
    record = record_of(spec)
    module = build(spec.model, spec.domain, spec.n_outputs)

    assert record.weights is not None
    assert record.weights_of is not None
    assert {name for name, _ in record.weights_of} == set(module.state_dict())
    state = {
        name: torch.tensor(values).view(shape)
        for (name, shape), values in zip(record.weights_of, record.weights, strict=True)
    }
    module.load_state_dict(state)
    assert state["2.num_batches_tracked"] == 4
    assert float(state["2.running_mean"].abs().max()) > 0


def test_a_module_starts_as_it_is_built() -> None:
    """Each run by its own stream; PyTorch's own draw, scales at 1."""
    specs = [replace(short_run(Waves(), Dropped()), seed=seed) for seed in (0, 1)]
    first, *_ = drawn = initial_weights(specs)

    assert not np.array_equal(first[0], first[1])
    assert np.array_equal(initial_weights(specs[1:])[0][0], first[1])
    assert (drawn[2] == 1).all()
    named = dict(build(Dropped(), Waves().domain, 2, seed=1).named_parameters())
    assert np.array_equal(named["1.weight"].detach().numpy(), first[1])


def test_the_parameters_of_a_module() -> None:
    """Names, fans, layers and kinds, read off it; convolutions and recurrences among them."""
    found = {p.name: p for p in read_parameters(build(Convolved(), Stripes().domain, 2))}
    assert (found["0.weight"].fan_in, found["0.weight"].fan_out) == (9, 36)
    assert (found["0.bias"].fan_in, found["0.bias"].kind) == (9, "bias")
    assert [found[name].kind for name in ("1.weight", "1.bias", "6.weight")] == [
        *("scale", "bias", "weight"),
    ]
    assert [p.layer for p in found.values()] == [0, 0, 1, 1, 2, 2]
    lstm = {p.name: p for p in read_parameters(build(Recurrent(5), Waves().domain, 2))}
    assert lstm["lstm.bias_hh_l0"].fan_in == 5


def test_starts_leave_scales_at_1_and_patterns_say_the_rest() -> None:
    """Nothing in silence: a pattern that fits nothing, and a parameter that nothing fits."""
    parameters = read_parameters(build(Dropped(), Waves().domain, 2))
    names = ", ".join(p.name for p in parameters)
    for p, values in zip(parameters, Normal(0.1).draw(parameters, [0]), strict=True):
        assert (p.kind == "scale") == bool((values == 1).all())
    by_name = ByName((("1.*", Constant(3.0)), ("@scale", Constant(2.0)), ("*", Constant(0.0))))
    found = {p.name: v for p, v in zip(parameters, by_name.draw(parameters, [0]), strict=True)}
    assert {name: float(values.max()) for name, values in found.items()} == {
        **{"1.weight": 3, "1.bias": 3, "2.weight": 2, "2.bias": 0, "5.weight": 2, "5.bias": 0},
        **{"7.weight": 0, "7.bias": 0},
    }
    with pytest.raises(UserError) as error:
        ByName((("layer*", Normal()), ("*", Normal()))).draw(parameters, [])
    assert str(error.value) == (
        f"ByName: the pattern 'layer*' fits no parameter of this model. It has: {names}."
    )
    with pytest.raises(UserError) as error:
        ByName((("1.*", Normal()),)).draw(parameters, [])
    assert str(error.value) == (
        "ByName: nothing is said of the parameter 2.weight. End with a line for '*'."
    )


def test_what_cannot_be_stacked_goes_to_the_reference() -> None:
    """An LSTM is found by a trial of two, before a sweep, and runs all the same."""
    spec = short_run(Waves(), Recurrent())

    assert choose_engine(spec).name == "reference"
    assert len(record_of(spec, "reference").curves.step) == 5
    refusal = load_engine("torch").refusal(spec)
    assert refusal is not None
    assert refusal.startswith("torch.func cannot stack it (")
    assert refusal.endswith("). The engine reference can.")


def test_the_size_of_a_stack_goes_by_what_a_module_holds() -> None:
    """An image's convolution holds more than its weights say; long sequences make small stacks."""
    assert numbers_per_example(Reader(6), Coins(8), 2) == 8 * (6 + 6 + 2)
    convolved = 4 * 4 * 4  # four channels of 4 × 4
    assert numbers_per_example(Convolved(), Stripes(6), 2) == 4 * convolved + 4 + 4 + 2
    engine = load_engine("torch")
    sizes = [
        engine.stack_size(replace(short_run(Coins(length), Reader()), data=Data(n_test=9)))
        for length in (8, 800, 20_000)
    ]
    assert sizes[0] > sizes[1] > sizes[2] == 1


@dataclass(frozen=True)
class Sized:
    """A module of a wrong size, or none at all."""

    name: ClassVar[str] = "sized"
    fault: str

    def build(self, domain: Domain, n_outputs: int) -> Any:
        """Return what is not asked for."""
        if self.fault == "outputs":
            return nn.Linear(domain.n_inputs, n_outputs + 1)
        return nn.Identity() if self.fault == "parameters" else "a module"


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (
            "outputs",
            "The module of sized(outputs) returned (3, 3) for 3 examples of waves, and loss and "
            "task ask for the shape (3, 2). Size it by the domain and n_outputs that build is "
            "given.",
        ),
        (
            "parameters",
            "The model sized(parameters) built a module without parameters: there is nothing to "
            "train. Register its layers as attributes of the module.",
        ),
        (
            "module",
            "The model sized(module) built 'a module', which is no torch.nn.Module. Return one "
            "from build.",
        ),
    ],
)
def test_a_module_that_does_not_fit_is_refused(fault: str, sentence: str) -> None:
    """Before anything is trained."""
    assert refused(short_run(Waves(), Sized(fault)).check) == sentence


def test_models_that_start_differently_are_not_swept_in_silence() -> None:
    """A module swept from an MLP's base would start as that; the sweep must say what it means."""
    base = short_run(Waves(), MLP(5))
    with pytest.raises(UserError) as error:
        Sweep(base, {"model": (MLP(5), Dropped()), "seed": range(2)})
    assert str(error.value) == (
        "The models of this sweep start differently by themselves (own, uniform), and the runs "
        'would all start as uniform. Name the start by an axis init, such as "init": (Own(),).'
    )
    explicit = replace(short_run(Waves(), Dropped()), init=Normal(0.1))
    assert len(Sweep(explicit, {"model": (Dropped(4), Dropped(5))})) == 2
    named = Sweep(base, {"model": (MLP(5), Dropped()), "init": (Own(),), "seed": (0,)})
    assert [spec.init for spec in named.specs()] == [Own(), Own()]
    assert len(Sweep(short_run(Waves(), Dropped()), {"model": (Dropped(4), Dropped(5))})) == 2


# Updates


PATTERNS = Schedule(
    (
        Piece(0, rate=(("layer1.*", 0.0), ("*", 1.0)), decay=(("@weight", 1.0), ("*", 0.0))),
        Piece(2, keep=(("layer2.weight", 0.0), ("*", 0.5))),
    )
)


@pytest.mark.parametrize("optimiser", [SGD(), SGD(0.9), Adam(), AdamW()], ids=str)
@pytest.mark.parametrize("clip", [None, 0.05])
def test_patterns_forgetting_and_clipping_agree_with_the_reference(
    optimiser: Any, clip: float | None
) -> None:
    """Rates and decays by name and kind, exact shares of the old value, clipped gradients."""
    spec = short_run(SparseParity(8, 3), MLP(5), Hinge())
    training = replace(
        spec.training, optimiser=optimiser, clip=clip, schedule=PATTERNS, weight_decay=0.1
    )
    check_engine(load_engine("torch"), replace(spec, training=training))
    assert load_engine("native").refusal(replace(spec, training=training)) is not None


@pytest.mark.parametrize("engine", ["torch", "reference"])
def test_to_forget_is_exact(engine: str) -> None:
    """With keep = 0 the weights are −η g, whatever they were: no rounding of 10^6 is left."""
    base = short_run(SparseParity(8, 3), MLP(5), Hinge())
    training = Training(
        steps=1,
        learning_rate=1.0,
        weight_decay=0.0,
        batch_size=8,
        target_error=None,
        schedule=Schedule((Piece(0, rate=(("layer1.weight", 1.0), ("*", 0.0)), keep=0.0),)),
    )
    start = ByName((("layer1.weight", Constant(1e6)), ("*", Constant(1e-3))))
    record = record_of(replace(base, training=training, init=start), engine)
    assert record.weights is not None
    changed = np.array(record.weights[0])

    assert 0 < np.abs(changed).max() <= 1e-3  # a gradient is a mean of ±1e-3
    grid = changed * 8 / 1e-3
    assert np.allclose(grid, np.round(grid), atol=1e-4)
    for other in record.weights[1:]:
        assert not np.any(other)


def test_clipping_scales_a_gradient_to_its_norm() -> None:
    """One step of SGD moves all weights together by η · clip."""
    base = short_run(SparseParity(8, 3), MLP(5), Hinge())
    training = Training(
        steps=1, learning_rate=0.5, weight_decay=0.0, batch_size=8, target_error=None, clip=0.01
    )
    spec = replace(base, training=training)
    record, start = record_of(spec), initial_weights([spec])
    assert record.weights is not None
    moved = [
        np.array(now) - then[0].ravel() for now, then in zip(record.weights, start, strict=True)
    ]

    assert np.linalg.norm(np.concatenate(moved)) == pytest.approx(0.5 * 0.01, rel=1e-3)


def test_a_pattern_that_fits_nothing_is_refused() -> None:
    """Also in a schedule."""
    spec = short_run(SparseParity(8, 3), MLP(5), Hinge())
    wrong = Schedule((Piece(0, rate=(("layer3.*", 0.0), ("*", 1.0))),))
    with pytest.raises(UserError) as error:
        replace(spec, training=replace(spec.training, schedule=wrong)).check()
    assert str(error.value) == (
        "The schedule: the pattern 'layer3.*' fits no parameter of this model. It has: "
        "layer1.weight, layer1.bias, layer2.weight, layer2.bias."
    )
