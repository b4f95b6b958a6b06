"""What is no argument is refused at once, by name, and nothing is written."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from seams import CudaArrayInterfaceKind, Layout, as_dtype, numpy_empty, scalars, stream_handle

import loopkit as lk
from loopkit import InvalidArgumentError, LaunchError, LoopkitError, UnknownNameError

pytestmark = pytest.mark.host
both = pytest.mark.parametrize("name", ["host", "reference"])


def scale(dtype: Any = "float32") -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }", "c[i] = a[i]*s", dtypes={"a, c, s": np.dtype(dtype)}
    )


def given(**changed: Any) -> dict[str, Any]:
    return {"a": np.ones(4, np.float32), "s": 2.0, **changed}


class Broken:
    """It says nothing of itself but errors."""

    __hash__ = None  # type: ignore[assignment]

    def _fail(self, *args: object, **more: object) -> Any:
        raise RuntimeError("broken")

    __index__ = __float__ = __array__ = __eq__ = __dlpack__ = __dlpack_device__ = _fail
    __cuda_stream__ = _fail


class Capsule:
    """It promises DLPack."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **more: object) -> object:
        return "no capsule"


class Interface:
    """It promises the CUDA array interface."""

    def __init__(self, interface: object) -> None:
        self._interface = interface

    @property
    def __cuda_array_interface__(self) -> object:
        return self._interface


NO_ARRAYS: dict[str, tuple[Any, str]] = {
    "number": (1.0, "an object of type float came"),
    "numpy number": (np.float32(1), "an object of type float32 came"),
    "list": ([1.0, 2.0], "an object of type list came"),
    "text": ("ones", "an object of type str came"),
    "bytes": (bytearray(16), "an object of type bytearray came"),
    "type": (np.ndarray, "an object of type type came"),
    "no axes": (np.array(1, np.float32), "should have 1 axis"),
    "two axes": (np.ones((2, 2), np.float32), "should have 1 axis"),
    "float64": (np.ones(4), "dtype should be float32, but is float64"),
    "bfloat16": (np.ones(4, ml_dtypes.bfloat16), "dtype should be float32, but is bfloat16"),
    "complex64": (np.ones(4, np.complex64), "but is complex64"),
    "swapped bytes": (np.ones(4, ">f4"), "but is >f4"),
    "objects": (np.array([1, 2], object), "but is object"),
    "texts": (np.array(["a"]), "but is <U1"),
    "dates": (np.zeros(4, "M8[s]"), r"but is datetime64\[s\]"),
    "records": (np.zeros(4, [("a", "f4")]), r"but is \[\('a', '<f4'\)\]"),
    "masked": (np.ma.masked_array(np.ones(4, np.float32), [0, 1, 0, 0]), "is masked"),
    "broken": (Broken(), "through __dlpack__: RuntimeError: broken"),
    "no capsule": (Capsule(), "through __dlpack__: ValueError: .*invalid PyCapsule"),
    "empty interface": (Interface({}), "through __cuda_array_interface__: KeyError: 'shape'"),
    "no interface": (Interface(None), "through __cuda_array_interface__: TypeError"),
    "wrong interface": (
        Interface({"shape": ("x",), "typestr": "<f4", "data": (1, False)}),
        "through __cuda_array_interface__: TypeError",
    ),
}


@both
@pytest.mark.parametrize(("value", "why"), [*NO_ARRAYS.values()], ids=[*NO_ARRAYS])
def test_no_arrays(name: str, value: Any, why: str) -> None:
    run = scale().executor(name)
    with pytest.raises(InvalidArgumentError, match=rf"\ba\b.*{why}"):
        run(**given(a=value))
    with pytest.raises(InvalidArgumentError, match=rf"\bc\b.*{why}"):
        run(**given(c=value))
    with pytest.raises(InvalidArgumentError, match=rf"\ba\b.*{why}"):
        run.bind(**given(a=value))


def test_a_masked_array_on_a_gpu() -> None:
    interface = {"shape": (1,), "typestr": "<f4", "data": (8, False), "mask": Interface({})}
    with pytest.raises(InvalidArgumentError, match="x is masked"):
        CudaArrayInterfaceKind().describe(Interface(interface), "x")


