"""Fitting a model of another library so that it neither disturbs nor depends on what is around."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout


@contextmanager
def alone(*, on_torch: bool) -> Iterator[None]:
    """Compute in one thread and print nothing; the caller's settings come back."""
    from threadpoolctl import threadpool_limits

    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of tiny samples and slow convergence: they are meant
        stack.enter_context(redirect_stdout(io.StringIO()))
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)
        stack.enter_context(threadpool_limits(limits=1))
        if on_torch:
            from petridish.training.numerics import settled

            stack.enter_context(settled())
        yield
