"""Proof that statements are in the loops, and in the order, that the kernel's loop tree gives."""

from __future__ import annotations

from loopkit._errors import counted
from loopkit._tags import GroupAxis, LocalAxis
from loopkit._tree import common_prefix
from loopkit.codegen.c.tree import For, Let
from loopkit.codegen.proof.recorder import Recorder
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Leaf

Key = tuple[str, int]


def check_order(subject: Subject, recorder: Recorder) -> None:
    """Compare the text's loops and their contents with the loop tree.

    Loops that run once may be printed as constants.  Where a statement stands on
    several lines, which loopkit does not print, only the order of first lines is
    compared, and that of the others stays open.
    """
    paths = subject.kernel.paths
    lines: dict[str, Leaf] = {}
    for leaf in subject.leaves:
        if leaf.statement is not None and lines.setdefault(leaf.statement, leaf) is not leaf:
            what = f"whether '{leaf.statement}', which is on several lines, keeps its place"
            recorder.open("order", what, [lines[leaf.statement], leaf])
    wanted = [s.id for s in subject.kernel.statements if s.id in lines]
    printed = list(lines)
    for expected, found in zip(wanted, printed, strict=True):
        if expected != found:
            what = f"expected '{expected}', but found '{found}'"
            recorder.wrong("order", what, lines[found].line, found)
            return
    before: tuple[str, tuple[Key, ...]] | None = None
    for statement in wanted:
        leaf = lines[statement]
        path = paths[statement]
        inames = {iname for iname, _ in path}
        own = tuple(_loops(leaf, inames))
        if [name for name, _ in own] != [iname for iname, _ in path]:
            what = f"'{statement}' is in the loops {_names(own)} instead of {_names(path)}"
            recorder.wrong("order", what, leaf.line, statement)
        elif before is not None:
            shared = len(common_prefix((own, before[1])))
            due = len(common_prefix((path, paths[before[0]])))
            if shared != due:
                what = (
                    f"'{statement}' shares {counted(shared, 'loop')} with '{before[0]}' "
                    f"instead of {due}"
                )
                recorder.wrong("order", what, leaf.line, statement)
        before = (statement, own)


def check_coordinates(subject: Subject, recorder: Recorder) -> None:
    """Check that parallel inames are the hardware indices that their tags name.

    Private data pass between statements through inames of one axis: equal hardware indices must
    mean the same thread, so each iname is shifted by its least value.
    """
    kernel = subject.kernel
    for node in subject.function.body:
        tag = kernel.iname_tags.get(node.name) if isinstance(node, Let) else None
        if not isinstance(node, Let) or not isinstance(tag, (GroupAxis, LocalAxis)):
            continue
        word, shift = subject.coordinates.get(node.name, ("", 0))
        if word != subject.word_of(tag):
            what = (
                f"'{node.name}' is tagged {tag}, but the text takes it from {word or 'elsewhere'}"
            )
            recorder.wrong("instances", what, node.line)
            continue
        if shift:
            least = subject.first_value(node.name)
            if least is not None and least != shift:
                what = f"'{node.name}' begins at {least}, but the text shifts it by {shift}"
                recorder.wrong("instances", what, node.line)


def _loops(leaf: Leaf, inames: set[str]) -> list[Key]:
    """The loops and constants around a line that are sequential inames, outermost first."""
    found = []
    for scope in leaf.scope.chain():
        node = scope.node
        if isinstance(node, (For, Let)) and node.name in inames:
            found.append((node.name, id(node)))
    return found[::-1]


def _names(path: tuple[Key, ...]) -> str:
    return "(" + ", ".join(name for name, _ in path) + ")"