NO_SIZES: dict[str, tuple[Any, str]] = {
    "float": (4.0, "n: an integer .int32. is needed, but 4.0 came"),
    "numpy float": (np.float32(4), "n: an integer .int32. is needed, but 4.0 came"),
    "nan": (float("nan"), "n: an integer .int32. is needed, but nan came"),
    "bool": (True, "n: an integer .int32. is needed, but an object of type bool came"),
    "numpy bool": (np.bool_(True), "n: an integer .int32. is needed"),
    "text": ("4", "n: an integer .int32. is needed, but an object of type str came"),
    "list": ([4], "n: an integer .int32. is needed"),
    "array": (np.array([4]), "n: an integer .int32. is needed"),
    "complex": (4j, "n: an integer .int32. is needed"),
    "decimal": (decimal.Decimal(4), "n: an integer .int32. is needed"),
    "broken": (Broken(), "n: an integer .int32. is needed, but an object of type Broken came"),
    "large": (2**31, "n = 2147483648 does not fit int32"),
    "larger": (-(2**63), "n = -9223372036854775808 does not fit int32"),
    "not to be printed": (10**5000, "n = an integer of 16610 bits does not fit int32"),
}


@both
@pytest.mark.parametrize(("value", "why"), [*NO_SIZES.values()], ids=[*NO_SIZES])
def test_no_sizes(name: str, value: Any, why: str) -> None:
    knl = scale()
    with pytest.raises(InvalidArgumentError, match=why):
        knl.executor(name)(**given(n=value))
    with pytest.raises(InvalidArgumentError, match=why):
        knl.tag_inames("i: g.0").launch_config(n=value)


@both
@pytest.mark.parametrize("value", [5, 0, -1, -(2**31), np.int64(3)])
def test_sizes_that_contradict_the_arrays(name: str, value: int) -> None:
    run = scale().executor(name)
    with pytest.raises(InvalidArgumentError, match=r"axis 0 should have .* but has 4"):
        run(**given(n=value))
    with pytest.raises(InvalidArgumentError, match="c: axis 0 should have n = 4 elements"):
        run(**given(c=np.ones(5, np.float32)))


@both
@pytest.mark.parametrize("value", [4, np.int8(4), np.uint64(4), np.array(4), None])
def test_sizes_of_every_type_of_integer(name: str, value: Any) -> None:
    assert (scale().executor(name)(**given(n=value)) == 2).all()


@both
@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("1", "s: a number of type float32 is needed, but an object of type str came"),
        (np.array([1.0]), "an object of type ndarray came"),
        (1j, "an object of type complex came"),
        (Broken(), "an object of type Broken came"),
        (1e300, r"s = 1e\+300 does not fit float32"),
        pytest.param(2**2000, r"s = 1148.* does not fit float32", id="large"),
        pytest.param(10**5000, "s = an integer of 16610 bits does not fit float32", id="long"),
        (np.longdouble("1e4000"), "does not fit float32"),
    ],
)
def test_no_numbers(name: str, value: Any, why: str) -> None:
    with pytest.raises(InvalidArgumentError, match=why):
        scale().executor(name)(**given(s=value))


@both
@pytest.mark.parametrize("value", [float("inf"), float("nan"), decimal.Decimal("1.5"), True])
def test_numbers_of_other_types(name: str, value: Any) -> None:
    expected = np.full(4, np.float32(value))
    np.testing.assert_array_equal(scale().executor(name)(**given(s=value)), expected)


@both
def test_arguments_by_position(name: str) -> None:
    run = scale().executor(name)
    assert (run(4, 3.0, np.ones(4, np.float32)) == 3).all()
    assert (run(None, 3.0, np.ones(4, np.float32)) == 3).all()
    with pytest.raises(InvalidArgumentError) as caught:
        run(np.ones(4, np.float32))
    assert str(caught.value) == (
        "in a call of kernel by position: n, s, a, c\n"
        "n: an integer (int32) is needed, but an object of type ndarray came"
    )
    with pytest.raises(InvalidArgumentError, match=r"at most 4 arguments \(n, s, a, c\), but 5"):
        run(1, 2, 3, 4, 5)
    with pytest.raises(InvalidArgumentError, match="n was given twice"):
        run(4, n=4)
    with pytest.raises(UnknownNameError, match="there is no argument 'b'"):
        run(**given(b=1))


@both
def test_bound_calls(name: str) -> None:
    run = scale().executor(name)
    a, c = np.ones(4, np.float32), np.zeros(4, np.float32)
    for call in (run.bind(4, 3.0, a, c), run.bind(a=a, s=3.0, c=c)):
        c[:] = 0
        assert call() is c and (c == 3).all() and call(stream=None) is c
        with pytest.raises(InvalidArgumentError, match="runs on the CPU here, which has no str"):
            call(stream=7)
    for wrong in ({}, {"a": a}, given(a=a, c=a), given(s="x"), given(n=5), given(stream=1)):
        with pytest.raises(LoopkitError):
            run.bind(**wrong)
    with pytest.raises(InvalidArgumentError, match="by position"):
        scale().bind(a)


