"""HP's transformer, tangent models, starts and greedy training: exactly what they say they are."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from petridish.choices import describe
from petridish.errors import UserError
from petridish.models import (
    MLP,
    Constant,
    Normal,
    Paired,
    ParityTransformer,
    PolyNet,
    Power,
    ReLU,
    Seeded,
    Signs,
    Sine,
    Sparse,
    SymmetricSigns,
    Tangent,
    TangentStart,
    Uniform,
    XavierUniform,
    Zigzag,
)
from petridish.models.activations import Activation
from petridish.tasks import SparseParity
from petridish.training import (
    Adam,
    AdamW,
    Data,
    Evaluation,
    Piece,
    RunSpec,
    Schedule,
    Silent,
    Training,
    load_engine,
    per_layer,
    run_key,
)
from petridish.training.chains import ended
from petridish.training.data import initial_weights
from petridish.training.engines.reference import trained_network
from petridish.training.greedy import Greedy, frozen_below, random_features
from tests.domains import bits
from tests.test_architectures import outputs

Floats = NDArray[np.float64]

# The Transformer


def plain_transformer(model: ParityTransformer, p: list[Tensor], x: Tensor) -> Tensor:
    """Compute one example of one run from the formulas, head by head and token by token."""
    positions, tokens, w_q, w_k, w_v, w_out, w1, b1, w2, b2, u = p
    minus, plus, cls = tokens.T
    embedded = [(plus if bit > 0 else minus) + positions[:, i] for i, bit in enumerate(x.tolist())]
    z = cls
    for h in range(model.heads):
        part = slice(h * model.d_attn, (h + 1) * model.d_attn)
        query = w_q[part] @ cls
        scores = [query @ (w_k[part] @ token) / sqrt(model.d_attn) for token in [*embedded, cls]]
        total = sum(score.exp() for score in scores)
        heard = [
            score.exp() / total * (w_v[part] @ token)
            for score, token in zip(scores, [*embedded, cls], strict=True)
        ]
        z = z + w_out[:, part] @ torch.stack(heard).sum(dim=0)
    inner = w1 @ z + b1
    gelu = inner * (1 + torch.erf(inner / sqrt(2))) / 2
    output: Tensor = u @ (z + w2 @ gelu + b2)
    return output


@pytest.mark.parametrize("model", [ParityTransformer(5, 2, 3), ParityTransformer(4, 3, 1, 7)])
def test_the_transformer_is_its_formula(model: ParityTransformer, seed: int) -> None:
    """Values and gradients of a stack agree with the plain computation to 1e-10."""
    drawn = Normal(0.7).draw(model.parameters(bits(6), 1), [seed, seed + 1])
    weights = [torch.from_numpy(w).double().requires_grad_() for w in drawn]
    x = torch.from_numpy(np.random.default_rng(seed).choice([-1.0, 1.0], (2, 4, 6)))
    ours = model.forward(weights, x)
    plain = torch.stack(
        [
            torch.stack([plain_transformer(model, [w[run] for w in weights], row) for row in rows])
            for run, rows in enumerate(x)
        ]
    )
    away = torch.from_numpy(np.random.default_rng(seed + 9).normal(size=ours.shape))

    assert ours.shape == (2, 4, 1)
    assert torch.allclose(ours, plain, rtol=0, atol=1e-10)
    for mine, theirs in zip(
        torch.autograd.grad((ours * away).sum(), weights),
        torch.autograd.grad((plain * away).sum(), weights),
        strict=True,
    ):
        assert torch.allclose(mine, theirs, rtol=0, atol=1e-10)
        assert theirs.abs().max() > 1e-3


def test_the_transformer_has_the_sources_parameters() -> None:
    """3 + n embeddings, 4 H matrices of d_emb × d_attn, an MLP of 4 d_emb, and u, at HP's sizes."""
    parameters = ParityTransformer().parameters(bits(50), 1)
    d = 1024
    expected = (3 + 50) * d + 128 * 4 * d * 8 + 2 * d * 4 * d + 4 * d + d + d

    assert sum(p.size for p in parameters) == expected
    assert len({p.name for p in parameters}) == len(parameters)
    bound = XavierUniform().draw(ParityTransformer(64, 4, 8).parameters(bits(20), 1), [0])
    query = bound[2]
    assert 0.97 * sqrt(6 / (64 + 32)) < np.abs(query).max() <= sqrt(6 / (64 + 32))


