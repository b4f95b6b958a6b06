"""Proof that distributing ``l.auto`` copies to threads preserves the proven schedule."""

from __future__ import annotations

from loopkit._change import Change, InstanceMap
from loopkit._check.checker import check_change
from loopkit._check.instance_maps import lineage_of
from loopkit._deal_out import dealt
from loopkit._errors import LoopkitError, UndecidedError
from loopkit._kernel import Kernel
from loopkit._tags import LocalAuto
from loopkit.codegen.proof.recorder import Recorder


def dealt_out(kernel: Kernel, recorder: Recorder) -> Kernel:
    """The kernel with its ``l.auto`` copies distributed to threads, checked as one more step."""
    if not any(isinstance(tag, LocalAuto) for _, tag in kernel.tags):
        return kernel
    images = lineage_of(kernel).image_of
    new, forms = dealt(kernel)
    maps = tuple(InstanceMap(i, i, values) for i, values in forms.items() if i in images)
    try:
        check_change(kernel, Change(new, maps, moves=frozenset(forms.keys() - images.keys())))
    except UndecidedError as error:
        recorder.open("order", f"whether the distribution of loops over threads is right: {error}")
    except LoopkitError as error:
        recorder.wrong("order", f"the distribution of loops over threads is wrong: {error}", 1)
    return new
