"""Arguments of a call: what is inferred, what is refused, and in which words."""

from __future__ import annotations

import ctypes
import dataclasses
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pymbolic.primitives as p
import pytest
from _run_programs import AXPY_SOURCE, MATMUL, SUMDIFF, array, axpy, l, m, n, size
from seams import (
    HOST,
    NUMPY,
    ArgumentPlan,
    ArrayInfo,
    Check,
    DLPackKind,
    Location,
    Program,
    ValueParam,
    contiguous_strides,
    kind_of,
    pack_scalar,
    struct_code,
)

from loopkit import (
    AssumptionError,
    InvalidArgumentError,
    LaunchError,
    LoopkitError,
    UnknownNameError,
)

PLAN = ArgumentPlan(MATMUL)


def f32(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, np.float32)


def program(*params: Any, checks: tuple[Check, ...] = (), **more: Any) -> ArgumentPlan:
    ordered = sorted(params, key=lambda q: isinstance(q, ValueParam))
    arguments = tuple(q.name for q in ordered if q.role == "argument")
    more.setdefault("grid", (1, 1, 1))
    made = Program("k", "", params, block=(1, 1, 1), checks=checks, arguments=arguments, **more)
    return ArgumentPlan(made)


def test_signature() -> None:
    assert PLAN.signature() == "matmul(n, m, l; a[n, l], b[l, m]) -> c[n, m]"


def test_sizes_come_from_shapes() -> None:
    resolved = PLAN.resolve((), {"a": f32(5, 7), "b": f32(7, 33)})
    assert resolved.values == {"n": 5, "l": 7, "m": 33}
    assert resolved.grid == (3, 1, 1)
    assert "c" not in resolved.arrays
    assert resolved.layouts["c"].shape == (5, 33)
    assert resolved.location == HOST


def test_by_position_and_none() -> None:
    resolved = PLAN.resolve((f32(5, 7), f32(7, 33), None), {"n": np.int64(5)})
    assert resolved.values["n"] == 5 and type(resolved.values["n"]) is int


def test_numpy_result() -> None:
    resolved = PLAN.resolve((), {"a": f32(5, 7), "b": f32(7, 33)})
    resolved.numpy_arrays()["c"][...] = 3
    assert resolved.result().shape == (5, 33) and (resolved.result() == 3).all()
    mine = f32(5, 33)
    resolved = PLAN.resolve((), {"a": f32(5, 7), "b": f32(7, 33), "c": mine})
    resolved.numpy_arrays()
    assert resolved.result() is mine


def test_several_outputs_are_a_named_tuple() -> None:
    resolved = ArgumentPlan(SUMDIFF).resolve((), {"a": f32(5), "b": f32(5)})
    arrays = resolved.numpy_arrays()
    assert set(arrays) == {"a", "b", "s", "d", "t"}
    result = resolved.result()
    assert result._fields == ("s", "d") and result.s is arrays["s"]


@pytest.mark.parametrize(
    ("shape", "extents", "expected"),
    [
        ((n + 2,), (9,), {"n": 7}),
        ((16 * n,), (48,), {"n": 3}),
        ((n * m, m), (12, 4), {"n": 3, "m": 4}),
        ((n + m, n - m), (9, 5), {"n": 7, "m": 2}),
        ((2 * n - 1,), (9,), {"n": 5}),
    ],
)
def test_linear_shapes_are_solved(shape: Any, extents: Any, expected: dict[str, int]) -> None:
    plan = program(*(size(x) for x in expected), array("a", *shape))
    assert plan.resolve((f32(*extents),), {}).values == expected


def test_size_from_a_stride() -> None:
    plan = program(size("n"), size("m"), array("a", n, 4, strides=(m, 1)))
    view = f32(3, 10)[:, :4]
    resolved = plan.resolve((view,), {})
    assert resolved.values == {"n": 3, "m": 10}
    assert resolved.strided == frozenset()


def test_padded_output() -> None:
    plan = program(size("n"), array("a", n), array("c", n, 3, use="w", strides=(5, 1)))
    resolved = plan.resolve((f32(4),), {})
    made = resolved.numpy_arrays()["c"]
    assert made.shape == (4, 3) and made.strides == (20, 4)