@both
def test_streams_are_the_gpu_s(name: str) -> None:
    run = scale().executor(name)
    assert (run(**given(stream=None)) == 2).all()
    for stream in (0, "x", Broken()):
        with pytest.raises(InvalidArgumentError, match="runs on the CPU here, which has no str"):
            run(**given(stream=stream))


@pytest.mark.parametrize("stream", [-1, 2**64, True, "x", 1.5, [], Broken(), object()])
def test_no_streams(stream: Any) -> None:
    with pytest.raises(LaunchError, match=r"stream: .* is no CUDA stream"):
        stream_handle(stream)


@both
def test_no_elements(name: str) -> None:
    nothing = np.ones(0, np.float32)
    assert scale().executor(name)(a=nothing, s=1.0).shape == (0,)
    assert scale().executor(name)(a=nothing, c=nothing.copy(), s=1.0).shape == (0,)
    with pytest.raises(InvalidArgumentError, match="c: axis 0"):
        scale().executor(name)(a=nothing, c=np.ones(4, np.float32), s=1.0)


@both
def test_nothing_is_written_before_all_is_checked(name: str) -> None:
    c = np.full(4, 7, np.float32)
    for wrong in (given(s="x"), given(a=np.ones(5, np.float32)), given(n=5), given(x=1)):
        with pytest.raises(LoopkitError):
            scale().executor(name)(**{**wrong, "c": c})
    with pytest.raises(LaunchError, match="shares memory"):
        scale().executor(name)(a=c, s=2.0, c=c)
    assert (c == 7).all()


# {{{ executors and their options


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("host", {"order": "rand"}, "no thread order 'rand'\ndid you mean 'random'"),
        ("host", {"order": []}, r"no thread order '\[\]'"),
        ("host", {"ordr": "random"}, "no option 'ordr'\ndid you mean 'order'"),
        ("host", {"workers": 2}, "for the host executor\nthere is no option 'workers'"),
        ("host", {"seed": "x"}, "seed is an integer, and 'x' is none"),
        ("host", {"seed": 1.5}, "seed is an integer"),
        ("host", {"sanitize": "yes"}, "sanitize is True or False, not 'yes'"),
        ("reference", {"order": "random"}, "does not take order\nit belongs to the host"),
        ("cuda", {"sanitize": True}, "does not take sanitize\nit belongs to the host"),
        ("cuda", {"check_assertions": 1}, "check_assertions is True or False"),
        ("hots", {}, "no executor 'hots'\ndid you mean 'host'"),
        (3, {}, "no executor '3'\nexecutors that exist: cuda, host, reference"),
        (Broken(), {}, "no executor '<"),
    ],
)
@pytest.mark.parametrize("typed", [True, False])
def test_no_executors(name: Any, options: dict[str, Any], why: str, typed: bool) -> None:
    """Said when it is asked for, not when it is called."""
    knl = scale() if typed else lk.make_kernel("{ [i]: 0 <= i < n }", "c[i] = a[i]")
    with pytest.raises((UnknownNameError, InvalidArgumentError), match=why):
        knl.executor(name, **options)


def test_options_without_a_value() -> None:
    run = scale().executor("host", order=None, seed=None, sanitize=None, check_assertions=None)
    assert (run(**given()) == 2).all()
    run = scale().executor("host", order="random", seed=np.int64(-(2**62)))
    assert (run(**given()) == 2).all()


# }}}

# {{{ sizes of launches


def test_launches_of_every_size() -> None:
    knl = scale().split_iname("i", 128, outer_tag="g.0", inner_tag="l.0")
    assert knl.launch_config(n=1000).grid == (8, 1, 1)
    assert knl.launch_config(n=np.int64(0)).grid == (0, 1, 1)
    assert knl.launch_config(n=-5).grid == (0, 1, 1)
    with pytest.raises(UnknownNameError, match="no size 'm'"):
        knl.launch_config(m=3)
    assumed = lk.assume(knl, "n mod 4 = 0")
    with pytest.raises(lk.AssumptionError, match="but n = 6"):
        assumed.launch_config(n=6)


def test_more_blocks_than_there_can_be() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }", "c[i, j] = 1", dtypes={"c": "int8"}
    ).tag_inames("i: g.1, j: g.0")
    with pytest.raises(lk.ResourceError, match="needs 70000 blocks along axis 1"):
        knl.launch_config(n=70000)


