"""Where calls are drawn from: one function for each area of the public interface."""

from __future__ import annotations

import functools
import inspect
import json
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from seams import registered_transforms as registered
from seams import step_from_json

import loopkit as lk
from loopkit import loopy

from .calls import Call, Draw, shown, spelled
from .pools import BEGINNINGS, HEADERS, hostile, names, number, word
from .texts import CONDITIONS, KERNELS, mutated, nearly, soup


@functools.cache
def kernels() -> tuple[lk.Kernel, ...]:
    """Valid kernels, some of them scheduled."""
    plain = [lk.make_kernel(d, t, dtypes=types) for d, t, types in KERNELS]
    tiled = plain[1].split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
    tiled = tiled.split_iname("j", 16, outer_tag="g.0", inner_tag="l.0").split_iname("k", 16)
    staged = tiled.add_prefetch("a", ["i_inner", "k_inner"])
    gathering = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "c[i] = x[col[i]]",
        [lk.GlobalArg("x", "float32", shape="m"), lk.GlobalArg("col", "int32", shape="n"), ...],
    )
    return (*plain, plain[0].split_iname("i", 4), tiled, staged, gathering)


def used(kernel: lk.Kernel, rng: random.Random) -> object:
    """What people do with a kernel that they have made."""
    doing = rng.randrange(8)
    if doing == 0:
        return kernel.cuda()
    if doing == 1:
        return kernel.prove()
    if doing == 2:
        return kernel.script(), str(kernel.history), kernel.key
    return str(kernel)


def then_used(make: Callable[[], Any], seed: int) -> Callable[[], object]:
    """A call, and what is done with the kernel that it makes."""
    return lambda: used(make(), random.Random(seed))


# {{{ texts


def instructions(rng: random.Random) -> Call:
    """Texts of instructions."""
    domain, text, dtypes = rng.choice(KERNELS)
    args = (domain, nearly(rng, text))
    make = functools.partial(lk.make_kernel, *args, dtypes=dtypes if rng.random() < 0.5 else None)
    return Call(spelled("lk.make_kernel", args, {}), then_used(make, rng.randrange(2**30)))


def domains(rng: random.Random) -> Call:
    """Texts of domains."""
    domain, text, _ = rng.choice(KERNELS)
    args = (nearly(rng, domain), text)
    make = functools.partial(lk.make_kernel, *args)
    return Call(spelled("lk.make_kernel", args, {}), then_used(make, rng.randrange(2**30)))


def assumptions(rng: random.Random) -> Call:
    """Texts of assumptions, at creation and after it."""
    text = nearly(rng, rng.choice(CONDITIONS))
    kernel = rng.choice(kernels())
    if rng.random() < 0.5:
        return Call(spelled("knl.assume", (text,), {}), lambda: kernel.assume(text).cuda())
    domain, body, _ = rng.choice(KERNELS)
    kwargs = {"assumptions": text}
    make = functools.partial(lk.make_kernel, domain, body, **kwargs)
    return Call(spelled("lk.make_kernel", (domain, body), kwargs), make)


def matches(rng: random.Random) -> Call:
    """Match strings."""
    text = "id:w* and (writes:acc or not reads:a) or iname:i and tag:x"
    within = nearly(rng, text) if rng.random() < 0.8 else hostile(rng)
    kernel = rng.choice(kernels())
    iname = rng.choice(kernel.all_inames)
    run = functools.partial(kernel.split_iname, iname, 4, within=within)
    return Call(spelled("knl.split_iname", (iname, 4), {"within": within}), run)


# }}}

# {{{ arguments

