"""Repairs that concern where values are kept: axes, address spaces, copies, assertions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from loopkit._arguments import names_in
from loopkit._arrays import AddressSpace
from loopkit._check.suggest_calls import (
    accepts,
    call,
    like,
    quoted,
    read_call,
    with_arguments,
    without,
)
from loopkit._check.suggest_try import Refusal, Suggestion, Trials
from loopkit._check.violation import Violation
from loopkit._history import Step
from loopkit._kernel import Kernel
from loopkit._tree import path_inames

# {{{ temporaries

_SPACES = {
    "shared": "if {t} is shared by the threads of a block",
    "private": "if each thread has {t} of its own",
    "global": "if {t} is in global memory",
}
_SETTERS = {"set_temporary_address_space": "address_space"}


def by_spaces(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Temporaries in another memory: before the step, or as what the step asks for."""
    if not refusal.temporaries:
        return
    step, kernel = refusal.step, refusal.kernel
    argument = _SETTERS.get(step.transform)
    chosen = refusal.temporaries
    if argument is not None:
        chosen = names_in(dict(step.arguments)["temp_var_names"])
    for space in _spaces(refusal, chosen):
        if argument is not None:
            steps: tuple[Step, ...] = (with_arguments(step, **{argument: space}),)
        else:
            which = ", ".join(chosen)
            steps = (call("set_temporary_address_space", which, space), step)
        if trials.after(kernel, steps) is not None:
            yield Suggestion(_SPACES[space].format(t=quoted(chosen)), steps)


def _spaces(refusal: Refusal, chosen: tuple[str, ...]) -> list[str]:
    """Other address spaces than the one that the temporaries have."""
    now = {refusal.kernel.temporary_by_name[t].address_space for t in chosen}
    if refusal.step.transform in _SETTERS and refusal.change is not None:
        now |= {refusal.change.kernel.temporary_by_name[t].address_space for t in chosen}
    known = {
        "shared": AddressSpace.LOCAL,
        "private": AddressSpace.PRIVATE,
        "global": AddressSpace.GLOBAL,
    }
    return [name for name, space in known.items() if space not in now]


