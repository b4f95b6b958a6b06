"""User-defined device functions, compiled for the CPU, to compute their values."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from loopkit import _promotion as dt
from loopkit._device_functions import DeviceFunction, definitions_of
from loopkit._host.compiler import Binary, binary, need_compiler
from loopkit.codegen.c.types import C_TYPES, PIECES
from loopkit.codegen.preamble import preamble

SECONDS = 20.0
"""How long all values of a test may take together."""

_UNIT = """\
%(texts)s
#line 1 "declared types"
typedef %(result)s (*lk_type)(%(types)s);
static lk_type const lk_function = &%(name)s;
extern "C" __attribute__((visibility("default")))
void lk_apply(long long i, void **arguments, void *results)
{
    ((%(result)s *)results)[i] = lk_function(%(arguments)s);
}
"""
# Each value is written before the next is asked for: a function may end its process.
_CHILD = """
import ctypes, os, sys
library, count, size, *sizes = sys.argv[1], *map(int, sys.argv[2:])
data = sys.stdin.buffer.read()
parts = []
for each in sizes:
    parts.append(ctypes.create_string_buffer(data[:count * each], count * each))
    data = data[count * each:]
places = (ctypes.c_void_p * len(parts))(*map(ctypes.addressof, parts))
results = ctypes.create_string_buffer(count * size)
apply = ctypes.CDLL(library).lk_apply
for i in range(count):
    apply(ctypes.c_longlong(i), places, results)
    os.write(1, results[i * size:(i + 1) * size])
"""


def c_signature(function: DeviceFunction) -> str:
    """``float f(float, int)``: the function that the text must define."""
    results = dt.components_of(function.result).values()
    types = [C_TYPES[dtype] for dtype in function.types] + [f"{C_TYPES[r]} *" for r in results]
    gives = "void" if results else C_TYPES[function.result]
    return f"{gives} {function.c_name}({', '.join(types)})"


@lru_cache(maxsize=256)
def compiled(function: DeviceFunction) -> Binary:
    """A library that computes a function on the CPU.

    Raises :class:`CompileError` with what the compiler says, and
    :class:`MissingDependencyError` where there is none.
    """
    compiler = need_compiler()
    unit = _unit(function)
    key = compiler.key("function", unit, " ".join(compiler.kernel_flags(False)))
    why = (
        f"the text of '{function.name}' does not compile, or does not define "
        f"'{c_signature(function)}', as which it is declared"
    )
    text = "\n".join(function.texts)
    return binary(key, partial(compiler.build_kernel, unit, sanitize=False, source=text, why=why))


def _unit(function: DeviceFunction) -> str:
    kinds = {*function.types, function.result}
    components = dt.components_of(function.result)
    kinds.update(components.values())
    pieces = sorted({PIECES[kind] for kind in kinds if kind in PIECES})
    texts = [preamble([*pieces, *[C_TYPES[function.result]] * bool(components)])]
    texts += [f'#line 1 "{function.name}.cu"', "\n\n".join(definitions_of([function]))]
    listed = (f"((%s *)arguments[{n}])[i]" % C_TYPES[t] for n, t in enumerate(function.types))
    return _UNIT % {
        "texts": "\n".join(texts),
        "result": C_TYPES[function.result],
        "types": ", ".join(C_TYPES[dtype] for dtype in function.types),
        "name": function.c_name,
        "arguments": ", ".join(listed),
    }


def on_scalars(function: DeviceFunction) -> Callable[..., Any]:
    """The function of the text, of NumPy's scalars."""
    apply = compiled(function).load().lk_apply
    kinds, result = function.types, function.result

    def call(*given: Any) -> Any:
        arrays = [np.array([x], kind) for x, kind in zip(given, kinds, strict=True)]
        found = np.empty(1, result)
        places = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        apply(ctypes.c_longlong(0), places, ctypes.c_void_p(found.ctypes.data))
        names = result.names
        return tuple(found[name][0] for name in names) if names else found[0]

    return call


def in_process_of_its_own(
    function: DeviceFunction, arrays: Sequence[np.ndarray[Any, Any]]
) -> tuple[np.ndarray[Any, Any], str]:
    """Its values for some arguments, and why there are fewer of them than arguments, if so."""
    result, count = function.result, len(arrays[0])
    sizes = [result.itemsize, *(kind.itemsize for kind in function.types)]
    command = [sys.executable, "-I", "-S", "-c", _CHILD, str(compiled(function).file())]
    data = b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)
    why = ""
    try:
        done = subprocess.run(
            [*command, str(count), *map(str, sizes)],
            input=data,
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )
        out = done.stdout
        if done.returncode:
            why = f"ends its process (code {done.returncode})"
    except subprocess.TimeoutExpired as error:
        out, why = error.stdout or b"", f"does not end within {SECONDS:g} s"
    whole = len(out) // result.itemsize * result.itemsize
    return np.frombuffer(out[:whole], result), why
