"""The runs that `tests.fake_cuda` and `tests.fake_reference` carry out on fake CUDA tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from petridish.choices import describe
from petridish.models import (
    MLP,
    AttentionOnly,
    BareHead,
    CausalTransformer,
    ClsTransformer,
    Homogeneous,
    MinimalAttention,
    PublishedInduction,
)
from petridish.tasks import BiasedAnd, Dictionary, GroupProduct, HiddenLabels, MarkovChains
from petridish.testing import short_run
from petridish.training import (
    INSTRUMENTS,
    CentreCosine,
    CrossEntropy,
    Evaluation,
    Hinge,
    Instrument,
    RunSpec,
    StrategyLoss,
)


def with_instruments(spec: RunSpec, *instruments: Instrument | str) -> RunSpec:
    """Return a run that is read at every evaluation."""
    evaluation = Evaluation(every=1, curves=True, weights=True, instruments=instruments)
    return replace(spec, evaluation=evaluation)


def cases() -> dict[str, tuple[RunSpec, bool]]:
    """Return the runs, and whether all that they use is this package's."""
    from tests.test_contracts import MEASURED
    from tests.test_contracts import RUNS as CONTRACTS
    from tests.test_engines import SPECS, on_group, spec_of

    # How a run starts is drawn on the host, whatever comes after it.
    found = {name: (spec, True) for name, spec in SPECS.items() if not name.startswith("init ")}
    chains = spec_of(
        task=MarkovChains(3, 6), model=AttentionOnly(4), training={"loss": CrossEntropy()}
    )
    found["chains"] = (chains, True)
    weighted = CrossEntropy((1.0, 2.0, 0.5, 1.0, 1.0, 3.0))
    found["weighted classes"] = (on_group(training={"loss": weighted}), True)
    found |= {f"contract {name}": (spec, False) for name, spec in CONTRACTS.items()}
    found |= {name: (spec, True) for name, spec in more_runs().items()}
    for run, metric in MEASURED:
        found[f"metric {metric} of {run}"] = (with_metric(CONTRACTS[run], metric), False)
    return found | {name: (spec, False) for name, spec in readings().items()}


def more_runs() -> dict[str, RunSpec]:
    """Return runs of models, and with choices, that no other case has.

    A user's loss, metric and activation make tensors at every call.
    """
    from tests.own_parts import Ramp, RampLoss, RampMetric
    from tests.test_engines import spec_of
    from tests.test_induction_models import run_of

    return {
        "bare head": short_run(BiasedAnd(5), BareHead(6, 3)),
        "causal": run_of(CausalTransformer(6, 1, positions="absolute", mlp=5)),
        "published": run_of(PublishedInduction(2)),
        "clip": spec_of(training={"clip": 0.05}),
        "own loss": spec_of(training={"loss": RampLoss()}),
        "own metric": with_metric(spec_of(), RampMetric()),
        "own activation": spec_of(model=MLP(6, activation=Ramp())),
    }


def with_metric(spec: RunSpec, metric: Any) -> RunSpec:
    """Return a run that is measured at every step."""
    return replace(spec, evaluation=Evaluation(every=1, curves=True, metrics=(metric,)))


def readings() -> dict[str, RunSpec]:
    """Return runs in which every instrument is read, each where it finds something."""
    from tests.own_parts import Mixed
    from tests.test_attention_instruments import OF_CHAINS
    from tests.test_cls_attention import OF_CLS
    from tests.test_contracts import OF_OTHERS
    from tests.test_contracts import RUNS as CONTRACTS
    from tests.test_induction_instruments import OF_HEADS, OF_MINIMAL
    from tests.test_induction_models import run_of

    usual = [INSTRUMENTS[name]() for name in sorted(set(INSTRUMENTS) - OF_OTHERS)]
    margins = [INSTRUMENTS[n]() for n in ("open_margins", "pattern_gradient", "pattern_ratio")]
    of_chains = [*OF_CHAINS, StrategyLoss(at=(4,))]
    group = short_run(GroupProduct("Z5"), Homogeneous(6))
    given: list[tuple[RunSpec, Sequence[Instrument]]] = [
        (CONTRACTS["parity"], usual),
        (group, usual),
        (short_run(Dictionary(7, 5, 3), MLP(6), Hinge()), margins),
        (short_run(MarkovChains(3, 6), AttentionOnly(4)), of_chains),
        (short_run(HiddenLabels(7, 5, 3, 2), MLP(6)), [CentreCosine()]),
        (short_run(BiasedAnd(5), ClsTransformer(4, 2)), OF_CLS),
        (run_of(AttentionOnly(4)), OF_HEADS),
        (run_of(MinimalAttention()), OF_MINIMAL),
        (CONTRACTS["coins"], [Mixed()]),
    ]
    return {
        f"instruments of {describe(spec.model)} on {describe(spec.task)}": with_instruments(
            spec, *instruments
        )
        for spec, instruments in given
    }