def test_zero_sizes() -> None:
    plan = program(size("n"), array("a", n), array("c", n, use="w"), grid=(n, 1, 1))
    resolved = plan.resolve((f32(0),), {})
    assert resolved.grid == (0, 1, 1)
    resolved.numpy_arrays()
    assert resolved.result().shape == (0,)


def test_negative_extents_are_no_elements() -> None:
    """``n - 2`` for ``n = 1``: the loop that would reach for an element is empty."""
    plan = program(size("n"), array("a", n - 2), array("c", 3, 2 * n - 5, n, use="w"))
    resolved = plan.resolve((f32(0),), {"n": 1})
    assert resolved.layouts["c"].shape == (3, 0, 1)
    assert all(stride >= 0 for stride in resolved.layouts["c"].strides)
    resolved.numpy_arrays()
    assert resolved.result().shape == (3, 0, 1)
    passed = plan.resolve((f32(0), f32(3, 0, 1)), {"n": 1})
    assert passed.strided == frozenset()
    text = refused(plan, InvalidArgumentError, f32(3), n=1)
    assert text == "a: axis 0 should have no elements, as n - 2 = -1 (n = 1 as passed), but has 3"


def test_a_size_that_is_an_extent_is_not_negative() -> None:
    plan = program(size("n"), array("a", n - 2), array("c", n, use="w"))
    text = refused(plan, InvalidArgumentError, f32(0), n=-1)
    assert text == "c: axis 0 would have n = -1 elements (as passed)"


def test_empty_axes_tell_sizes_last() -> None:
    # a says only that n <= 2, b says what it is.
    plan = program(size("n"), array("a", n - 2), array("b", 2 * n + 1))
    assert plan.resolve((f32(0), f32(3)), {}).values == {"n": 1}
    assert plan.resolve((f32(1), f32(7)), {}).values == {"n": 3}
    # Nothing else is known, and n = 2 fits.
    plan = program(size("n"), array("a", n - 2), array("c", n, use="w"))
    assert plan.resolve((f32(0),), {}).values == {"n": 2}
    # No n gives 2*n - 1 = 0: the caller has to say it.
    plan = program(size("n"), array("a", 2 * n - 1))
    assert "the value of n is not known" in refused(plan, InvalidArgumentError, f32(0))


def test_strided_arrays_are_reported() -> None:
    plan = ArgumentPlan(axpy())
    x, y = f32(10)[::2], f32(5)
    resolved = plan.resolve((), {"x": x, "y": y, "alpha": 2})
    assert resolved.strided == {"x"}
    variant = axpy(resolved.strided)
    values = {q.name: resolved.value(q) for q in variant.params if isinstance(q, ValueParam)}
    assert values == {"n": 5, "alpha": 2.0, "x_s0": 2}
    reverse = plan.resolve((), {"x": f32(5)[::-1], "y": y, "alpha": 2})
    assert reverse.arrays["x"].strides == (-1,)
    # The stride of a single element does not matter.
    assert not plan.resolve((), {"x": f32(4)[::4], "y": f32(1), "alpha": 2}).strided