def test_a_small_transformer_learns_a_parity() -> None:
    """A sanity check of the science: Adam brings a parity of two bits to error 0."""
    spec = RunSpec(
        task=SparseParity(8, 2),
        data=Data(n_test=256),
        model=ParityTransformer(32, 4, 4),
        init=XavierUniform(),
        training=Training(
            optimiser=Adam(), learning_rate=2e-3, weight_decay=0, steps=1500, target_error=0.0
        ),
    )
    (record,) = load_engine("torch").run([spec], Silent())

    assert record.solved_at is not None


# The tangent model


@pytest.mark.parametrize("activation", [ReLU(), Power(3), Sine(2), Zigzag(3)], ids=describe)
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_the_tangent_model_is_the_first_order_of_taylors_series(
    activation: Activation, n_outputs: int, seed: int
) -> None:
    """f(x) = d/dε g(x; θ_0 + εθ) at ε = 0, for the MLP g without output bias."""
    tangent, network = Tangent(4, activation), MLP(4, activation=activation, output="linear")
    drawn = Normal().draw(tangent.parameters(bits(5), n_outputs), [seed, seed + 1])
    weights = [torch.from_numpy(w).double() for w in drawn]
    theta, start = weights[:3], weights[3:]
    x = torch.from_numpy(np.random.default_rng(seed).normal(size=(2, 7, 5)))

    def along(epsilon: Tensor) -> Tensor:
        moved = [a + epsilon * b for a, b in zip(start, theta, strict=True)]
        return network.forward(moved, x)

    zero = torch.zeros((), dtype=torch.float64)
    expected = torch.autograd.functional.jacobian(along, zero)  # type: ignore[no-untyped-call] # PyTorch's own has no types
    assert torch.allclose(tangent.forward(weights, x), expected, rtol=0, atol=1e-12)


def test_the_tangent_model_is_linear_in_what_it_trains(seed: int) -> None:
    """The gradient in θ is the network's at θ_0, whatever θ."""
    tangent, network = Tangent(4), MLP(4, output="linear")
    drawn = Normal().draw(tangent.parameters(bits(5), 1), [seed])
    weights = [torch.from_numpy(w).requires_grad_() for w in drawn]
    x = torch.from_numpy(np.random.default_rng(seed).normal(size=(1, 7, 5)).astype(np.float32))
    gradients = torch.autograd.grad(tangent.forward(weights, x).sum(), weights[:3])
    expected = torch.autograd.grad(network.forward(weights[3:], x).sum(), weights[3:])

    for mine, theirs in zip(gradients, expected, strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-5, atol=1e-5)
    with torch.no_grad():  # as at a look
        doubled = [2 * w if i < 3 else w for i, w in enumerate(weights)]
        assert torch.allclose(
            tangent.forward(doubled, x), 2 * tangent.forward(weights, x), rtol=1e-5, atol=1e-5
        )


TANGENT = RunSpec(
    task=SparseParity(10, 2),
    data=Data(n_test=200),
    model=Tangent(30),
    init=TangentStart(XavierUniform()),
    training=Training(steps=60, weight_decay=0, target_error=None),
    evaluation=Evaluation(every=20, curves=True),
)


def test_a_tangent_model_starts_at_the_networks_start() -> None:
    """θ_0 is what the base draws for the network itself at the run's seed, and θ is 0."""
    drawn = initial_weights([TANGENT, replace(TANGENT, seed=1)])
    network = MLP(30, output="linear")
    theirs = XavierUniform().draw(network.parameters(bits(10), 1), [0, 1])

    assert all(not theta.any() for theta in drawn[:3])
    for mine, other in zip(drawn[3:], theirs, strict=True):
        assert np.array_equal(mine, other)
    paired = initial_weights([replace(TANGENT, init=TangentStart(Paired()))])
    assert np.array_equal(paired[5][..., 15:], -paired[5][..., :15])


@pytest.mark.parametrize("optimiser", [Training().optimiser, Adam(), AdamW()], ids=describe)
def test_training_moves_theta_alone(optimiser: Any) -> None:
    """At the end θ_0 is bit for bit what it was, under every optimiser."""
    spec = replace(TANGENT, training=replace(TANGENT.training, optimiser=optimiser))
    start, end = initial_weights([spec]), list(ended(spec).values())

    for then, now in zip(start[:3], end[:3], strict=True):
        assert np.abs(now - then[0]).max() > 1e-4
    for then, now in zip(start[3:], end[3:], strict=True):
        assert np.array_equal(then[0], now)


