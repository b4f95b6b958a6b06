"""Repairs of storage: additional axes, address spaces, copies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from loopkit._arrays import AddressSpace
from loopkit._check.suggest_calls import accepts, call, like, quoted, with_arguments, without
from loopkit._check.suggest_try import Refusal, Suggestion, Trials
from loopkit._expression import called_names
from loopkit._history import Step
from loopkit._kernel import Kernel
from loopkit._tree import path_inames

_SPACES = {
    AddressSpace.LOCAL: ("shared", "if {t} is shared by the threads of a block"),
    AddressSpace.PRIVATE: ("private", "if each thread has a separate copy of {t}"),
    AddressSpace.GLOBAL: ("global", "if {t} is in global memory"),
}


def by_spaces(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Temporaries in another memory: before the step, or as what the step asks for."""
    if not refusal.temporaries:
        return
    step, chosen, kernels = refusal.step, refusal.temporaries, [refusal.kernel]
    is_setter = step.transform == "set_temporary_address_space"
    if is_setter:
        chosen = refusal.names("temp_var_names")
        kernels += [refusal.change.kernel] if refusal.change else []
    now = {k.temporary_by_name[t].address_space for k in kernels for t in chosen}
    for space, (name, what) in _SPACES.items():
        if space in now:
            continue
        steps: tuple[Step, ...]
        if is_setter:
            steps = (with_arguments(step, address_space=name),)
        else:
            steps = (call("set_temporary_address_space", ", ".join(chosen), name), step)
        yield Suggestion(what.format(t=quoted(chosen)), steps)


def by_saving(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Values that a barrier would lose, kept in global memory."""
    if refusal.step.transform == "add_barrier":
        given = {n: v for n, v in refusal.given.items() if n != "synchronization_kind"}
        other = call("save_and_reload_temporaries", **given)
        yield Suggestion("with values saved, and loaded again behind the barrier", (other,))


def by_axes(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Temporaries with an axis for each iteration of the loops that they hold values of."""
    if refusal.step.transform == "privatize_temporaries_with_inames":
        return
    for temporary in _carriers(refusal):
        inames = _inames_around(refusal.kernel, temporary)
        for count in range(1, min(len(inames), 2) + 1):
            for chosen in combinations(inames, count):
                first = call("privatize_temporaries_with_inames", ", ".join(chosen), temporary)
                what = f"if '{temporary}' has an axis for {quoted(chosen)}"
                yield Suggestion(what, (first, refusal.step))
        for iname in inames:
            yield from _in_strips(refusal, iname, temporary)
    if len(refusal.kernel.temporaries) > 1:
        for iname in refusal.names("loop_priority"):
            yield from _in_strips(refusal, iname, None)


def _carriers(refusal: Refusal) -> tuple[str, ...]:
    """Temporaries that may need axes; any of a few where the step does not even apply."""
    if refusal.violations:
        return refusal.temporaries
    if refusal.step.transform not in (
        "prioritize_loops",
        "duplicate_inames",
        "fission",
        "rename_iname",
    ):
        return ()
    return tuple(t.name for t in refusal.kernel.temporaries[:4])


def _inames_around(kernel: Kernel, temporary: str) -> list[str]:
    """The inames that all statements are inside that use a temporary."""
    users = kernel.users(temporary)
    shared = frozenset.intersection(*(u.inames for u in users)) if users else frozenset()
    return [i for i in kernel.all_inames if i in shared]


_STRIP = 16
_CUTTING = {"prioritize_loops": "loop_priority", "fission": "inames"}
"""Transforms that cut loops which pass values on, and the arguments that name the loops."""


def _in_strips(refusal: Refusal, iname: str, temporary: str | None) -> Iterator[Suggestion]:
    """An axis for a strip of a loop, whose own length is no constant: for one or all."""
    argument = _CUTTING.get(refusal.step.transform, "")
    asked = refusal.names(argument) if argument else ()
    if iname not in asked:
        return
    outer, inner = f"{iname}_outer", f"{iname}_inner"
    chosen = () if temporary is None else (temporary,)
    axis = call("privatize_temporaries_with_inames", inner, *chosen)
    order = [inner if n == iname else n for n in asked]
    if argument == "loop_priority":
        order = [outer, *order]
    cut = with_arguments(refusal.step, **{argument: ", ".join(order)})
    who = f"'{temporary}' has" if temporary else "temporaries have"
    what = f"in strips, if {who} an axis for '{inner}'"
    yield Suggestion(what, (call("split_iname", iname, _STRIP), axis, cut))


def by_copies(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Copies made deeper, for fewer readers, or kept up to date."""
    step, given = refusal.step, refusal.given
    if step.transform == "assignment_to_subst":
        # A rule in the place of a temporary for one of its readers.
        yield from _for_one_user(step, _readers(refusal.kernel, given["lhs_name"]))
    if step.transform not in ("add_prefetch", "precompute", "buffer_array"):
        return
    array = given.get("var_name")
    sweep_name = "buffer_inames" if step.transform == "buffer_array" else "sweep_inames"
    swept = refusal.names(sweep_name)
    users = _users(refusal) if array is None else _readers(refusal.kernel, array)
    for outer_name in ("fetch_outer_inames", "precompute_outer_inames"):
        for user in users if accepts(step.transform, outer_name) else ():
            around = [i for i in path_inames(refusal.kernel.paths[user]) if i not in swept]
            for count in range(1, len(around) + 1):
                deeper = with_arguments(step, **{outer_name: ", ".join(around[:count])})
                yield Suggestion(f"inside of {quoted(around[:count])}", (deeper,))
    if len(users) > 1:
        yield from _for_one_user(step, users)
    for count in range(len(swept) - 1, 0, -1):
        for fewer in combinations(swept, count):
            other = with_arguments(step, **{sweep_name: like(given[sweep_name], fewer)})
            yield Suggestion(f"with {quoted(fewer)} alone swept", (other,))
    if step.transform == "add_prefetch":
        options: dict[str, Any] = {n: given[n] for n in ("default_tag", "within") if n in given}
        buffer = call("buffer_array", array, given.get("sweep_inames", ()), **options)
        what = f"with a buffer, which holds what is written to '{array}' too"
        for other in (buffer, without(buffer, "within")):
            yield Suggestion(what, (other,))


def _for_one_user(step: Step, users: list[str]) -> Iterator[Suggestion]:
    for user in users:
        yield Suggestion(f"for '{user}' alone", (with_arguments(step, within=f"id:{user}"),))


def _readers(kernel: Kernel, array: str) -> list[str]:
    return [s.id for s in kernel.readers.get(array, ())]


def _users(refusal: Refusal) -> list[str]:
    """The statements that use a rule."""
    rule = str(refusal.given.get("subst_use", "")).split("(")[0]
    return [s.id for s in refusal.kernel.statements if rule in called_names(s.rhs)]
