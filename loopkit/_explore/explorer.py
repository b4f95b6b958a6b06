"""``lk.explore``: the outcomes of the user's choices, one of which is shown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

from loopkit._arguments import joined
from loopkit._called import fitting
from loopkit._costs.devices import Device, chosen
from loopkit._errors import InvalidArgumentError, check_known
from loopkit._explore.choice_table import Tried
from loopkit._explore.controls import Control, Positions, controls_of
from loopkit._explore.outcome import Asked, Outcome, further, made
from loopkit._kernel import Kernel
from loopkit._spelling import shown

if TYPE_CHECKING:
    from loopkit._explore.panel import Panel

KEPT = 100
"""Outcomes that an explorer keeps."""


class Explorer:
    """The arguments of a schedule's function, the current choice, and all results so far.

    Made by :func:`explore`.  In Jupyter it shows itself with its controls, elsewhere as text.
    """

    def __init__(self, controls: tuple[Control, ...], asked: Asked) -> None:
        self.controls = controls
        self._asked = asked
        self.positions: Positions = tuple(control.start for control in controls)
        """What is chosen, as positions among the options."""
        self.before: Outcome | None = None
        """The outcome that was shown before this one, if it had a kernel."""
        self._seen: dict[Positions, Outcome] = {}
        self._forgotten = 0
        self._panel: Panel | None = None

    @property
    def choice(self) -> dict[str, Any]:
        """What is chosen: a value for each argument that has a control."""
        pairs = zip(self.controls, self.positions, strict=True)
        return {control.name: control.options[position] for control, position in pairs}

    def set(self, choice: Mapping[str, Any] | None = None, /, **more: Any) -> Explorer:
        """Choose other values for some arguments; returns the explorer itself.

        Raises :class:`UnknownNameError` for arguments without a control, and
        :class:`InvalidArgumentError` for values that are not among their options.
        """
        wanted = {**(choice or {}), **more}
        known = [control.name for control in self.controls]
        check_known("argument", wanted, known)
        pairs = zip(self.controls, self.positions, strict=True)
        self.move(tuple(c.position(wanted[c.name]) if c.name in wanted else p for c, p in pairs))
        if self._panel is not None:
            self._panel.follow()
        return self

    def move(self, positions: Positions) -> None:
        """Choose by positions."""
        if positions != self.positions:
            now = self._seen.get(self.positions)
            if now is not None and now.kernel is not None:
                self.before = now
            self.positions = positions

    @property
    def so_far(self) -> Outcome:
        """The outcome of the choice as far as it was looked at, the kernel at least."""
        known = self._seen.get(self.positions)
        return self._keep(made(self._asked, self.choice)) if known is None else known

    def advance(self) -> Outcome:
        """Find out the next thing that is left of the outcome."""
        return self._keep(further(self.so_far, self._asked))

    def _keep(self, outcome: Outcome) -> Outcome:
        self._seen[self.positions] = outcome
        if len(self._seen) > KEPT:
            del self._seen[next(iter(self._seen))]
            self._forgotten += 1
        return outcome

    @property
    def outcome(self) -> Outcome:
        """All that there is to know about the choice; takes as long as it takes."""
        while (found := self.so_far).left:
            self.advance()
        return found

    @property
    def kernel(self) -> Kernel:
        """The kernel of the choice; raises what its function raised where there is none."""
        found = self.so_far
        if found.kernel is None:
            assert found.failure is not None
            raise found.failure.error
        return found.kernel

    def script(self) -> str:
        """Python source for the choice; its first line says of which kind it is.

        The function with all that it needs of its file or notebook, and the call, which was run
        and gives this kernel; where that is not to be had, the steps that the kernel records.
        Raises what the function raised where there is no kernel.
        """
        from loopkit._explore.script import script

        return script(self._asked.make, self.choice, self.kernel)

    def table(self) -> Tried:
        """All outcomes so far side by side, as far as each was looked at."""
        seen = tuple(self._seen.values())
        places = {positions: place for place, positions in enumerate(self._seen)}
        return Tried(seen, places.get(self.positions), self._forgotten)

    def panel(self) -> Panel:
        """The widgets, of which there is one set; raises ImportError without ipywidgets."""
        from loopkit._explore.panel import Panel

        if self._panel is None:
            self._panel = Panel(self)
        return self._panel

    def output(self) -> Element:
        """The choice and all that there is to know about it, as a page shows it."""
        from loopkit._explore.shown_explorer import as_page

        return as_page(self, self.outcome)

    def __str__(self) -> str:
        from loopkit._explore.shown_explorer import as_text

        return as_text(self, self.outcome)

    __repr__ = __str__

    def _ipython_display_(self) -> None:
        from loopkit._explore.shown_explorer import show

        show(self)

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        from loopkit._explore.shown_explorer import forms

        return forms(self, include, exclude)


@fitting
def explore(
    make: Callable[..., Kernel],
    controls: Mapping[str, Any] | None = None,
    /,
    *,
    sizes: Mapping[str, int] | None = None,
    device: Device | str | None = None,
    arrays: Mapping[str, Any] | None = None,
    **more: Any,
) -> Explorer:
    """Show the kernels that a function returns, with controls for its arguments.

    In Jupyter with sliders and menus; nest and source follow at once, then costs, proof and time
    as they come.  A choice that is illegal shows its witness.

    :arg make: a function that returns a kernel.  It is called for each choice that is looked at.
    :arg controls: what its arguments may be, by name; ``more`` are such, too.  A list holds options
        (``tile=[8, 16, 32]``), a tuple of two whole numbers the least and the greatest
        (``stages=(1, 4)``), True or False becomes a checkbox.  An argument that has a default may
        be left out; where it is among the options, it comes first.
    :arg sizes: whole numbers by name: with them costs are counted, as :meth:`Kernel.costs` does.
    :arg device: what registers, occupancy and the roofline are of, as in :meth:`Kernel.costs`.
    :arg arrays: arguments to measure with, by name; where there is a GPU, ``sizes`` are enough.
        See :func:`loopkit.measure`.
    :returns: an :class:`Explorer`, which shows itself.
    :raises InvalidArgumentError: for what is no function, for an argument that it needs and that
        has no options, and for options that cannot be shown.
    :raises UnknownNameError: for arguments that it does not have, and for unknown devices.
    """
    if controls is not None and not isinstance(controls, Mapping):
        raise InvalidArgumentError(
            f"controls maps names to options, and {shown(controls)} does not",
            instead="explore(make, tile=[8, 16, 32])",
        )
    found = controls_of(make, joined(controls, more))
    for what, values in (("sizes", sizes), ("arrays", arrays)):
        if values is not None and not isinstance(values, Mapping):
            raise InvalidArgumentError(
                f"{what} maps names to values, and {shown(values)} does not",
                instead=f'{what}={{"n": ...}}',
            )
    asked = Asked(
        make,
        {name: _whole(name, value) for name, value in (sizes or {}).items()},
        None if device is None else chosen(device),
        dict(arrays or {}),
        arrays is not None or _has_gpu(),
    )
    return Explorer(found, asked)


def _whole(name: object, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgumentError(f"the size {shown(name)} is a whole number, not {shown(value)}")
    return value


def _has_gpu() -> bool:
    from loopkit._run.driver import has_gpu

    return has_gpu()