@pytest.mark.parametrize("engine", ["torch", "reference"])
def test_weight_decay_leaves_what_is_not_trained(engine: str) -> None:
    """It shrinks θ; θ_0, which no step changes, stays bit for bit."""
    for init in (TangentStart(), Uniform()):
        training = replace(TANGENT.training, weight_decay=0.5)
        evaluation = Evaluation(weights=True)
        spec = replace(TANGENT, init=init, training=training, evaluation=evaluation)
        (record,) = load_engine(engine).run([spec], Silent())
        assert record.weights is not None

        for place, (then, now) in enumerate(
            zip(initial_weights([spec]), record.weights, strict=True)
        ):
            assert np.array_equal(then[0].ravel(), np.array(now, np.float32)) == (place >= 3)


def test_random_features_stay_as_they_were_drawn() -> None:
    """With the schedule `random_features` only the output moves, also under weight decay."""
    spec = RunSpec(
        task=SparseParity(10, 2),
        data=Data(n_test=100),
        model=MLP(12, (8,), output="linear"),
        training=Training(
            steps=50, weight_decay=0.1, schedule=random_features(3), target_error=None
        ),
    )
    network, _ = trained_network(spec, Silent())
    end = [parameter.detach().numpy() for parameter in network.parameters()]
    moved = [
        not np.array_equal(then[0], now)
        for then, now in zip(initial_weights([spec]), end, strict=True)
    ]

    assert moved == [False] * 4 + [True]
    assert random_features() == per_layer((0.0, 1.0))


# Initialisations


def test_a_seeded_start_is_the_same_for_every_run(seed: int) -> None:
    """Runs share the weights that the base draws at that seed, and not their examples."""
    model = MLP(6, output="linear")
    spec = RunSpec(task=SparseParity(10, 2), model=model, init=Seeded(Sparse(2), 5), seed=seed)
    drawn = initial_weights([spec, replace(spec, seed=seed + 1)])
    own = initial_weights([replace(spec, init=Sparse(2), seed=5)])

    for shared, theirs in zip(drawn, own, strict=True):
        assert np.array_equal(shared[0], shared[1])
        assert np.array_equal(shared[0], theirs[0])


def test_plain_starts_have_one_scale_for_all_parameters(seed: int) -> None:
    """Constants, normals and signs do not ask for the layer's size."""
    parameters = MLP(100).parameters(bits(50), 1)
    for weight in Constant(2).draw(parameters, [seed]):
        assert (weight == 2).all()
    for weight in Signs(0.5).draw(parameters, [seed]):
        assert (np.abs(weight) == 0.5).all()
    normal, signs = Normal(3.0).draw(parameters, [seed]), Signs().draw(parameters, [seed])
    assert abs(normal[0].std() / 3 - 1) < 5 / sqrt(2 * 5000)
    assert abs(normal[2].std() / 3 - 1) < 5 / sqrt(2 * 100)
    assert abs(signs[0].mean()) < 5 / sqrt(5000)


@pytest.mark.parametrize("output", ["affine", "linear"])
def test_symmetric_signs_are_theorem_5_5s_start(output: Any, seed: int) -> None:
    """w, u = ±1, biases uniform on the multiples of 1/k within ±1, pairs that cancel."""
    model = MLP(20_000, output=output)
    parameters = model.parameters(bits(9), 1)
    weights = SymmetricSigns(4).draw(parameters, [seed])
    w, b, u = weights[:3]

    assert {*np.unique(w)} == {*np.unique(u)} == {-1, 1}
    values, counts = np.unique(b[0, :10_000], return_counts=True)
    assert np.array_equal(values, np.arange(-3, 4) / 4)
    assert np.abs(counts / 10_000 - 1 / 7).max() < 5 * sqrt(6 / 49 / 10_000)
    assert np.array_equal(w[:, :10_000], w[:, 10_000:])
    assert np.array_equal(b[:, :10_000], b[:, 10_000:])
    assert np.array_equal(u[..., :10_000], -u[..., 10_000:])
    assert np.abs(outputs(model, weights, 9)).max() == 0
    if output == "affine":
        assert not weights[3].any()


