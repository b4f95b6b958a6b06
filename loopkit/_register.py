"""Declaration of user-defined device functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loopkit import _arguments as kind
from loopkit import _promotion as dt
from loopkit._called import fitting
from loopkit._device_functions import DeviceFunction
from loopkit._errors import InvalidArgumentError, counted
from loopkit._expression import accesses, variable_names
from loopkit._function_tests import check_meaning, check_operation
from loopkit._functions import FUNCTIONS
from loopkit._make.operation import ReductionOperation
from loopkit._make.reduction_operations import check_free_name, own_operation
from loopkit._nodes import Expression, Record
from loopkit._preamble_text import definition
from loopkit._promotion import DType, dtype_name
from loopkit._spelling import (
    CUDA,
    KEYWORDS,
    check_component,
    check_identifier,
    check_name,
    shown,
)
from loopkit._syntax.expression_parser import parse_expression
from loopkit._types import concrete, dtype_of
from loopkit.codegen.c.types import C_TYPES


@fitting
def register_callable(
    name: str,
    arguments: Mapping[str, Any],
    result: Any,
    text: str = "",
    *,
    body: str = "",
    preamble: str = "",
    c_name: str | None = None,
    meaning: Callable[..., Any] | str | None = None,
    within: Mapping[str, tuple[float, float]] | None = None,
    tolerance: float | None = None,
    pure: bool = True,
) -> DeviceFunction:
    """Declare a function in CUDA C for ``make_kernel(..., functions=[...])``.

    Nothing is registered anywhere: the function travels with the kernels made with it, and what
    it needs stands once in their sources.  Functions of one name are overloads: a call takes the
    one that is declared for the types of its arguments, or the first that holds them.

    .. code-block:: python

        shade = lk.register_callable(
            "shade", {"x": "float32", "k": "int32"}, "float32",
            "__device__ float shade(float x, int k) { return k > 0 ? x / k : 0.0f; }",
            meaning=lambda x, k: x / np.float32(k) if k > 0 else 0.0)

    :arg name: what the text of kernels calls it.
    :arg arguments: the types of its arguments by name, ``{"x, y": "float32"}``, all passed by
        value.
    :arg result: the type of its result, or those of several by name, ``{"s, c": "float32"}``: it is
        called as ``a, b = f(x)``.
    :arg text: C++ that defines it. Complex numbers are ``lk_complex64`` and ``lk_complex128``
        there: two parts, ``re`` and ``im``, which ``+ - * / == !=`` know.
        Several results are written to pointers behind the arguments.
    :arg body: or what stands between its braces, ``"return x*x;"``: then its head is written here.
        Several results are variables of these names, ``"s = sinf(x); c = cosf(x);"``.
    :arg preamble: more definitions, above it; two functions may share them.
    :arg c_name: what C calls it, where that is not ``name``.
    :arg meaning: what it computes: a function of NumPy's scalars, or an expression of the
        arguments as the language has it, of several results a tuple. The reference
        executor computes that. Left out, it compiles the text for the CPU.
    :arg within: what values arguments take, ``{"k": (0, 15)}``, both ends included, of complex
        numbers each part: those of the test. What is not there is any value of its type: largest
        and smallest ones, infinities and NaN are tested, too.
    :arg tolerance: how far a result may be from the meaning's, of its size or of 1.
    :arg pure: True: equal arguments give equal values, and nothing else comes of a call.
    :returns: the function. It has been compiled for the CPU, and its meaning tested with
        arguments drawn at random, unless there is no C++ compiler: then a warning says so.
    :raises InvalidArgumentError: for names that are taken, texts that cannot stand above a
        kernel, and where the text computes something else than the meaning: with the arguments.
    :raises CompileError: with what the compiler says, where the text is no C++, or defines no such
        function.
    """
    check_free_name(name)
    if not kind.flag("pure", pure):
        raise InvalidArgumentError(
            f"'{name}' is declared as not pure, and a schedule may call it in any order, more "
            "than once for one value, or on several threads",
            instead="what a function keeps from one call to the next can be an array of the kernel",
        )
    types = _types("argument", arguments)
    if not types:
        raise InvalidArgumentError("a function has an argument", instead="a size can be a constant")
    gives = _result(name, types, result)
    called = _c_name(name if c_name is None else c_name)
    function = DeviceFunction(
        name,
        tuple(types.items()),
        gives,
        called,
        _texts(name, called, types, gives, text, body, preamble),
        _meaning(name, meaning, types, gives),
    )
    if tolerance is not None and (
        isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or tolerance < 0
    ):
        raise InvalidArgumentError(f"tolerance is a number, not {shown(tolerance)}")
    check_meaning(function, _ranges(types, within), tolerance)
    return function


@fitting
def register_reduction(
    name: str,
    neutral: Any,
    combine: Callable[[Any, Any], Any],
    reference: Callable[[Any, Any], Any] | None = None,
    *,
    components: Sequence[str] | None = None,
    ordered: bool = False,
    within: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None,
) -> ReductionOperation:
    """Define a reduction operation for ``make_kernel(..., reductions=[...])``.

    Nothing is registered anywhere: the operation travels with the kernels made with it.
    One with several results, used as ``a, b = name(k, x, y)``, has a tuple of neutral elements;
    its functions take two tuples and give one.  ``docs/language.md`` shows Welford's mean and
    variance.

    :arg name: what the text calls it, ``name(k, ...)``.
    :arg neutral: a number, or a function that gives one for a type; a tuple of these.
    :arg combine: of two expressions makes the one that combines them. It must be associative, and
        commutative unless ``ordered``; this is tested with numbers drawn at random.
    :arg reference: the same of two values, for the reference executor. Where it is left out, that
        computes the expressions of ``combine``.
    :arg components: what the results are called in the nest and the source.
    :arg ordered: True: terms are combined in the order of the loops, the earlier one on the left.
        A schedule may split these loops, and threads may scan them, but nothing changes their
        order.
    :arg within: from where to where the numbers of the test are, for each component by name, if
        there are several. Without it they are from -9 to 9, and those of components from 1 to 9.
    :returns: the operation.
    :raises InvalidArgumentError: for a name that is taken, and for what is none of that; with
        numbers for which the operation is not associative or commutative, or its neutral element
        changes something.
    """
    if kind.flag("ordered", ordered) and reference is not None:
        raise InvalidArgumentError(
            f"the reduction '{name}' is ordered, and has a reference",
            instead="all executors compute what combine makes of two terms in their order",
        )
    made = own_operation(name, neutral, combine, reference, components, ordered)
    names = made.components or ("value",)
    given = within if made.components or within is None else {"value": within}
    low = 1 if made.components else -9
    ranges = {**dict.fromkeys(names, (low, 9)), **_ranges(dict.fromkeys(names), given)}
    check_operation(made, ranges)
    return made


def _types(what: str, given: Any) -> dict[str, DType]:
    types: dict[str, DType] = {}
    for names, dtype in kind.dtypes_by_name(f"{what}s", given).items():
        for one in kind.names_in(names):
            if one in types:
                raise InvalidArgumentError(f"the {what} '{one}' is declared twice")
            types[check_name(one, f"an {what}" if what == "argument" else f"a {what}")] = (
                dt.as_dtype(dtype)
            )
    return types


def _result(name: str, types: Mapping[str, DType], given: Any) -> DType:
    """The type of a result, or the record of several."""
    if not isinstance(given, Mapping):
        return dt.as_dtype(given)
    results = _types("result", given)
    if len(results) < 2:
        raise InvalidArgumentError(
            f"'{name}' has {counted(len(results), 'result')} by name",
            instead="one result has a type, and several have names",
        )
    for one in results:
        check_component(one)
        if one in types:
            raise InvalidArgumentError(f"'{one}' is an argument and a result of '{name}'")
    return dt.record_of(results)


def _c_name(given: Any) -> str:
    called = check_identifier(given, "c_name")
    plain = called.removesuffix("f")
    if called in KEYWORDS | CUDA or called.startswith(("lk_", "LK_", "LOOPKIT_")):
        raise InvalidArgumentError(f"'{called}' is no function that C can have")
    if {called, plain} & (FUNCTIONS | {"min", "max", "rint"}):
        raise InvalidArgumentError(
            f"'{called}' is a function that generated code calls",
            instead=f"the language has it: {plain}(...)",
        )
    return called


def _texts(
    name: str,
    called: str,
    types: Mapping[str, DType],
    result: DType,
    text: str,
    body: str,
    preamble: str,
) -> tuple[str, ...]:
    """The definitions that a function needs, in order.

    Where it has several results, the last one calls it for all of them.
    """
    texts = []
    results = dt.components_of(result)
    listed = [f"{C_TYPES[dtype]} {arg}" for arg, dtype in types.items()]
    found = next(n for n in ("all", "all_", "all__") if n not in types and n != called)
    given = {"preamble": preamble, "text": text, "body": body}
    for what, value in given.items():
        given[what] = kind.program(what, value)
    if given["text"].strip() and given["body"].strip():
        raise InvalidArgumentError(
            f"'{name}' has a text and a body", instead="give only one of them"
        )
    if given["preamble"].strip():
        texts.append(definition(given["preamble"], f"the preamble of '{name}'"))
    if given["text"].strip():
        texts.append(definition(given["text"], f"the text of '{name}'"))
        if "__device__" not in texts[-1]:
            raise InvalidArgumentError(
                f"nothing in the text of '{name}' is marked __device__",
                instead=f"a GPU calls '__device__ {'void' if results else C_TYPES[result]} "
                f"{called}(...)'",
            )
    elif given["body"].strip():
        places = [f"{C_TYPES[dtype]} &{one}" for one, dtype in results.items()]
        inside = definition(given["body"], f"the body of '{name}'").split("\n")
        gives = "void" if results else C_TYPES[result]
        texts.append(_function(gives, called, [*listed, *places], inside))
    if results:
        by = "" if given["body"].strip() else "&"
        passed = ", ".join([*types, *(f"{by}{found}.{one}" for one in results)])
        inside = [f"{C_TYPES[result]} {found}{{}};", f"{called}({passed});", f"return {found};"]
        texts.append(_function(C_TYPES[result], called, listed, inside))
    if called == name and not any(value.strip() for value in given.values()):
        raise InvalidArgumentError(
            f"'{name}' has no definition",
            instead="text, body or preamble has it; c_name names a function that CUDA has",
        )
    return tuple(texts)


def _function(result: str, name: str, listed: list[str], lines: list[str]) -> str:
    head = f"__device__ __forceinline__ {result} {name}({', '.join(listed)})"
    return "\n".join([head, "{", *(f"    {line}".rstrip() for line in lines), "}"])


def _meaning(name: str, given: Any, types: Mapping[str, DType], result: DType) -> Any:
    if given is None or callable(given):
        return given
    results = dt.components_of(result)
    if results and isinstance(given, (tuple, list)) and len(given) == len(results):
        kinds = zip(given, results.values(), strict=True)
        parts = (_meaning(name, part, types, kind) for part, kind in kinds)
        return Record(tuple(results), tuple(parts))
    if results or not isinstance(given, str):
        due = f"{len(results)} expressions" if results else "an expression"
        raise InvalidArgumentError(
            f"the meaning of '{name}' is a function or {due}, not {shown(given)}"
        )
    found: Expression = parse_expression(given)
    strange = variable_names(found) - types.keys()
    if strange:
        raise InvalidArgumentError(
            f"the meaning of '{name}' uses '{min(strange)}', which is no argument of it",
            instead="its arguments: " + ", ".join(types),
        )
    if any(indices for _, indices in accesses(found)):
        raise InvalidArgumentError(
            f"the meaning of '{name}' has subscripts, and its arguments are numbers"
        )
    computed = concrete(dtype_of(found, types.__getitem__))
    if computed in dt.COMPLEXES and result not in dt.COMPLEXES:
        raise InvalidArgumentError(
            f"the meaning of '{name}' is {dtype_name(computed)}, and its result "
            f"{dtype_name(result)}",
            instead="real(...) and abs(...) of a complex number are real",
        )
    return found


def _ranges(types: Mapping[str, Any], given: Any) -> dict[str, tuple[float, float]]:
    ranges: dict[str, tuple[float, float]] = {}
    if given is not None and not isinstance(given, Mapping):
        raise kind.unfit("within", "a mapping of names to two numbers", given)
    for name, ends in (given or {}).items():
        if name not in types:
            raise InvalidArgumentError(f"within names {shown(name)}, which is no argument")
        if not isinstance(ends, (tuple, list)) or len(ends) != 2:
            raise kind.unfit(f"what '{name}' is within", "two numbers", ends)
        low, high = ends
        if not all(isinstance(e, (int, float)) and e - e == 0 for e in ends) or low > high:
            raise kind.unfit(f"what '{name}' is within", "two numbers, the smaller one first", ends)
        ranges[name] = (low, high)
    return ranges
