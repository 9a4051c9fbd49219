"""How the estimators' members are started and trained."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from petridish import SparseMLPClassifier, SparseMLPRegressor
from petridish.errors import UserError
from petridish.estimator import dropout
from petridish.estimator.dropout import DropoutMembers
from petridish.estimator.fitting import Recipe, WeightedRows, auto_batch, auto_rate, train_members
from petridish.estimator.relevance import relevance, weighing_members
from petridish.estimator.start import AsIn, AtData
from petridish.models import MLP, Sparse
from petridish.seeds import Streams
from petridish.training.optimisers import AdamW
from tests.domains import bits
from tests.table_estimators import QUICK, both, products

# Training.


def test_what_is_chosen_from_the_number_of_rows() -> None:
    """12 √n steps; batches from 32 to 256; rates in proportion to √n, up to 2e-3."""
    assert [auto_batch(n) for n in (2, 100, 5000, 10**6)] == [32, 32, 100, 256]
    assert [auto_rate(n) for n in (100, 1600, 10**6)] == pytest.approx([5e-4, 2e-3, 2e-3])
    for n_rows, steps in ((10, 38), (100, 120), (1000, 380)):
        x, y = products(n_rows)
        whole = SparseMLPRegressor(width=4, n_members=1, early_stopping=False).fit(x, y)
        assert whole.n_iter_ == steps


def test_many_copies_of_few_rows_are_many_rows() -> None:
    """Two columns of 0 and 1 give eight distinct rows; 2000 of them are learned as 2000."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (2000, 2)).astype(np.float64)
    chance = np.array([[0.1, 0.4], [0.6, 0.2]])[x[:, 0].astype(int), x[:, 1].astype(int)]
    y = (rng.random(2000) < chance).astype(int)
    classifier = SparseMLPClassifier(width=64, n_members=2, random_state=0).fit(x, y)

    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    shares = [y[(x == corner).all(axis=1)].mean() for corner in corners]
    np.testing.assert_allclose(classifier.predict_proba(corners)[:, 1], shares, atol=0.05)


def test_neurons_start_on_relevant_columns_and_bend_at_rows() -> None:
    """±1 on two columns, drawn by the members' factors; each bias puts a row on the bend."""
    rows = np.random.default_rng(0).normal(size=(50, 5)).astype(np.float32)
    factors = np.array([[1, 1, 1, 1, 1], [1, 1, 0.5, 0.1, 0.1]], np.float32)
    drawn = AtData(2).draw(MLP(3000).parameters(bits(5), 1), [7, 8], rows, factors)
    weight, bias = drawn[0], drawn[1]

    assert set(np.unique(weight)) == {-1, 0, 1}
    assert ((weight != 0).sum(axis=2) == 2).all()
    uses = (weight != 0).mean(axis=1)
    np.testing.assert_allclose(uses[0], 0.4, atol=0.03)  # 3 standard errors
    assert (np.diff(uses[1])[[1, 2]] < -0.1).all()
    for member in range(2):
        at_rows = (weight[member] * factors[member]) @ rows.T + bias[member][:, None]
        assert (np.abs(at_rows).min(axis=1) < 1e-5).all()


def test_relevance_is_what_a_column_says_alone() -> None:
    """A strong column has 1, a weaker one less, noise 0.1 or little more; a class a number."""
    x = np.random.default_rng(0).normal(size=(400, 6)).astype(np.float32)
    y = (x[:, 2] + 0.5 * x[:, 4] > 0).astype(np.float32)[:, None]
    factor = relevance(x, y, np.ones(400), 400)

    assert factor[2] == 1.0
    assert 0.3 < factor[4] < 0.7
    assert factor[[0, 1, 3, 5]].max() < 0.3
    assert factor.min() >= 0.1
    both_classes = np.hstack([y, 1 - y])
    np.testing.assert_allclose(relevance(x, both_classes, np.ones(400), 400), factor)


def test_relevance_does_not_hide_a_parity() -> None:
    """Where no column says anything alone, no column is held back; nor in too few rows."""
    rng = np.random.default_rng(0)
    held_back = 0
    for _ in range(50):
        x = rng.normal(size=(300, 10)).astype(np.float32)
        y = (x[:, :1] * x[:, 1:2] > 0).astype(np.float32)
        held_back += relevance(x, y, np.ones(300), 300).min() < 0.5
    assert held_back <= 10  # by design half of them differ from 1 at all
    assert relevance(x[:5], y[:5], np.ones(5), 5).tolist() == [1.0] * 10
    assert relevance(x, np.ones_like(y), np.ones(300), 300).tolist() == [1.0] * 10


def test_relevance_by_hand() -> None:
    """Two groups of six: means 0 and 1/3 of a target with variance 5/36."""
    x = np.repeat([0.0, 1.0], 6).astype(np.float32)[:, None]
    y = np.array([0] * 10 + [1] * 2, np.float32)[:, None]
    explained = (1 / 6) ** 2 / (5 / 36)
    adjusted = 1 - (1 - explained) * 11 / 10
    beside = np.hstack([x, np.tile([0.0, 1.0], 6).astype(np.float32)[:, None]])

    assert relevance(x, y, np.ones(12), 12).tolist() == [1.0]
    assert adjusted < (6.63 - 5) / 12  # χ²(5) exceeds 6.63 with the chance 1/4
    assert relevance(beside, y, np.ones(12), 12).tolist() == [1.0, 1.0]