def by_axes(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Temporaries with an axis for each iteration of the loops that they hold values of."""
    if refusal.step.transform == "privatize_temporaries_with_inames":
        return
    for temporary in _carriers(refusal):
        inames = _inames_around(refusal.kernel, temporary)
        for count in range(1, min(len(inames), 2) + 1):
            for chosen in combinations(inames, count):
                first = call("privatize_temporaries_with_inames", ", ".join(chosen), temporary)
                if trials.after(refusal.kernel, [first, refusal.step]) is not None:
                    what = f"if '{temporary}' has an axis for {quoted(chosen)}"
                    yield Suggestion(what, (first, refusal.step))
        for iname in inames:
            yield from _in_strips(refusal, trials, iname, temporary)
    if len(refusal.kernel.temporaries) > 1:
        for iname in names_in(dict(refusal.step.arguments).get("loop_priority", ())):
            yield from _in_strips(refusal, trials, iname, None)


def _carriers(refusal: Refusal) -> tuple[str, ...]:
    """Temporaries that may need axes; any of a few where the step does not even apply."""
    if refusal.violations:
        return refusal.temporaries
    if refusal.step.transform not in ("prioritize_loops", "duplicate_inames", "rename_iname"):
        return ()
    return tuple(t.name for t in refusal.kernel.temporaries[:4])


def _inames_around(kernel: Kernel, temporary: str) -> list[str]:
    """The inames that all statements are inside that use a temporary."""
    users = (*kernel.writers.get(temporary, ()), *kernel.readers.get(temporary, ()))
    shared = frozenset.intersection(*(u.inames for u in users)) if users else frozenset()
    return [i for i in kernel.all_inames if i in shared]


_STRIP = 16


def _in_strips(
    refusal: Refusal, trials: Trials, iname: str, temporary: str | None
) -> Iterator[Suggestion]:
    """An axis for a strip of a loop, whose own length is no constant: for one or all."""
    step = refusal.step
    asked = names_in(dict(step.arguments).get("loop_priority", ()))
    if step.transform != "prioritize_loops" or iname not in asked:
        return
    split = call("split_iname", iname, _STRIP)
    chosen = () if temporary is None else (temporary,)
    axis = call("privatize_temporaries_with_inames", f"{iname}_inner", *chosen)
    order = (f"{iname}_outer", *(f"{iname}_inner" if n == iname else n for n in asked))
    ordered = with_arguments(step, loop_priority=", ".join(order))
    steps = (split, axis, ordered)
    if trials.after(refusal.kernel, steps) is not None:
        who = f"'{temporary}' has" if temporary else "temporaries have"
        yield Suggestion(f"in strips, if {who} an axis for '{iname}_inner'", steps)


# }}}

# {{{ copies


def by_copies(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Copies made deeper, for fewer readers, or kept up to date."""
    if refusal.step.transform == "assignment_to_subst":
        yield from _for_one_user(refusal, trials)
    if refusal.step.transform not in ("add_prefetch", "precompute", "buffer_array"):
        return
    for what, step in _copies(refusal):
        if trials.after(refusal.kernel, [step]) is not None:
            yield Suggestion(what, (step,))


def _for_one_user(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """A rule in the place of a temporary for one of its readers."""
    name = dict(refusal.step.arguments)["lhs_name"]
    for reader in refusal.kernel.readers.get(name, ()):
        step = with_arguments(refusal.step, within=f"id:{reader.id}")
        if trials.after(refusal.kernel, [step]) is not None:
            yield Suggestion(f"for '{reader.id}' alone", (step,))


def _copies(refusal: Refusal) -> Iterator[tuple[str, Step]]:
    step, kernel = refusal.step, refusal.kernel
    given = dict(step.arguments)
    array = given.get("var_name")
    sweep_name = "buffer_inames" if step.transform == "buffer_array" else "sweep_inames"
    swept = names_in(given.get(sweep_name, ()))
    users = _users(refusal, array)
    outer_name = next(
        (
            n
            for n in ("fetch_outer_inames", "precompute_outer_inames")
            if accepts(step.transform, n)
        ),
        None,
    )
    if outer_name is not None:
        for user in users:
            around = [i for i in path_inames(kernel.paths[user]) if i not in swept]
            for count in range(1, len(around) + 1):
                chosen = around[:count]
                deeper = with_arguments(step, **{outer_name: ", ".join(chosen)})
                yield f"inside of {quoted(chosen)}", deeper
    for user in users:
        if len(users) > 1:
            yield f"for '{user}' alone", with_arguments(step, within=f"id:{user}")
    for count in range(len(swept) - 1, 0, -1):
        for fewer in combinations(swept, count):
            chosen_names = like(given[sweep_name], fewer)
            what = f"with {quoted(fewer)} alone swept"
            yield what, with_arguments(step, **{sweep_name: chosen_names})
    if step.transform == "add_prefetch":
        options: dict[str, Any] = {n: given[n] for n in ("default_tag", "within") if n in given}
        buffer = call("buffer_array", array, given.get("sweep_inames", ()), **options)
        what = f"with a buffer, which holds what is written to '{array}' too"
        yield what, buffer
        yield what, without(buffer, "within")


def _users(refusal: Refusal, array: str | None) -> list[str]:
    """The statements that read what is to be copied, or use a rule."""
    kernel = refusal.kernel
    if array is not None:
        return [s.id for s in kernel.readers.get(array, ())]
    from loopkit._match import called_names

    rule = str(dict(refusal.step.arguments).get("subst_use", "")).split("(")[0]
    return [s.id for s in kernel.statements if rule in called_names(s.rhs)]


# }}}

# {{{ assertions


def by_assertions(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """What would have to hold of index arrays, where one assertion alone is not enough.

    One that is enough is named in the message already.
    """
    said: list[Step] = []
    now = refusal
    while now.is_open and len(said) < 4:
        settling = _settling(now.violations)
        if settling is None:
            return
        said.append(settling)
        found = trials.found(refusal.kernel, [*said, refusal.step])
        if not isinstance(found, Refusal):
            if len(said) > 1:
                yield Suggestion("if the data allows it", (*said, refusal.step))
            return
        if found.step != refusal.step:
            return
        now = found


def _settling(violations: tuple[Violation, ...]) -> Step | None:
    for violation in violations:
        for text in violation.settling:
            try:
                return read_call(text)
            except (ValueError, SyntaxError):
                continue
    return None


# }}}
