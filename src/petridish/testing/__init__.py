"""The contracts as functions: give one of your own classes to the check of its kind.

Each check raises `Broken`, an `AssertionError`, with one sentence that says what was asked, what
was found and what to do; or the `UserError` with which a class itself refuses. The package's own
classes are held to the same checks.

>>> from petridish.tasks import SparseParity
>>> from petridish.testing import check_task
>>> check_task(SparseParity(10, 3))
"""

from petridish.testing.base import Broken, short_run
from petridish.testing.engines import check_engine
from petridish.testing.losses_and_metrics import check_instrument, check_loss, check_metric
from petridish.testing.models import check_init, check_model
from petridish.testing.tasks import check_task

__all__ = [
    "Broken",
    "check_engine",
    "check_init",
    "check_instrument",
    "check_loss",
    "check_metric",
    "check_model",
    "check_task",
    "short_run",
]