def test_a_share_of_the_members_weighs_its_columns() -> None:
    """The first and others, evenly."""
    for n_members, share, weighing in (
        (4, 0.5, [True, False, True, False]),
        (3, 0.5, [True, False, True]),
        (3, 0.0, [False, False, False]),
        (2, 1.0, [True, True]),
        (1, 0.5, [True]),
        (4, 0.25, [True, False, False, False]),
    ):
        assert weighing_members(n_members, share).tolist() == weighing


def test_members_that_weigh_hold_the_factors() -> None:
    """Untrained, their first weights are the factors, and the other members' are ±1."""
    x, _ = products(300)
    still = SparseMLPRegressor(**QUICK, learning_rate=0.0).fit(x, x[:, 2] + 0.2 * x[:, 3])
    sizes = np.abs(still.weights_[0])

    assert still.relevance_[2] == 1.0
    assert still.relevance_.min() < 0.3
    for member in (0, 2):
        used = sizes[member] != 0
        expected = np.broadcast_to(still.relevance_, used.shape)[used]
        np.testing.assert_allclose(sizes[member][used], expected, rtol=1e-6)
    assert set(np.unique(sizes[1])) == {0.0, 1.0}


def test_dropout_silences_as_many_as_it_says() -> None:
    """Masks have the asked share of silence, and follow from a member's seed alone."""
    start = AsIn(Sparse(2)).init.draw(MLP(64, (64,)).parameters(bits(4), 1), [3, 4])
    members = DropoutMembers(start, loss="square", optimiser=AdamW(), dropout=0.3, seeds=[3, 4])
    alone = DropoutMembers(
        [part[1:] for part in start], loss="square", optimiser=AdamW(), dropout=0.3, seeds=[4]
    )
    mask, again = members._mask(torch.Size((2, 500, 64))), members._mask(torch.Size((2, 500, 64)))

    assert mask.float().mean().item() == pytest.approx(0.7, abs=0.01)
    assert not torch.equal(mask, again)
    assert torch.equal(alone._mask(torch.Size((1, 500, 64)))[0], mask[1])


def test_masks_drawn_ahead_are_those_of_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask takes the next whole words of its stream, however many are drawn at once."""
    start = AsIn(Sparse(2)).init.draw(MLP(7, (7,)).parameters(bits(4), 1), [3, 4])
    for ahead in (1, 20, 1000):
        monkeypatch.setattr(dropout, "AHEAD", ahead)
        members, place = dropped(start), 0
        for batch in (5, 5, 3, 40, 5):
            mask = members._mask(torch.Size((2, batch, 7)))
            words = Streams([3, 4], "dropout").words(place, -(-batch * 7 // 8))
            octets = words.astype("<u8").view(np.uint8)[:, : batch * 7]
            assert np.array_equal(mask.numpy().reshape(2, -1), octets >= 128)
            place += words.shape[1]


def test_members_compute_with_the_inputs_that_they_see() -> None:
    """What stands in the others does not reach them, and has no weight in the end."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 6)).astype(np.float32)
    factors = np.ones((3, 6), np.float32)
    factors[:2, 4:], factors[2, :2], factors[0, 1] = 0, 0, 0.5
    recipe = Recipe(MLP(8), AsIn(Sparse(2)), "square", 1e-3, 0.0, "constant", 16, 30)

    def weights(unseen: float) -> list[NDArray[np.float32]]:
        seen = x.copy()
        seen[:, 4:] = unseen
        sample = WeightedRows(seen, x[:, :1], np.ones(64, np.float32))
        return train_members(recipe, sample, range(2), factors=factors[:2]).weights

    for one, other in zip(weights(0.0), weights(np.nan), strict=True):
        assert np.array_equal(one, other)
    sample = WeightedRows(x, x[:, :1], np.ones(64, np.float32))
    both_views = train_members(recipe, sample, range(3), factors=factors).weights
    assert not both_views[0][factors[:, None, :].repeat(8, axis=1) == 0].any()
    assert both_views[0][2, :, 4:].any()