def test_a_paired_start_needs_no_output_bias(seed: int) -> None:
    """Without one the network starts as the zero function all the same."""
    model = MLP(4, (6,), output="linear")
    weights = Paired(XavierUniform()).draw(model.parameters(bits(5), 1), [seed])

    assert np.abs(outputs(model, weights, 5)).max() < 1e-6
    assert np.abs(weights[4]).min() > 0


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_the_grid_of_biases_holds_the_neurons_that_the_proof_needs(k: int) -> None:
    """After the first step a good neuron is (±(m/k − 1/2) + b)_+, m bits being +1 [HP Lemma B.4].

    With the grid's b, both signs, they span the parity. The proof's k neurons b_i = −1/2 + (i+1)/k,
    i = 1 … k, do not; i = 0 … k do, with its u* and the opposite sign: 8k (−1)^i and so on.
    """
    m = np.arange(k + 1)
    parity = (-1.0) ** (k - m)
    centred = m / k - 1 / 2
    grid = np.arange(-k + 1, k) / k
    neurons = [np.maximum(sign * centred + b, 0) for b in grid for sign in (1, -1)]
    found, *_ = np.linalg.lstsq(np.transpose(neurons), parity, rcond=None)
    assert np.allclose(found @ neurons, parity)

    i = np.arange(k + 1)
    proofs = np.maximum(centred + (-1 / 2 + (i[:, None] + 1) / k), 0)
    outer = 8 * k * (-1.0) ** i
    outer[k - 1 :] = -6 * k, 2 * k
    assert np.allclose(outer @ proofs, 2 * parity)
    found, *_ = np.linalg.lstsq(proofs[1:].T, parity, rcond=None)
    assert not np.allclose(found @ proofs[1:], parity, atol=0.1)
    assert k < 4 or set(np.round(k * (-1 / 2 + (i + 1) / k))) <= set(np.round(k * grid))


# Greedy layerwise training

GREEDY = RunSpec(
    task=SparseParity(8, 3, support=(1, 4, 6)),
    data=Data(n_test=200),
    model=MLP(6, (5, 4), Power(2)),
    init=Greedy(XavierUniform()),
    training=Training(
        steps=40,
        learning_rate=0.002,
        weight_decay=0.01,
        schedule=frozen_below(2, 4),
        target_error=None,
    ),
    evaluation=Evaluation(every=20, curves=True),
    seed=3,
)


def cut(spec: RunSpec, deeper: tuple[int, ...]) -> RunSpec:
    """Return a greedy run with fewer layers, written out by hand."""
    schedule = frozen_below(len(deeper), len(deeper) + 2)
    return replace(
        spec,
        model=MLP(6, deeper, Power(2)),
        training=replace(spec.training, schedule=schedule),
    )


def test_a_greedy_run_takes_over_what_shorter_runs_learned() -> None:
    """By hand: train one hidden layer; freeze it and train the next; freeze both.

    The new layers start as the base draws them for the whole network.
    """
    fresh = XavierUniform().draw(GREEDY.parameters, [3])
    one = replace(cut(GREEDY, ()), init=XavierUniform())
    first = list(ended(one).values())
    second = list(ended(cut(GREEDY, (5,))).values())
    start = initial_weights([GREEDY])
    middle = initial_weights([cut(GREEDY, (5,))])

    for j in range(2):  # the first layer never moves after its own run
        assert np.array_equal(middle[j][0], first[j])
        assert np.array_equal(second[j], first[j])
        assert np.array_equal(start[j][0], first[j])
        assert np.array_equal(start[j + 2][0], second[j + 2])
        assert not np.array_equal(second[j + 2], middle[j + 2][0])
    assert not np.array_equal(first[0], fresh[0][0])
    for mine, drawn in zip(start[4:], fresh[4:], strict=True):
        assert np.array_equal(mine, drawn)
    end = list(ended(GREEDY).values())
    moved = [not np.array_equal(now, then[0]) for now, then in zip(end, start, strict=True)]
    assert moved == [False] * 4 + [True] * 4


@pytest.mark.parametrize("output", ["affine", "linear", "sum"])
def test_every_output_can_be_trained_greedily(output: Any) -> None:
    """The head is drawn anew in each run, whatever it is; engines agree on the whole run."""
    n_layers = 3 if output == "sum" else 4
    spec = replace(
        GREEDY,
        model=MLP(6, (5, 4), Power(2), output),
        training=replace(GREEDY.training, schedule=frozen_below(2, n_layers)),
    )
    specs = [spec, replace(spec, seed=4)]
    spec.check()
    stacked = {r.spec.seed: r for r in load_engine("torch").run(specs, Silent())}
    for theirs in load_engine("reference").run(specs, Silent()):
        mine = stacked[theirs.spec.seed]
        assert mine.steps == theirs.steps == 40
        assert np.allclose(
            mine.curves["train_loss"][1:], theirs.curves["train_loss"][1:], rtol=1e-4
        )
        assert np.allclose(mine.curves["test_error"], theirs.curves["test_error"], atol=0.01)


