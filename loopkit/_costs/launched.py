"""The launches of a kernel as they are counted and drawn: each with its calls."""

from __future__ import annotations

from loopkit._cached import memoised
from loopkit._costs.calls import ONCE, Calls
from loopkit._errors import UnknownNameError
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._launches import is_one_launch
from loopkit._poly.model import Model, model_of
from loopkit._slabs import settled


@dataclass(frozen=True, eq=False)
class Launched:
    """A launch as a kernel, and in which iterations of loops around it the call runs it.

    ``model`` is of the kernel as it is lowered; ``number`` counts launches in the text, from 0.
    """

    number: int
    kernel: Kernel
    model: Model
    calls: Calls


@memoised
def launched(kernel: Kernel) -> tuple[Launched, ...]:
    """All launches, each once, in the order of the text (memoised).

    Raises what lowering raises.
    """
    from loopkit.codegen.launches import parts_in, parts_of
    from loopkit.codegen.prepare import prepare

    kernel = settled(kernel)
    if is_one_launch(kernel):
        return (Launched(0, kernel, model_of(prepare(kernel)), ONCE),)
    return tuple(
        Launched(
            part.launch.number,
            part.kernel,
            model_of(prepare(part.kernel)),
            Calls(part.launch.loops, part.where),
        )
        for part in parts_in(parts_of(kernel))
    )


def launch_with(kernel: Kernel, statement: str) -> Launched:
    """The launch that executes a statement.

    Raises :class:`UnknownNameError` where no launch does, and what lowering raises.
    """
    every = launched(kernel)
    for one in every:
        if statement in one.model.statement:
            return one
    known = [name for one in every for name in one.model.statement]
    raise UnknownNameError("statement", statement, known)
