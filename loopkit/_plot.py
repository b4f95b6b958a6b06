"""Entry points for pictures of a kernel, which import the drawing code on first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from loopkit._errors import Witness, WitnessError
from loopkit._kernel import Kernel

if TYPE_CHECKING:
    from loopkit._costs.devices import Device
    from loopkit._costs.sizes import Sizes
    from loopkit._pictures.domain import DomainPicture
    from loopkit._pictures.footprint import FootprintPicture
    from loopkit._pictures.loop import LoopPicture
    from loopkit._pictures.requested import AccessPicture, BankPicture
    from loopkit._pictures.roofline_plot import RooflinePicture
    from loopkit._pictures.witness import WitnessPicture


def plot_domain(
    kernel: Kernel,
    statement: str | None = None,
    /,
    inames: Sequence[str] | None = None,
    *,
    at: Mapping[str, int | range] | None = None,
    colour: str | None = None,
    tiles: Sequence[str] | None = None,
    sizes: Sizes | None = None,
    **more: int,
) -> DomainPicture:
    """The points of a statement's domain, the order in which they run, and who runs them.

    *statement* is an id; without it, the first of the statements in the most loops.
    *inames* are those on rows, columns and slices, of the text or of the schedule; without them,
    those of the text that *at* leaves open.  Others are summed.
    *at* fixes inames, or leaves some of their values: ``{"k": 0, "i": range(32)}``.
    *colour* is ``"order"``, ``"thread"``, ``"warp"``, ``"block"`` or an iname.
    *tiles* are the inames of which each tile has one value.
    *sizes* and *more* are the kernel's integer parameters, together or by name.

    Raises :class:`~loopkit.InvalidArgumentError` for sizes that are missing or that no call may
    have, and for more points than a picture shows; :class:`~loopkit.UnknownNameError` for names
    that do not exist.
    """
    from loopkit._costs.sizes import sizes_of
    from loopkit._pictures.make_domain import domain_picture

    given = sizes_of(kernel, sizes, more)
    return domain_picture(kernel, statement, inames, at, colour, tiles, given)


def plot_access(
    kernel: Kernel,
    array: str,
    statement: str | None = None,
    /,
    *,
    access: int | str | None = None,
    block: Sequence[int] | int | None = None,
    warp: int | None = 0,
    at: Mapping[str, int | range] | None = None,
    sizes: Sizes | None = None,
    **more: int,
) -> AccessPicture:
    """Which threads touch which elements of *array* in one request, and which sectors.

    *statement* is the one that makes the access; without it, the first that does.
    *access* says which of several is meant: its number, or its text, as ``"u[i + 1, j]"``.
    *block* are the indices of a block on x, y and z, and *warp* is one of its warps, or None for
    all; *at* gives values of inames.  Of what is left open, the first access, block and iterations
    are shown that such threads make.
    *sizes* and *more* are the kernel's integer parameters, together or by name.

    Raises :class:`~loopkit.InvalidArgumentError` where data decide which elements are touched, no
    thread makes the access there, or sizes are missing or impossible;
    :class:`~loopkit.UnknownNameError` for names that do not exist.
    """
    from loopkit._costs.sizes import sizes_of
    from loopkit._pictures.chosen_access import chosen_request
    from loopkit._pictures.requested import access_picture

    which = access, block, warp, at, sizes_of(kernel, sizes, more), "plot_access"
    return access_picture(kernel, chosen_request(kernel, array, statement, *which))


def plot_banks(
    kernel: Kernel,
    array: str,
    statement: str | None = None,
    /,
    *,
    access: int | str | None = None,
    block: Sequence[int] | int | None = None,
    warp: int = 0,
    at: Mapping[str, int | range] | None = None,
    sizes: Sizes | None = None,
    **more: int,
) -> BankPicture:
    """Which lanes of a warp touch which banks of shared memory in one request.

    *statement*, *access*, *block*, *at*, *sizes*, *more* and the errors raised are those of
    :meth:`plot_access`; *array* lies in shared memory, and *warp* is one warp.
    """
    from loopkit._costs.sizes import sizes_of
    from loopkit._pictures.chosen_access import chosen_request
    from loopkit._pictures.requested import bank_picture

    which = access, block, warp, at, sizes_of(kernel, sizes, more), "plot_banks"
    return bank_picture(kernel, chosen_request(kernel, array, statement, *which))


def plot_footprint(
    kernel: Kernel,
    array: str,
    /,
    *,
    block: Sequence[int] | int | None = None,
    at: Mapping[str, int | range] | None = None,
    sizes: Sizes | None = None,
    **more: int,
) -> FootprintPicture:
    """The cells of *array* that a part of a launch touches, how often, and its halo.

    The part is a *block*, by its indices on x, y and z, or what runs where inames have the values
    that *at* gives; without both it is the whole launch.  Its halo are the cells that other parts
    touch, too.
    *sizes* and *more* are the kernel's integer parameters, together or by name.

    Raises :class:`~loopkit.InvalidArgumentError` where data decide which cells are touched, there
    are more than a picture shows, or sizes are missing or impossible;
    :class:`~loopkit.UnknownNameError` for names that do not exist.
    """
    from loopkit._costs.sizes import sizes_of
    from loopkit._pictures.footprint import footprint_picture

    return footprint_picture(kernel, array, block, at, sizes_of(kernel, sizes, more))


def plot_loop(
    kernel: Kernel,
    iname: str,
    /,
    *,
    iterations: int = 4,
    block: Sequence[int] | int | None = None,
    at: Mapping[str, int | range] | None = None,
    sizes: Sizes | None = None,
    **more: int,
) -> LoopPicture:
    """What happens in the first *iterations* of the loop over *iname*, in one block.

    Of several loops over it, the first is shown.
    Rows are statements and shared arrays, columns are what a thread does one after the other:
    statements, inner loops (as one), and barriers.  A bar shows from where to where what is
    written to shared memory is needed.
    *block* are the indices of the block on x, y and z, without it the first one; *at* gives values
    of the loops around.  *sizes* and *more* are the kernel's integer parameters, together or by
    name.

    Raises :class:`~loopkit.InvalidArgumentError` where *iname* is no loop, and for sizes that are
    missing or impossible; :class:`~loopkit.UnknownNameError` for names that do not exist; and
    what lowering raises.
    """
    from loopkit._costs.sizes import sizes_of
    from loopkit._pictures.loop import loop_picture

    return loop_picture(kernel, iname, iterations, block, at, sizes_of(kernel, sizes, more))


def plot_roofline(
    kernel: Kernel,
    /,
    *,
    device: Device | str | None = None,
    measured: float | None = None,
    sizes: Sizes | None = None,
    **more: int,
) -> RooflinePicture:
    """How fast a launch can be at most on a device, and what sets that.

    *device* is a name, such as ``"H100"``, or a ``Device``; without it, the GPU here, else an
    H100.  *measured* is a time in seconds to be shown beside, as ``lk.measure`` finds one.
    *sizes* and *more* are the kernel's integer parameters, together or by name.

    Raises :class:`~loopkit.InvalidArgumentError` where data decide what is touched, and for sizes
    that are missing or impossible; :class:`~loopkit.UnknownNameError` for sizes and devices that
    do not exist.
    """
    from loopkit._costs.counted import costs_of
    from loopkit._costs.sizes import check_sizes, sizes_of

    given = check_sizes(kernel, sizes_of(kernel, sizes, more), "plot_roofline")
    return costs_of(kernel, given, device).plot_roofline(measured=measured)


def picture(refusal: WitnessError | Witness) -> WitnessPicture:
    """The two instances of a witness, the order they have and the one they would get.

    Raises :class:`~loopkit.InvalidArgumentError` where there are no such instances.
    """
    from loopkit._pictures.witness import witness_picture

    if isinstance(refusal, Witness):
        return witness_picture(refusal, str(refusal))
    return witness_picture(refusal.witness, refusal.why)