_KIND_OF = {
    "name": "new", "dtype": "dtype", "shape": "text", "offset": "text", "strides": "text",
    "dim_tags": "text", "address_space": "space", "var_name": "array", "ary_names": "array",
    "array": "array", "first": "array", "second": "array", "temp_var_names": "array",
    "variable": "array", "only_var_names": "array", "within": "match", "tag": "tag",
    "default_tag": "tag", "outer_tag": "tag", "inner_tag": "tag", "tag_type": "tag",
    "template": "text", "init_expression": "text", "store_expression": "text", "lower": "text",
    "upper": "text", "footprint_subscripts": "text", "assumptions": "cond", "subst_use": "array",
    "lhs_name": "array", "scope": "space", "temporary_scope": "space",
    "temporary_address_space": "space", "suffix": "new", "equations": "text", "subst_name": "new",
}  # fmt: skip
_NUMBERS = ("inner_length", "num_chunks", "axis", "elements", "align_bytes", "first", "last")
_SEVERAL = ("inames", "sweep_inames", "names", "order", "priority", "parameters", "arguments")


def near(rng: random.Random, parameter: str) -> Any:
    """A value that a parameter of this name might have."""
    if rng.random() < 0.25:
        return hostile(rng)
    if parameter in _NUMBERS and rng.random() < 0.8:
        return number(rng)
    if parameter == "slabs":
        return (number(rng), number(rng))
    if parameter.endswith(("_ok", "_bounding_box", "force", "strictly", "_check", "_argument")):
        return rng.choice([True, False])
    if parameter in ("iname_to_tag", "tags", "storage_axis_to_tag", "rename_after"):
        some = {word(rng, "iname"): word(rng, "tag") for _ in range(rng.randrange(3))}
        return some if rng.random() < 0.6 else ", ".join(f"{k}:{v}" for k, v in some.items())
    if parameter in ("dtype_dict", "dtypes"):
        return {word(rng, "array"): word(rng, "dtype") for _ in range(rng.randrange(3))}
    if parameter == "transform_map":
        return mutated(rng, "{ [i, j] -> [p, q]: p = i + j and q = j }")
    kind = _KIND_OF.get(parameter)
    if kind is None:
        is_new = parameter.startswith(("new_", "temporary_", "rule_", "outer_", "inner_"))
        kind = "new" if is_new or parameter.endswith("_id") else "iname"
    if parameter.endswith(("inames", "names")) or parameter in _SEVERAL:
        return names(rng, kind)
    return word(rng, kind)