def refused(plan: ArgumentPlan, kind: type[LoopkitError], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(kind) as caught:
        plan.resolve(args, kwargs)
    return str(caught.value)


def test_unknown_missing_and_extra() -> None:
    a, b = f32(5, 7), f32(7, 3)
    called = "in a call of matmul(n, m, l; a[n, l], b[l, m]) -> c[n, m]"
    assert refused(PLAN, UnknownNameError, a, b, nn=3) == (
        f"{called}\nthere is no argument 'nn'\ndid you mean 'n'?"
    )
    assert refused(PLAN, InvalidArgumentError, a) == (
        f"{called}\nb[l, m] of float32 is missing: matmul reads it\npass b=..."
    )
    assert refused(PLAN, InvalidArgumentError) == (
        f"{called}\na[n, l] of float32, b[l, m] of float32 are missing: matmul reads them\n"
        "pass a=..., b=..."
    )
    assert refused(PLAN, InvalidArgumentError, a, b, a=a) == (
        "a was given twice, by position and by name, in a call of matmul"
    )
    assert refused(PLAN, InvalidArgumentError, *range(7)) == (
        "matmul takes at most 6 arguments (a, b, c, n, m, l), but 7 were given by position"
    )


def test_kind_dtype_and_axes() -> None:
    a, b = f32(5, 7), f32(7, 3)
    assert refused(PLAN, InvalidArgumentError, a, [1.0]) == (
        "b: an array of float32 is needed, but an object of type list came\n"
        "for example, numpy.asarray(b, dtype='float32')"
    )
    assert refused(PLAN, InvalidArgumentError, a, b.astype("f8")) == (
        "b: dtype should be float32, but is float64\n"
        "convert it, or make the kernel for b of another type"
    )
    assert refused(PLAN, InvalidArgumentError, a, b.astype(">f4")) == (
        "b: dtype should be float32, but is >f4\nconvert it to this machine's byte order"
    )
    assert refused(PLAN, InvalidArgumentError, a, b[0]) == (
        "b: should have 2 axes, as b[l, m] has, but its shape is (3,)"
    )


def test_shapes() -> None:
    assert refused(PLAN, InvalidArgumentError, f32(5, 8), f32(7, 3)) == (
        "b: axis 0 should have l = 8 elements (from a's axis 1), but has 7"
    )
    assert refused(PLAN, InvalidArgumentError, f32(5, 7), f32(7, 3), n=6) == (
        "a: axis 0 should have n = 6 elements (as passed), but has 5"
    )
    plan = program(size("n"), array("b", n), array("a", n + 2), array("d", 3))
    assert refused(plan, InvalidArgumentError, f32(7), f32(8), f32(3)) == (
        "a: axis 0 should have n + 2 = 9 elements (n = 7 from b's axis 0), but has 8"
    )
    assert refused(plan, InvalidArgumentError, f32(7), f32(9), f32(4)) == (
        "d: axis 0 should have 3 elements, but has 4"
    )
    plan = program(size("n"), size("m"), array("a", m, 16 * n + m))
    assert refused(plan, InvalidArgumentError, f32(2, 30)) == (
        "a: axis 1 should have 16*n + m elements with m = 2 (from a's axis 0), but has 30, "
        "which no integer n gives"
    )


def test_sizes_that_nothing_determines() -> None:
    plan = program(size("n"), array("c", n, use="w"))
    assert refused(plan, InvalidArgumentError) == (
        "in a call of k(n) -> c[n]\n"
        "the value of n is not known: what was passed does not determine it (c[n])\npass n=..."
    )
    assert plan.resolve((), {"n": 3}).layouts["c"].shape == (3,)
    plan = program(size("n"), ValueParam("alpha", np.dtype("f8")))
    assert "no array has it in its shape" in refused(plan, InvalidArgumentError, alpha=1.0)
    assert "alpha (float64) is missing" in refused(plan, InvalidArgumentError, n=1)
    plan = program(ValueParam("alpha", np.dtype("f8"), default=2.5))
    assert plan.resolve((), {}).values == {"alpha": 2.5}


def test_assumptions() -> None:
    assert refused(PLAN, AssumptionError, f32(5, 0), f32(0, 3)) == (
        "matmul was made under the assumption l >= 1, but l = 0 (from a's axis 1)"
    )
    check = Check(p.LogicalAnd((p.Comparison(n, ">=", m), p.Comparison(m, ">", 0))), "n >= m > 0")
    plan = program(size("n"), size("m"), array("a", n), checks=(check,))
    assert refused(plan, AssumptionError, a=f32(5), m=7) == (
        "k was made under the assumption n >= m > 0, "
        "but m = 7 (as passed) and n = 5 (from a's axis 0)"
    )


def test_scalars() -> None:
    plan = ArgumentPlan(axpy())
    given = {"x": f32(5), "y": f32(5)}
    assert refused(plan, InvalidArgumentError, **given, alpha="2") == (
        "alpha: a number of type float32 is needed, but an object of type str came"
    )
    assert refused(plan, InvalidArgumentError, **given, alpha=1j) == (
        "alpha: a number of type float32 is needed, but an object of type complex came"
    )
    assert refused(plan, InvalidArgumentError, **given, alpha=1e39) == (
        "alpha = 1e+39 does not fit float32"
    )
    assert plan.resolve((), {**given, "alpha": np.float64("inf")}).values["alpha"] == np.inf
    assert refused(plan, InvalidArgumentError, **given, alpha=1, n=5.0) == (
        "n: an integer (int32) is needed, but 5.0 came"
    )
    assert refused(plan, InvalidArgumentError, **given, alpha=1, n=2**31) == (
        "n = 2147483648 does not fit int32 (-2147483648 to 2147483647), "
        "the type that the code has for it"
    )


def test_sizes_that_do_not_fit_their_type() -> None:
    plan = program(size("n", "int8"), array("a", n))
    assert refused(plan, InvalidArgumentError, f32(200)) == (
        "n = 200 (from a's axis 0) does not fit int8 (-128 to 127), "
        "the type that the code has for it"
    )


def test_unused_arguments_may_be_passed() -> None:
    plan = ArgumentPlan(dataclasses.replace(axpy(), arguments=("x", "y", "alpha", "n", "unused")))
    resolved = plan.resolve((), {"x": f32(5), "y": f32(5), "alpha": 1, "unused": 4})
    assert resolved.values["unused"] == 4


def test_written_arrays() -> None:
    a, b, c = f32(5, 7), f32(7, 3), f32(5, 3)
    c.flags.writeable = False
    assert refused(PLAN, InvalidArgumentError, a, b, c) == "c is read-only, but matmul writes it"
    spread = np.lib.stride_tricks.as_strided(f32(3), (5, 3), (0, 4))
    assert refused(PLAN, InvalidArgumentError, a, b, spread) == (
        "c: c[0, 0] and c[1, 0] are the same place in memory, but matmul writes them: its shape is "
        "(5, 3), its strides are (0, 1) elements\npass a copy of it"
    )
    plan = ArgumentPlan(axpy())
    assert "y[n] of float32 is missing" in refused(plan, InvalidArgumentError, f32(3), alpha=1)


def test_overlap() -> None:
    square = f32(4, 4)
    assert refused(PLAN, LaunchError, square, f32(4, 4), square) == (
        "c shares memory with a, but matmul writes c, and its code relies on them not overlapping\n"
        "pass a copy of a, or another array for c"
    )
    both = f32(8, 4)
    assert "c shares memory with b" in refused(PLAN, LaunchError, f32(4, 4), both[1:5], both[4:])
    PLAN.resolve((f32(4, 4), both[:4], both[4:]), {})
    wide = f32(4, 8)  # interleaved rows that never meet
    resolved = PLAN.resolve((f32(4, 4), wide[:, :4], wide[:, 4:]), {})
    assert resolved.strided == {"b", "c"}
    PLAN.resolve((square, square), {})  # two that are only read


def test_bytes_between_elements() -> None:
    records = np.zeros(5, np.dtype([("x", "f4"), ("tag", "i2")]))
    message = refused(ArgumentPlan(axpy()), InvalidArgumentError, records["x"], f32(5), 1)
    assert message == (
        "x: axis 0 has a stride of 6 bytes, which is not a multiple of its elements' 4 bytes\n"
        "pass a copy of it"
    )


class Elsewhere:
    """An array on some GPU, as far as the plan can see."""

    def __init__(self, pointer: int, device: int, *shape: int) -> None:
        self.pointer, self.device, self.shape = pointer, device, shape


class ElsewhereKind(type(NUMPY).__mro__[1]):  # type: ignore[misc]
    name = "Elsewhere"

    def describe(self, x: Any, name: str = "the array") -> ArrayInfo:
        strides = contiguous_strides(x.shape)
        where = Location("cuda", x.device)
        return ArrayInfo(self, x, x.pointer, x.shape, strides, np.dtype("f4"), where)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    from seams import kinds

    monkeypatch.setitem(kinds._kinds, Elsewhere, ElsewhereKind())


@pytest.mark.usefixtures("elsewhere")
def test_devices() -> None:
    a, b = Elsewhere(0x1000, 0, 4, 4), Elsewhere(0x2000, 1, 4, 4)
    assert refused(PLAN, InvalidArgumentError, a, b) == (
        "b is on cuda:1, but a is on cuda:0\ncopy one of them to where the other is"
    )
    assert refused(PLAN, InvalidArgumentError, a, f32(4, 4)) == (
        "b is in host memory (an array of NumPy), but a is on cuda:0\n"
        "copy one of them to where the other is"
    )
    resolved = PLAN.resolve((a, a), {})
    assert resolved.location == Location("cuda", 0)
    with pytest.raises(InvalidArgumentError) as caught:
        resolved.numpy_arrays()
    assert str(caught.value) == (
        "a is on cuda:0, but this executor takes arrays in host memory\n"
        "copy it to the host, or run the kernel with the cuda executor"
    )


def test_dlpack_objects_on_the_host() -> None:
    class Other:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __dlpack__(self, **options: Any) -> Any:
            return self.inner.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.inner.__dlpack_device__()

    inner = np.arange(12, dtype="f4").reshape(3, 4)[:, 1:]
    other = Other(inner)
    kind = kind_of(other)
    assert kind is not None
    info = kind.describe(other)
    assert (info.shape, info.strides, info.dtype) == ((3, 3), (4, 1), np.dtype("f4"))
    assert info.pointer == inner.ctypes.data and info.location == HOST
    assert np.shares_memory(kind.as_numpy(other), inner)
    inner.flags.writeable = False
    assert kind.describe(other).readonly


class Capsule(ctypes.Structure):
    """A ``DLManagedTensor`` of 3 x 4 elements on a GPU, which nobody needs to have."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )

    def __init__(self, device: int, code: int, bits: int, *strides: int) -> None:
        super().__init__(4096, (device, 1), 2, code, bits, 1, (ctypes.c_int64 * 2)(3, 4))
        self.byte_offset = 64
        if strides:
            self.strides = (ctypes.c_int64 * 2)(*strides)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device[0], self.device[1]

    def __dlpack__(self, *, stream: int) -> Any:
        assert stream == 1
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
        return make(ctypes.addressof(self), b"dltensor", None)


@pytest.mark.skipif(sys.platform == "darwin", reason="there is no CUDA for macOS")
@pytest.mark.parametrize(
    ("device", "code", "bits", "strides", "dtype"),
    [
        (2, 2, 32, (), "float32"),
        (2, 0, 64, (1, 3), "int64"),
        (13, 4, 16, (-4, 1), ml_dtypes.bfloat16),
        (2, 5, 128, (8, 2), "complex128"),
        (2, 6, 8, (), "bool"),
    ],
)
def test_dlpack_objects_on_a_gpu(
    device: int, code: int, bits: int, strides: Any, dtype: Any
) -> None:
    other = Capsule(device, code, bits, *strides)
    info = DLPackKind().describe(other, "x")
    assert (info.pointer, info.shape, info.strides) == (4096 + 64, (3, 4), strides or (4, 1))
    assert (info.dtype, info.location, info.stream) == (np.dtype(dtype), Location("cuda", 1), 1)
    assert info.object is other and not info.readonly


def test_dlpack_objects_that_no_kernel_reads() -> None:
    with pytest.raises(InvalidArgumentError, match="x is neither on the host nor on a CUDA device"):
        DLPackKind().describe(Capsule(4, 2, 32), "x")
    if sys.platform != "darwin":
        with pytest.raises(InvalidArgumentError, match=r"x: .* cannot be read as an array"):
            DLPackKind().describe(Capsule(2, 3, 64), "x")


@pytest.mark.parametrize(
    ("name", "value", "size_"),
    [
        ("int8", -3, 1),
        ("uint64", 2**64 - 1, 8),
        ("float16", 1.5, 2),
        (ml_dtypes.bfloat16, 1.5, 2),
        ("float64", 0.1, 8),
        ("complex64", 1 + 2j, 8),
        ("complex128", 1 + 2j, 16),
        ("bool", True, 1),
    ],
)
def test_packing(name: Any, value: Any, size_: int) -> None:
    import struct

    dtype = np.dtype(name)
    packed = pack_scalar(value, dtype)
    assert len(packed) == size_ == struct.calcsize("<" + struct_code(dtype))
    assert np.frombuffer(packed, dtype)[0] == value


def test_layout_of_arguments() -> None:
    from seams import packing

    made = Program(
        "k",
        AXPY_SOURCE,
        (
            ValueParam("flag", np.dtype("i1")),
            array("a", 4),
            size("n"),
            ValueParam("z", np.dtype("c16")),
            ValueParam("h", np.dtype(ml_dtypes.bfloat16)),
        ),
        (1, 1, 1),
        (1, 1, 1),
    )
    layout = packing(made)
    assert layout.offsets == (0, 8, 16, 32, 48)
    assert layout.format == "b7xQi12x16s2s" and layout.size == 50


def test_unused_names_l_and_m_are_free() -> None:
    assert ArgumentPlan(axpy()).free_scalars == {"alpha"}
    assert not PLAN.free_scalars
    assert {str(l), str(m)} == {"l", "m"}
