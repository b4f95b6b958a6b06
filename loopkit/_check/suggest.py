"""Legal alternatives to a refused step: candidates, each of which is checked.

The search starts only when a refusal's message is read, so that refusals remain cheap; checks of
candidates read no messages and thus start no nested searches. A search never raises, and ends with
what it has found when its budget is spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from loopkit import _budget
from loopkit._budget import SpentError, apart_from_kept
from loopkit._cached import cached_property
from loopkit._check import suggest_order
from loopkit._check.suggest_arguments import by_arguments, by_assertions, by_numbers, by_sizes
from loopkit._check.suggest_parallel import (
    by_atomic_sums,
    by_launches,
    by_looking_back,
    by_other_loops,
    by_tags,
    by_threads,
)
from loopkit._check.suggest_storage import by_axes, by_copies, by_saving, by_spaces
from loopkit._check.suggest_try import Refusal, Suggestion, Trials, refused
from loopkit._frozen import dataclass
from loopkit._history import Step
from loopkit._kernel import Kernel

if TYPE_CHECKING:
    from loopkit._change import Change
    from loopkit._check.violation import Violation

MOST = 3
"""As many suggestions at most."""


class Suggestions(Sequence[str]):
    """The suggestions for a refused step, found when first read.

    ``wrong`` says what is wrong with its ``change``, where there is one.
    """

    def __init__(
        self,
        kernel: Kernel,
        step: Step,
        change: Change | None = None,
        wrong: Callable[[], Sequence[Violation]] = tuple,
    ) -> None:
        self.kernel = kernel
        self.step = step
        self.change = change
        self.wrong = wrong

    @cached_property
    def found(self) -> tuple[str, ...]:
        """What would be legal in the place of the step, at most three lines."""
        lines: dict[str, int] = {}
        asked = self.change.kernel if self.change is not None else None
        trials = Trials(_budget.TRIES_EFFORT, _budget.TRIES, asked)
        refusal: Kernel | Refusal
        try:
            refusal = Refusal(self.kernel, self.step, self.change, tuple(self.wrong()))
            if not refusal.violations:
                refusal = refused(self.kernel, self.step)
            if isinstance(refusal, Refusal):
                _search(refusal, trials, lines)
        except Exception:
            # Tries are over; or a message must come out, whatever is wrong with what it may add.
            pass
        return tuple(sorted(lines, key=lambda line: lines[line]))

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self.found[index]

    def __len__(self) -> int:
        return len(self.found)

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self.found,)


@dataclass(frozen=True)
class Family:
    """One kind of repair.

    ``find`` yields candidates; at most ``most`` of those that are legal are used.
    Families are asked in the order of ``FAMILIES``; what they find is shown in the
    order of ``rank``, the least intrusive first.  A ``last`` family is asked only
    where nothing but weak suggestions was found.
    """

    find: Callable[[Refusal, Trials], Iterator[Suggestion]]
    rank: int
    most: int = 1
    last: bool = False


FAMILIES = (
    Family(by_arguments, 0),
    Family(by_tags, 1, most=2),
    Family(by_numbers, 2),
    Family(by_spaces, 3),
    Family(by_saving, 4),
    Family(by_axes, 4),
    Family(by_copies, 5, last=True),
    Family(by_assertions, 6),
    Family(suggest_order.by_order, 7),
    Family(suggest_order.by_maps, 8),
    Family(suggest_order.by_skewing, 9),
    Family(suggest_order.by_own_loops, 9),
    Family(by_threads, 10),
    Family(by_atomic_sums, 10),
    Family(by_looking_back, 10),
    Family(by_other_loops, 11, last=True),
    Family(suggest_order.by_wavefronts, 12, last=True),
    Family(by_launches, 14),
    Family(by_sizes, 13),
)


def _search(refusal: Refusal, trials: Trials, found: dict[str, int]) -> None:
    is_enough = False
    for family in FAMILIES:
        if family.last and is_enough:
            continue
        mine = 0
        for suggestion in _limited(trials.legal(refusal.kernel, family.find(refusal, trials))):
            line = suggestion.line()
            if line in found or (suggestion.is_special and is_enough):
                continue
            found[line] = family.rank
            is_enough = is_enough or not suggestion.is_weak
            if len(found) == MOST:
                return
            mine += 1
            if mine == family.most:
                break


def _limited(found: Iterator[Suggestion]) -> Iterator[Suggestion]:
    """What a family finds; it ends where isl would take too long between two tries."""
    while True:
        try:
            with apart_from_kept(_budget.BETWEEN_TRIES):
                suggestion = next(found, None)
        except SpentError:
            return
        if suggestion is None:
            return
        yield suggestion
