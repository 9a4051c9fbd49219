r"""SGD that the target leaves no trace in: PF's Assumption 2 and Proposition 3 on small networks.

The network is :math:`h(x) = \sum_j u_j \tanh(w_j \cdot x + b_j)` with fixed signs u, so that no
derivative is above 1, and the loss ½ (y − h)², as the proposition asks. The *blind* path
:math:`\theta^\star_t` is gradient descent on the population's loss for the target 0. The gradient
for the target χ_S differs from it by −E[χ_S ∂h], a Fourier coefficient of a derivative; as long as
no difference is above τ, noise within [−τ, τ] keeps SGD on the blind path, whatever S is.
Everything but the samples is computed over all 2^n inputs.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from petridish.errors import check_whole, require
from petridish.theory.checks import check_positive, check_size
from petridish.theory.fourier import all_signs, fourier_coefficients

Floats = NDArray[np.float64]
Sampling = Literal["online", "offline", "batches"]
POOL = 4  # a sample from which batches of m are drawn has POOL · m examples


@dataclass(frozen=True)
class BlindPath:
    """The blind path of one network, of `width` neurons drawn by `seed`.

    Attributes
    ----------
    n, width, steps : int
        Bits, neurons, and the proposition's T.
    rate : float
    seed : int
        Of weights and biases, uniform on ±1/√n, and of the signs.
    """

    n: int
    width: int
    steps: int
    rate: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole("BlindPath", 1, n=self.n, width=self.width, steps=self.steps)
        check_positive(rate=self.rate)

    @property
    def parameters(self) -> int:
        """The proposition's r: weights and biases of the first layer."""
        return self.width * (self.n + 1)

    @property
    def signs(self) -> Floats:
        """The second layer u, shape (width,)."""
        return np.random.default_rng((self.seed, 1)).choice([-1.0, 1.0], self.width)

    def inputs(self) -> Floats:
        """Return all inputs, with a 1 for the bias at the end, shape (2^n, n + 1)."""
        signs = all_signs(self.n).astype(np.float64)
        return np.hstack([signs, np.ones((len(signs), 1))])

    def weights(self) -> list[Floats]:
        """Return θ*_0 to θ*_(T−1), each of shape (width, n + 1)."""
        bound = 1 / math.sqrt(self.n)
        w = np.random.default_rng((self.seed, 0)).uniform(-bound, bound, (self.width, self.n + 1))
        inputs = self.inputs()
        path = [w]
        for _ in range(self.steps - 1):
            path.append(path[-1] - self.rate * self.gradient(path[-1], inputs))
        return path

    def derivatives(self, w: Floats, inputs: Floats) -> tuple[Floats, Floats]:
        """Return h of some inputs, shape (m,), and ∂h/∂w, shape (width, n + 1, m)."""
        active = np.tanh(w @ inputs.T)  # (width, m)
        slopes = self.signs[:, None] * (1 - active**2)
        return self.signs @ active, slopes[:, None, :] * inputs.T

    def gradient(self, w: Floats, inputs: Floats, target: Floats | None = None) -> Floats:
        """Return the gradient of the mean loss over some inputs; the target is 0 if left out."""
        outputs, slopes = self.derivatives(w, inputs)
        errors = outputs if target is None else outputs - target
        return np.asarray(slopes @ errors / len(inputs))  # (width, n + 1)

    def differences(self, k: int) -> Floats:
        """Return max |E[χ_S ∂h]| along the path, over steps and parameters, for every S of k bits.

        In the order of the sets' masks; the proposition bounds the mean of its square by
        r T / C(n, k) (Lemma 6).
        """
        check_size("BlindPath.differences", self.n, k)
        sizes = np.array([mask.bit_count() for mask in range(2**self.n)])
        inputs = self.inputs()
        found = np.zeros(math.comb(self.n, k))
        for w in self.weights():
            spectra = fourier_coefficients(self.derivatives(w, inputs)[1])  # (width, n + 1, 2^n)
            found = np.maximum(found, np.abs(spectra[..., sizes == k]).max(axis=(0, 1)))
        return found

    def sample_error(
        self,
        m: int,
        *,
        sampling: Sampling = "online",
        support: Collection[int] | None = None,
        seed: int = 0,
    ) -> float:
        """Return the largest error of the sample's gradients along the path.

        Every step has m fresh examples ("online"), the m of one sample ("offline"), or a batch of m
        from one sample of 4 m ("batches"). Assumption 2 is about the target 0, which it is if
        `support` is left out; the proof of the proposition needs it for χ_S.
        """
        check_whole("BlindPath.sample_error", 1, m=m)
        known = get_args(Sampling)
        require(sampling in known, f"sample_error: sampling={sampling!r}. Give one of {known}.")
        rng = np.random.default_rng(seed)
        inputs = self.inputs()
        target = None if support is None else _parity(inputs, support)
        kept = rng.integers(len(inputs), size=m if sampling == "offline" else POOL * m)
        worst = 0.0
        for w in self.weights():
            chosen = kept
            if sampling == "online":
                chosen = rng.integers(len(inputs), size=m)
            elif sampling == "batches":
                chosen = rng.choice(kept, size=m)
            error = self.gradient(w, inputs[chosen], target if target is None else target[chosen])
            error -= self.gradient(w, inputs, target)
            worst = max(worst, float(np.abs(error).max()))
        return worst

    def leaves_at(self, support: Collection[int], m: int, tau: float, *, seed: int = 0) -> int:
        """Return the step at which SGD on χ_S leaves the blind path; T if it never does.

        Every step has m fresh examples, and an adversary adds the noise within [−τ, τ] that brings
        the gradient nearest to that of the blind path.
        """
        check_whole("BlindPath.leaves_at", 1, m=m)
        check_positive(tau=tau)
        rng = np.random.default_rng(seed)
        inputs = self.inputs()
        parity = _parity(inputs, support)
        for step, w in enumerate(self.weights()):
            chosen = rng.integers(len(inputs), size=m)
            needed = self.gradient(w, inputs) - self.gradient(w, inputs[chosen], parity[chosen])
            if np.abs(needed).max() > tau:
                return step
        return self.steps


def told_apart(n: int, k: int, *, width: int, steps: int, tau: float, starts: int = 10) -> float:
    """Return the share of k-parities that show on the blind path, the mean over some starts.

    A parity shows if some gradient differs by more than τ/2, the half that Assumption 2 leaves.
    Proposition 3's proof bounds it by r T / ((τ/2)² C(n, k)).
    """
    check_positive(tau=tau)
    shares = [
        float((BlindPath(n, width, steps, seed=seed).differences(k) > tau / 2).mean())
        for seed in range(starts)
    ]
    return float(np.mean(shares))


def _parity(inputs: Floats, support: Collection[int]) -> Floats:
    return np.asarray(inputs[:, sorted(set(support))].prod(axis=1))