def test_each_run_of_a_stack_has_its_own_parent() -> None:
    """Runs that are stacked may differ in their rates, and then their parents do."""
    faster = replace(GREEDY, training=replace(GREEDY.training, learning_rate=0.003))
    together = initial_weights([GREEDY, faster])
    alone = initial_weights([GREEDY]), initial_weights([faster])

    for both, *each in zip(together, *alone, strict=True):
        assert np.array_equal(both, np.concatenate(each))
    assert not np.array_equal(together[0][0], together[0][1])


def test_a_greedy_parent_has_the_schedule_without_its_first_layer() -> None:
    """Pieces by layer or by parameter keep what they say of the new layer and the output."""
    from petridish.training.greedy import _parent

    by_layer = Schedule((Piece(0, (0.0, 0.0, 1.0, 0.5), 2.0), Piece(9, (0.0, 0.0, 0.1, 0.2))))
    by_parameter = per_layer((0.0,) * 4 + (1.0, 0.0, 0.5, 0.4), tuple(map(float, range(8))))
    for given, expected in (
        (
            by_layer,
            Schedule(
                (
                    Piece(0, (0.0, 0.0, 1.0, 1.0, 0.5, 0.5), 2.0),
                    Piece(9, (0.0, 0.0, 0.1, 0.1, 0.2, 0.2)),
                )
            ),
        ),
        (
            by_parameter,
            per_layer((0.0,) * 2 + (1.0, 0.0, 0.5, 0.4), tuple(map(float, range(2, 8)))),
        ),
    ):
        spec = replace(GREEDY, training=replace(GREEDY.training, schedule=given))
        parent = _parent(spec)
        assert parent.training.schedule == expected
        assert parent.model == MLP(6, (5,), Power(2))
        assert (parent.init, parent.seed) == (spec.init, spec.seed)
        assert not parent.evaluation.curves


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            replace(GREEDY, training=Training()),
            "Greedy: the schedule trains layer 1, which is taken over as it was learned. "
            "Give schedule=frozen_below(2, 4).",
        ),
        (
            replace(
                GREEDY,
                training=Training(
                    schedule=Schedule((*frozen_below(2, 4).pieces, Piece(9, (0.0, 1.0, 1.0, 1.0))))
                ),
            ),
            "Greedy: the schedule trains layer 2, which is taken over as it was learned. "
            "Give schedule=frozen_below(2, 4).",
        ),
        (
            replace(GREEDY, model=PolyNet(3), training=Training()),
            "Greedy: polynet has no hidden layers to be trained one after another. Give an MLP.",
        ),
    ],
)
def test_what_cannot_be_trained_greedily_is_refused(spec: RunSpec, sentence: str) -> None:
    """Each refusal says what to do."""
    with pytest.raises(UserError) as error:
        initial_weights([spec])
    assert str(error.value) == sentence


def test_layers_are_frozen_from_the_first_on() -> None:
    """The schedule has a rate of 0 for each frozen layer and 1 for the others."""
    assert frozen_below(1, 3) == per_layer((0.0, 1.0, 1.0))
    assert frozen_below(0, 2) == per_layer((1.0, 1.0))
    with pytest.raises(UserError) as error:
        frozen_below(3, 2)
    assert str(error.value) == ("frozen_below: n_layers=2. Give a whole number of at least 3.")


# Names of runs


def test_the_choice_of_an_output_leaves_earlier_runs_their_names() -> None:
    """Keys as they were before `MLP.output` came; another output is another run."""
    task = SparseParity(50, 3)
    base = RunSpec(task=task, model=MLP(1000), init=Paired(Sparse(3)), seed=7)

    assert run_key(RunSpec(task=task)) == "69dd9fcfc5bd34c58abccfde2f2438ce"
    assert run_key(base) == "c699401a08b3ba0776c6f8584e391183"
    assert run_key(replace(base, model=MLP(1000, output="affine"))) == run_key(base)
    assert run_key(replace(base, model=MLP(1000, output="linear"))) != run_key(base)
