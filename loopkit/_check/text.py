"""The text of a schedule, prepared for questions."""

from __future__ import annotations

from loopkit._cached import memoised
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._poly.dataflow import Dataflow
from loopkit._poly.model import Model, model_of


@dataclass(frozen=True, eq=False)
class Text:
    """The kernel that says what is meant, prepared for questions."""

    model: Model
    dataflow: Dataflow


@memoised
def text_of(kernel: Kernel) -> Text:
    """The prepared form of a root kernel (memoised on it)."""
    model = model_of(kernel)
    return Text(model, Dataflow(model))
