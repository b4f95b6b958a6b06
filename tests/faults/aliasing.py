"""Faults in arrays that share storage, and in whose storage is whose."""

from __future__ import annotations

import dataclasses
from typing import Any

from refusals.case import do

from faults.kernels import stages
from faults.planting import Patch, fault
from loopkit import AddressSpace

SHARED = do("set_temporary_address_space", "t, r, s", "shared")
THREADS = do("tag_inames", "b: g.0, i: l.0, j: l.0, p: l.0, q: l.0")
TWO = do("alias_temporaries", "t, s")
SIZES = {"n": 3}


def _with_all(original: Any) -> Any:
    """Every array in shared memory goes to the storage."""

    def changed(kernel: Any, found: Any) -> Any:
        base = next(iter(found.values())).base_storage
        shared = (t for t in kernel.temporaries if t.address_space is AddressSpace.LOCAL)
        return original(kernel, {t.name: dataclasses.replace(t, base_storage=base) for t in shared})

    return changed


def _next_too(original: Any) -> Any:
    """The first array is laid over the one behind it, and not over its own."""

    def found(kernel: Any) -> Any:
        names = tuple(t.name for t in kernel.temporaries if t.name in "tr")
        return dict.fromkeys(names, names)

    return found


def _placed(change: Any) -> Any:
    """The declarations of shared memory come out changed."""

    def make(original: Any) -> Any:
        def lay_out(*arguments: Any) -> Any:
            found = original(*arguments)
            return dataclasses.replace(found, **change(found))

        return lay_out

    return make


def _moved(storage: Any) -> dict[str, Any]:
    last = max(storage.declared.values(), key=lambda d: d.offset or 0)
    before = storage.declared | {
        last.temporary.name: dataclasses.replace(last, offset=(last.offset or 0) - 128)
    }
    return {"declared": before}


fault(
    "alias_temporaries: an array whose values are needed shares the storage, too",
    stages,
    TWO,
    Patch("transforms.temporaries:with_arrays", _with_all),
    chain=(SHARED, THREADS),
    sizes=SIZES,
    by_running=True,
)
fault(
    "alias_temporaries: all arrays on one thread share the storage",
    stages,
    TWO,
    Patch("transforms.temporaries:with_arrays", _with_all),
    chain=(SHARED,),
    sizes=SIZES,
    by_running=True,
)
fault(
    "storage: arrays of one storage are taken for apart by barriers",
    stages,
    None,
    Patch("codegen.conflicts:Conflicts.storage_of", lambda f: lambda self, access: access.array),
    chain=(SHARED, THREADS, TWO),
    sizes=SIZES,
)
fault(
    "storage: arrays that need their values are laid over each other",
    stages,
    None,
    Patch("codegen.storage:shared_storage", _next_too),
    chain=(SHARED, THREADS, TWO),
    sizes=SIZES,
)
fault(
    "storage: an array begins in another one",
    stages,
    None,
    Patch("codegen.lower:lay_out", _placed(_moved)),
    chain=(SHARED, THREADS, TWO),
    sizes=SIZES,
)
fault(
    "storage: a launch asks for less than the arrays reach",
    stages,
    None,
    Patch("codegen.lower:lay_out", _placed(lambda s: {"dynamic_shared": s.dynamic_shared // 2})),
    chain=(SHARED, THREADS, TWO),
    sizes=SIZES,
    sanitize=True,
)