def test_slopes_under_dropout_are_those_of_autograd() -> None:
    """Given the masks, the backward pass by hand is the derivative of the masked network."""
    rng = np.random.default_rng(0)
    start = AsIn(Sparse(2)).init.draw(MLP(8, (8,)).parameters(bits(4), 1), [3, 4])
    x = torch.from_numpy(rng.normal(size=(20, 4)).astype(np.float32))
    target = torch.from_numpy(rng.normal(size=(20, 1)).astype(np.float32))
    slopes = dropped(start).gradients(x, target)

    again = dropped(start)
    weights = [weight.clone().requires_grad_() for weight in again.weights]
    h = x.expand(2, 20, 4)
    for layer in range(2):
        h = (h @ weights[2 * layer].mT + weights[2 * layer + 1].unsqueeze(1)).relu()
        h = h * again._mask(h.shape) * (256 / (256 - 128))
    outputs = h @ weights[4].mT + weights[5].unsqueeze(1)
    (0.5 * (outputs - target).square()).mean(dim=1).sum().backward()  # type: ignore[no-untyped-call]

    for slope, weight in zip(slopes, weights, strict=True):
        torch.testing.assert_close(slope, weight.grad)


def dropped(start: list[NDArray[np.float32]]) -> DropoutMembers:
    """Return two members with half of their neurons silent."""
    return DropoutMembers(start, loss="square", optimiser=AdamW(), dropout=0.5, seeds=[3, 4])


def test_a_failure_in_one_stack_ends_the_others() -> None:
    """What a look's report raises comes out of the fit, and soon; so does Ctrl-C."""
    x, y = products(64)
    sample = WeightedRows(
        x.astype(np.float32), y[:, None].astype(np.float32), np.ones(64, np.float32)
    )
    recipe = Recipe(MLP(8), AtData(2), "logistic", 1e-3, 0.0, "cosine", 64, 10**9)

    def interrupt(steps: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_members(recipe, sample, range(6), steps_done=interrupt)


def test_the_examples_in_the_documentation_run() -> None:
    """As they are printed."""
    import doctest

    from petridish.estimator import classifier, clock, regressor

    found = [doctest.testmod(module) for module in (classifier, regressor, clock)]
    assert [one.attempted for one in found] == [7, 6, 1]
    assert all(one.failed == 0 for one in found)


def test_rates_fall_as_the_schedule_says() -> None:
    """From the peak to 0, halfway by half; or not at all."""
    recipe = Recipe(MLP(8), AsIn(Sparse(2)), "logistic", 0.4, 0.0, "cosine", 64, 30)
    rates = {
        name: [Recipe(**vars(recipe) | {"schedule": name}).rate(p) for p in (0.0, 0.5, 0.75)]
        for name in ("cosine", "linear", "constant")
    }

    assert rates["cosine"] == pytest.approx([0.4, 0.2, 0.2 * (1 - np.sqrt(0.5))])
    assert rates["linear"] == pytest.approx([0.4, 0.2, 0.1])
    assert rates["constant"] == [0.4] * 3


def test_progress_is_shown_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    """A bar on standard error with `verbose`, silence without."""
    x, y = products(40)
    SparseMLPClassifier(**QUICK).fit(x, y)
    assert capsys.readouterr() == ("", "")
    SparseMLPClassifier(**QUICK, verbose=True).fit(x, y)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "SparseMLPClassifier" in shown.err
    assert "100%" in shown.err


def test_divergence_is_an_error() -> None:
    """A rate far too high is named."""
    x, y = products(40)
    with pytest.raises(UserError) as error:
        SparseMLPRegressor(**QUICK, learning_rate=1e30).fit(x, y)

    assert str(error.value) == (
        "SparseMLPRegressor: training diverged with learning_rate=1e+30. Give a smaller one."
    )


@pytest.mark.parametrize(
    ("parameter", "value", "sentence"),
    [
        ("width", 0, "Give a whole number of at least 1."),
        ("width", 2.5, "Give a whole number of at least 1."),
        ("depth", True, "Give a whole number of at least 1."),
        ("n_members", -1, "Give a whole number of at least 1."),
        ("epochs", "many", "Give a whole number of at least 1, or 'auto'."),
        ("early_stopping", "no", "Give True or False."),
        ("n_folds", 1, "Give a whole number of at least 2."),
        ("dropout", 1.0, "Give a number from 0 to below 1."),
        ("relevance", 1.5, "Give a number from 0 to 1."),
        ("relevance", "all", "Give a number from 0 to 1."),
        ("kinks", "rows", "Known: data, random."),
        ("sparsity", "thin", "Give a whole number of at least 1, or 'dense'."),
        ("sparsity", 0, "Give a whole number of at least 1, or 'dense'."),
        ("batch_size", "all", "Give a whole number of at least 1, or 'auto'."),
        ("learning_rate", -0.1, "Give a finite number of at least 0, or 'auto'."),
        ("learning_rate", float("nan"), "Give a finite number of at least 0, or 'auto'."),
        ("weight_decay", float("inf"), "Give a finite number of at least 0."),
        ("schedule", "cosin", "Did you mean cosine?"),
        ("preprocessing", "standard scaler", "Did you mean standard?"),
    ],
)
def test_mistakes_are_named(parameter: str, value: object, sentence: str) -> None:
    """What was wrong, what was given, what to do."""
    x, y = products(20)
    for estimator in both(**{**QUICK, parameter: value}):
        with pytest.raises(UserError) as error:
            estimator.fit(x, y)
        assert str(error.value) == f"{type(estimator).__name__}: {parameter}={value!r}. {sentence}"