def drawn(
    rng: random.Random, function: Callable[..., Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments for a function: all that it needs, and some of the rest."""
    parameters = list(inspect.signature(function).parameters.values())
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            for _ in range(rng.randrange(3)):
                kwargs[word(rng, "size")] = hostile(rng) if rng.random() < 0.6 else number(rng)
        elif parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
            args.append(near(rng, parameter.name))
        elif rng.random() < 0.25:
            kwargs[parameter.name] = near(rng, parameter.name)
    return tuple(args), kwargs


def transforms(rng: random.Random) -> Call:
    """Any transform of any kernel."""
    kernel = rng.choice(kernels())
    name = rng.choice(sorted(registered))
    method = functools.partial(registered[name], kernel)
    args, kwargs = drawn(rng, method)
    if rng.random() < 0.02:
        kwargs[rng.choice(["unknown", "unchecked"])] = hostile(rng)
    make = functools.partial(method, *args, **kwargs)
    return Call(spelled(f"knl.{name}", args, kwargs), then_used(make, rng.randrange(2**30)))


_MAKERS: Mapping[str, Callable[..., Any]] = {
    "GlobalArg": lk.GlobalArg,
    "ConstantArg": lk.ConstantArg,
    "ValueArg": lk.ValueArg,
    "TemporaryVariable": lk.TemporaryVariable,
    "SubstitutionRule": lk.SubstitutionRule,
    "Options": lk.Options,
    "ArrayArg": lk.ArrayArg,
}


def constructors(rng: random.Random) -> Call:
    """Values that say something of data, and a kernel that is made with them."""
    name = rng.choice(sorted(_MAKERS))
    args, kwargs = drawn(rng, _MAKERS[name])
    domain, text, _ = rng.choice(KERNELS)
    if args and rng.random() < 0.7:
        args = (word(rng, "array"), *args[1:])

    def run() -> object:
        made = _MAKERS[name](*args, **kwargs)
        if name == "SubstitutionRule":
            return lk.make_kernel(domain, text, substitutions=[made]).cuda()
        if name == "Options":
            return lk.make_kernel(domain, text, options=made).cuda()
        return lk.make_kernel(domain, text, [made, ...]).cuda()

    return Call(spelled(f"lk.{name}", args, kwargs) + f" with {text!r}", run)


def creation(rng: random.Random) -> Call:
    """Arguments of ``make_kernel`` other than its texts."""
    domain, text, types = rng.choice(KERNELS)
    parameters = list(inspect.signature(lk.make_kernel).parameters)[2:]
    kwargs: dict[str, Any] = {"dtypes": types} if rng.random() < 0.5 else {}
    for parameter in rng.sample(parameters, rng.choice([1, 1, 2])):
        value = near(rng, parameter)
        if parameter == "fixed_parameters" and rng.random() < 0.7:
            some = rng.choice([number(rng), hostile(rng)])
            value = {word(rng, rng.choice(["size", "array", "iname"])): some}
        kwargs[parameter] = value
    args: list[Any] = [domain, text]
    if rng.random() < 0.2:
        args[rng.randrange(2)] = hostile(rng)
    make = functools.partial(lk.make_kernel, *args, **kwargs)
    return Call(
        spelled("lk.make_kernel", tuple(args), kwargs), then_used(make, rng.randrange(2**30))
    )


# }}}

# {{{ histories


def _changed(rng: random.Random, data: Any) -> Any:
    """JSON data with one place changed."""
    if isinstance(data, dict) and data and rng.random() < 0.8:
        key = rng.choice(sorted(data))
        chance = rng.random()
        if chance < 0.1:
            return {k: v for k, v in data.items() if k != key}
        if chance < 0.2:
            return {**data, rng.choice(["x", "kernel", "unchecked", ""]): data[key]}
        return {**data, key: _changed(rng, data[key])}
    if isinstance(data, list) and data and rng.random() < 0.8:
        at = rng.randrange(len(data))
        return [*data[:at], _changed(rng, data[at]), *data[at + 1 :]]
    if isinstance(data, str) and rng.random() < 0.5:
        return mutated(rng, data)
    plain = [None, True, 0, -1, 1.5, 2**70, "", "x", "x\ny", "\ud800", [], {}, [[]], {"a": 1}]
    return rng.choice(plain)


def histories(rng: random.Random) -> Call:
    """Steps from JSON, applied to a kernel."""
    kernel = rng.choice(kernels())
    recorded = [s for k in kernels() for s in k.history]
    data: Any = json.loads(json.dumps(rng.choice(recorded).to_json()))
    for _ in range(rng.choice([1, 1, 2, 4])):
        data = _changed(rng, data)
    if rng.random() < 0.05:
        steps = hostile(rng)
        return Call(
            spelled("lk.replay", (kernel.name, steps), {}), lambda: lk.replay(kernel, steps)
        )
    text = f"lk.replay(knl, [step_from_json({shown(data)})])"
    return Call(text, lambda: str(lk.replay(kernel, (step_from_json(data),)).history))


# }}}

# {{{ names and look-ups


def library_names(rng: random.Random) -> Call:
    """Names that compilers know, for all that has a name: what is taken must compile."""
    name = rng.choice(HEADERS if rng.random() < 0.7 else BEGINNINGS)
    role = rng.choice(["kernel", "iname", "array", "temporary", "size", "rule", "id", "new"])
    named = {role: name}
    i, a, n = named.get("iname", "i"), named.get("array", "a"), named.get("size", "n")
    t, f, s = named.get("temporary", "t"), named.get("rule", "f"), named.get("id", "s")
    text = f"{f}(u) := 2*u\n<> {t} = {f}({a}[{i}]) {{id={s}}}\nb[{i}] = {t}"
    step = rng.choice(["split_iname", "chunk_iname", "duplicate_inames", "peel", "precompute"])

    def run() -> object:
        args = f"{{ [{i}]: 0 <= {i} < {n} }}", text
        types = {f"{a}, b": "float32"}
        kernel = lk.make_kernel(*args, dtypes=types, name=named.get("kernel", "k"))
        if step == "duplicate_inames":
            kernel = kernel.duplicate_inames(i, f"id:{s}")
        elif step == "peel":
            kernel = kernel.assume(f"{n} >= 4").peel_iname(i, first=1)
        elif step == "precompute":
            kernel = kernel.split_iname(i, 4).precompute(f, f"{i}_inner")
        else:
            kernel = getattr(kernel, step)(i, 4, inner_iname=named.get("new"))
        try:
            return kernel.cuda() if rng.random() < 0.5 else kernel.cubin("sm_90")
        except lk.CompileError as error:
            raise AssertionError(f"{role} {name}: what was taken does not compile") from error

    return Call(f"{role} called {name!r}, then {step}", run)


@functools.cache
def _looked_into() -> Mapping[str, Any]:
    """Values in which things are looked up by name."""
    kernel = kernels()[0]
    few = {"executor": "reference", "seconds": 1e-3, **dict.fromkeys(kernel.sizes, 4)}
    found = {"knl": kernel, "unit": loopy.make_kernel(*KERNELS[0][:2])}
    return {**found, "contest": lk.compare({"one": kernel}, **few), "lk": lk, "loopy": loopy}


_LOOKUPS = {
    "knl": (
        *("array", "users", "is_array", "check_iname", "domain_of", "domain_around", "parents_of"),
        *("range_of", "range_around", "statement", "statement_domain", "fresh_name", "view"),
        *("with_computed", "script", "__getattr__"),
    ),
    "unit": ("insn_inames", "iname_tags", "get_constant_iname_length", "__getitem__"),
    "contest": ("__getitem__",),
    "lk": ("__getattr__",),
    "loopy": ("__getattr__",),
}


def lookups(rng: random.Random) -> Call:
    """What is looked up by a name, by all that could be taken for one."""
    where = rng.choice(sorted(_LOOKUPS))
    method = rng.choice(_LOOKUPS[where])
    name = hostile(rng) if rng.random() < 0.7 else word(rng, rng.choice(["iname", "array", "id"]))
    if method == "__getattr__":
        name = rng.choice([rng.choice(HEADERS), f"{rng.choice(sorted(registered))}s"])
    if method == "view":  # nothing is written
        name = name if not isinstance(name, str) else f"no/such/folder/{name}"

    def run() -> object:
        try:
            return getattr(_looked_into()[where], method)(name)
        except AttributeError as error:
            if method == "__getattr__" and isinstance(error, lk.LoopkitError):
                return str(error)
            raise

    return Call(spelled(f"{where}.{method}", (name,), {}), run)


# }}}

# {{{ running


def _array(rng: random.Random) -> Any:
    chance = rng.random()
    if chance < 0.2:
        return hostile(rng)
    shape = tuple(rng.choice([0, 1, 4, 5, 16]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3])))
    dtype = rng.choice(["f4", "f4", "f4", "f8", "i4", "i8", "f2", "c8", "O", "U3", "?", ">f4"])
    array = np.zeros(shape, dtype)
    if chance < 0.3 and array.ndim:
        return array[..., ::-2]
    if chance < 0.35:
        return np.broadcast_to(array, (3, *shape))
    if chance < 0.4:
        array.flags.writeable = False
    return array


def runs(rng: random.Random) -> Call:
    """Calls with arrays and sizes; the interpreter runs them."""
    kernel = rng.choice(kernels())
    kwargs = {a.name: _array(rng) for a in kernel.args if rng.random() < 0.9}
    for argument in kernel.args:
        if isinstance(argument, lk.ValueArg) and rng.random() < 0.9:
            kwargs[argument.name] = hostile(rng) if rng.random() < 0.4 else rng.choice([0, 1, 4, 5])
    args = tuple(_array(rng) for _ in range(rng.choice([0, 0, 0, 1])))
    if rng.random() < 0.1:
        kwargs[word(rng, "array")] = _array(rng)
    method = rng.choice(["__call__", "__call__", "bind", "launch_config"])
    if method == "launch_config":
        sizes = {k: v for k, v in kwargs.items() if not isinstance(v, np.ndarray)}
        run: Callable[[], Any] = functools.partial(kernel.launch_config, **sizes)
        return Call(spelled("knl.launch_config", (), sizes), run)
    options = {"check_assertions": True} if rng.random() < 0.1 else {}
    text = spelled(f"knl.executor('reference').{method}", args, kwargs)
    return Call(
        text, lambda: getattr(kernel.executor("reference", **options), method)(*args, **kwargs)
    )


def executors(rng: random.Random) -> Call:
    """Options of executors, and functions that compare kernels."""
    kernel = rng.choice(kernels())
    other = hostile(rng) if rng.random() < 0.5 else rng.choice(kernels())
    which = rng.randrange(5)
    if which == 0:
        args = (rng.choice(["host", "reference", "cuda", hostile(rng)]),)
        options = {o: hostile(rng) for o in ("order", "seed", "sanitize") if rng.random() < 0.4}
        if rng.random() < 0.2:
            options["unknown"] = 1
        return Call(
            spelled("knl.executor", args, options),
            functools.partial(kernel.executor, *args, **options),
        )
    if which == 1:
        return Call(
            spelled("lk.verify", (kernel.name, other), {}), lambda: str(lk.verify(kernel, other))
        )
    if which == 2:
        kwargs = {"parameters": rng.choice([{"n": 4, "m": 4, "l": 4}, {"n": 8}, hostile(rng)])}
        for name in ("executor_name", "seed", "tolerance"):
            if rng.random() < 0.2:
                kwargs[name] = hostile(rng)
        kwargs.setdefault("executor_name", "reference")
        return Call(
            spelled("lk.auto_test_vs_ref", (kernel.name, kernel.name), kwargs),
            functools.partial(lk.auto_test_vs_ref, kernel, kernel, **kwargs),
        )
    if which == 3:
        some = tuple(hostile(rng) for _ in range(4))
        which_way = rng.random() < 0.8
        return Call(
            spelled("lk.register_reduction", some, {}),
            lambda: lk.make_kernel(
                "{ [i]: 0 <= i < n }", "c[0] = own(i, a[i])",
                reductions=[lk.register_reduction("own", *some[1:])] if which_way else some,
            ).cuda(),
        )  # fmt: skip
    arch = hostile(rng)
    method = rng.choice(["ptx", "cubin", "sass", "resources", "with_"])
    if method == "with_":
        changes = {rng.choice(["name", "args", "tags", "statements", "unknown"]): hostile(rng)}
        return Call(spelled("knl.with_", (), changes), functools.partial(kernel.with_, **changes))
    return Call(spelled(f"knl.{method}", (arch,), {}), lambda: getattr(kernel, method)(arch))


def costs(rng: random.Random) -> Call:
    """Costs on devices, with nearly all sizes; measuring, in the interpreter."""
    kernel = rng.choice(kernels())
    sizes = {n: rng.choice([0, 1, 4, 17, 64, -1, True]) for n in kernel.sizes}
    kwargs: dict[str, Any] = {n: v for n, v in sizes.items() if rng.random() < 0.95}
    if rng.random() < 0.2:
        kwargs[rng.choice([*kernel.sizes, "unknown"])] = hostile(rng)
    if rng.random() < 0.6:
        devices = ["H100", "a100", "RTX 4090", "L4", "Z80", hostile(rng)]
        options = {"device": rng.choice(devices), "arch": rng.choice([None, "sm_80", hostile(rng)])}
        kwargs |= {n: v for n, v in options.items() if rng.random() < 0.7}
        what = rng.choice(["device", "roofline", "__str__"])

        def look() -> Any:
            found = getattr(kernel.costs(**kwargs), what)
            return found() if what == "__str__" else str(found)

        return Call(spelled("knl.costs", (), kwargs) + f".{what}", look)
    kwargs |= {"executor": "reference", "seconds": 1e-3}
    kwargs |= {a.name: _array(rng) for a in kernel.args if rng.random() < 0.1}
    for name in ("executor", "seconds", "seed", "flush_l2", "tolerance"):
        if rng.random() < 0.1:
            kwargs[name] = hostile(rng)
    if rng.random() < 0.5:
        kwargs.pop("tolerance", None)
        text = spelled("lk.measure", (kernel.name,), kwargs)
        return Call(text, lambda: str(lk.measure(kernel, **kwargs)))
    others = {"one": kernel, "two": rng.choice([kernel, *kernels(), hostile(rng)])}
    text = spelled("lk.compare", (shown(others),), kwargs)
    return Call(text, lambda: str(lk.compare(others, **kwargs)))


# }}}

# {{{ functions beside the transforms

_BESIDE = (
    "add_padding_to_avoid_bank_conflicts", "find_padding_multiple", "fuse_kernels",
    "generate_code_v2", "get_kennedy_unweighted_fusion_candidates", "make_einsum",
    "make_function", "merge", "set_loop_priority", "set_temporary_scope", "to_batched",
)  # fmt: skip
_STATISTICS = ("get_mem_access_map", "get_op_map", "get_synchronization_map")


def functions(rng: random.Random) -> Call:
    """Public functions that are no transforms: mostly of a kernel, or of several."""
    if rng.random() < 0.3:
        return _statistics(rng)
    name = rng.choice(_BESIDE)
    function = getattr(lk, name)
    args, kwargs = drawn(rng, function)
    if args and rng.random() < 0.9:
        several = name in ("fuse_kernels", "merge")
        some = [rng.choice(kernels()) for _ in range(rng.randrange(4))]
        first: Any = some if several else rng.choice(kernels())
        if name in ("make_einsum", "make_function"):
            first = rng.choice(["ij,jk->ik", "i,i->", "{ [i]: 0 <= i < n }"])
        args = (first, *args[1:])

    def run() -> object:
        made = function(*args, **kwargs)
        return str(made) if isinstance(made, lk.Kernel) else made

    return Call(spelled(f"lk.{name}", args, kwargs), run)


def _statistics(rng: random.Random) -> Call:
    """Counts by key, and what is asked of them."""
    kernel, name = rng.choice(kernels()), rng.choice(_STATISTICS)
    which = rng.choice(["filter_by", "group_by", "eval", "eval_and_sum", "__getitem__", "__add__"])
    fields = ["dtype", "name", "mtype", "direction", "variable", "count_granularity", "unknown"]
    kwargs: dict[str, Any] = {}
    args: tuple[Any, ...] = ()
    if which == "filter_by":
        kwargs = {f: rng.choice([["float32"], "add", hostile(rng)]) for f in fields[:2]}
    elif which == "group_by":
        args = tuple(rng.choice([*fields, hostile(rng)]) for _ in range(rng.randrange(3)))
    else:
        sizes = {n: rng.choice([0, 1, 17, -1, hostile(rng)]) for n in kernel.sizes}
        args = (rng.choice([sizes, hostile(rng)]),)

    def run() -> object:
        return str(getattr(getattr(lk, name)(kernel), which)(*args, **kwargs))

    return Call(spelled(f"lk.{name}({kernel.name}).{which}", args, kwargs), run)


# }}}

AREAS: Mapping[str, Draw] = {
    "instructions": instructions,
    "domains": domains,
    "assumptions": assumptions,
    "matches": matches,
    "transforms": transforms,
    "constructors": constructors,
    "creation": creation,
    "histories": histories,
    "library_names": library_names,
    "lookups": lookups,
    "runs": runs,
    "executors": executors,
    "costs": costs,
    "functions": functions,
}
WEIGHTS = {"instructions": 3, "domains": 2, "transforms": 4}


def area_of(number: int) -> str:
    """The area that a numbered case is drawn from."""
    many = [name for name in AREAS for _ in range(WEIGHTS.get(name, 1))]
    return random.Random(number).choice(many)


def case(area: str, number: int) -> Call:
    """The call of a number: the same in every process."""
    return AREAS[area](random.Random(f"{area}:{number}"))


__all__ = ["AREAS", "area_of", "case", "soup"]