def test_loop_variables_beyond_32_bits() -> None:
    """They are numbers without a type, and those of the array that they are written to."""
    knl = lk.make_kernel(
        "{ [i]: n - 1 <= i < n + 3 }",
        "c[i - n + 1] = i",
        [lk.GlobalArg("c", shape=(4,), dtype="float64"), "..."],
    )
    c = np.zeros(4)
    first = -(2**31)
    for name in ("reference", "host"):
        assert (knl.executor(name)(n=5, c=c) == [4, 5, 6, 7]).all()
        assert (knl.executor(name)(n=first, c=c) == np.arange(first - 1, first + 3)).all()


def test_outputs_that_no_memory_holds() -> None:
    for shape in ((2**62,), (2**31, 2**31, 4)):
        with pytest.raises(lk.ResourceError, match="there is no memory for an array of"):
            numpy_empty(Layout(shape, (1,) * len(shape)), np.dtype(np.int8))


# }}}

# {{{ types


@both
@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.complex64, np.complex128], ids=str
)
@pytest.mark.parametrize("text", ["c[i] = a[i]", "c[i] = a[i]*s", "<> t = a[i]\nc[i] = -t"])
def test_half_and_complex_numbers(name: str, dtype: Any, text: str) -> None:
    dtypes = {name: np.dtype(dtype) for name in ("a", "c", "s") if name != "s" or "s" in text}
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes=dtypes)
    a, s = np.arange(5).astype(dtype), {"s": dtype(3)} if "s" in text else {}
    expected = 3 * a if s else -a if "t" in text else a
    for c in (None, np.zeros(5, dtype), np.zeros(10, dtype)[::2]):
        got = knl.executor(name)(a=a[::-1], c=c, **s)
        assert got.dtype == dtype and (got == expected[::-1]).all()
    with pytest.raises(InvalidArgumentError, match=f"a: dtype should be {np.dtype(dtype).name}"):
        knl.executor(name)(a=np.ones(5), **s)
    untyped = lk.make_kernel("{ [i]: 0 <= i < n }", "c[i] = a[i]").executor(name)
    assert (untyped(a=a) == a).all() and untyped(a=a).dtype == dtype


@both
@pytest.mark.parametrize("value", [[1.0], 3, "x", np.ma.masked_array([1.0], [0])])
def test_no_arrays_for_kernels_without_types(name: str, value: Any) -> None:
    run = lk.make_kernel("{ [i]: 0 <= i < n }", "c[i] = a[i]").executor(name)
    with pytest.raises(InvalidArgumentError, match=r"a: an array is needed|a is masked"):
        run(a=value)
    for call in (lambda: run(np.ones(3)), lambda: run.bind(np.ones(3))):
        refused(call)


def refused(call: Callable[[], Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="pass arguments by name"):
        call()


# }}}


def test_a_text_is_no_complex_number() -> None:
    assert scalars.check_scalar("z", 1 + 2j, np.dtype("complex64")) == 1 + 2j
    with pytest.raises(InvalidArgumentError, match="an object of type str came"):
        scalars.check_scalar("z", "1+2j", np.dtype("complex64"))


@pytest.mark.parametrize(
    ("array", "value", "result"),
    [
        ("float32", 2.5, "float32"),
        ("float32", 2, "float32"),
        ("float32", np.float64(2.5), "float64"),
        ("float16", 2.5, "float16"),
        ("bfloat16", 2.5, "bfloat16"),
        ("float32", 1j, "complex64"),
        ("int32", 3, "int32"),
        ("int32", 2.5, "float64"),
    ],
)
def test_numbers_say_what_scalars_of_no_type_are(array: str, value: Any, result: str) -> None:
    """Python's are weak among the arrays of a call, as in NumPy 2; others have their own type."""
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = a*x[i]")
    x = np.arange(4).astype(as_dtype(array))
    for name in ("reference", "host"):
        y = knl.executor(name)(a=value, x=x)
        assert y.dtype == as_dtype(result)
        assert np.array_equal(y, (x.astype(y.dtype) * value).astype(y.dtype))
    typed = lk.add_dtypes(knl, {"x": array})
    assert typed.executor("host")(a=value, x=x).dtype == as_dtype(result)


def test_what_is_no_number_says_no_type() -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = a*x[i]")
    x = np.ones(3, np.float32)
    with pytest.raises(lk.InvalidArgumentError, match="a: a number is needed, but"):
        knl(a="2", x=x)
    with pytest.raises(lk.InvalidArgumentError, match="fits no type of integers"):
        knl(a=2**70, x=x)
    with pytest.raises(lk.InvalidArgumentError, match="by name while some have no type"):
        knl(2.0, 3, x)
    typed = lk.add_dtypes(knl, {"x, y": np.float32})
    lk.auto_test_vs_ref(typed, typed.split_iname("i", 4), parameters={"n": 9, "a": 2.5})
