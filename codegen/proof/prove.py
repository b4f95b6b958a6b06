"""The proof of one program."""

from __future__ import annotations

import time
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._arrays import Argument, ArrayArg, Strided, last_fastest
from loopkit._budget import PROGRAM_QUESTION, PROGRAM_TEXT, SpentError, at_most, in_turn
from loopkit._combined import with_combinations
from loopkit._kernel import Kernel
from loopkit._launches import is_one_launch
from loopkit._make.segments import with_segments
from loopkit._make.type_inference import infer_types
from loopkit._places import decide_address_spaces, drop_own_axes
from loopkit._program import Program, ValueParam
from loopkit._rules import expand_rules
from loopkit._slabs import settled
from loopkit._tree import build, flatten
from loopkit.codegen.c.errors import DeepError, ReadError
from loopkit.codegen.c.nesting_limits import check_depth
from loopkit.codegen.c.printer import printed
from loopkit.codegen.c.reader import Origin, by_comment, read_function
from loopkit.codegen.c.spec import needs_of
from loopkit.codegen.c.tree import Function
from loopkit.codegen.c.types import TYPES
from loopkit.codegen.lower import program_of
from loopkit.codegen.own_functions import all_texts, called_in, declared_in, texts_of
from loopkit.codegen.proof.access_bounds import BoundsCheck
from loopkit.codegen.proof.cell_check import CellCheck
from loopkit.codegen.proof.combination_check import CombinationCheck
from loopkit.codegen.proof.conflict_check import ConflictCheck
from loopkit.codegen.proof.copies import with_private_copies
from loopkit.codegen.proof.data import DataFacts
from loopkit.codegen.proof.dealing import dealt_out
from loopkit.codegen.proof.declared import check_declarations, check_types
from loopkit.codegen.proof.divergence import DivergenceCheck
from loopkit.codegen.proof.exit_flags import with_flags
from loopkit.codegen.proof.extra_instances import ExtraInstancesCheck
from loopkit.codegen.proof.helpers import definitions, without_own
from loopkit.codegen.proof.initialized import InitializedCheck
from loopkit.codegen.proof.instance_proof import InstanceCheck
from loopkit.codegen.proof.memory_layout import check_layout
from loopkit.codegen.proof.order import check_coordinates, check_order
from loopkit.codegen.proof.overflow import OverflowCheck
from loopkit.codegen.proof.overlaid import check_storage
from loopkit.codegen.proof.recorder import Recorder
from loopkit.codegen.proof.report import Proof
from loopkit.codegen.proof.sequence import SequenceCheck
from loopkit.codegen.proof.signature import SignatureCheck
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.tickets import with_tickets
from loopkit.codegen.proof.width_check import WidthCheck


def prove(
    kernel: Kernel,
    strided: frozenset[str] = frozenset(),
    *,
    text: bool = False,
    operations: int = PROGRAM_QUESTION,
) -> Proof:
    """Prove that a kernel's CUDA C does what the kernel says.

    Parameters
    ----------
    kernel
        The kernel; its source is generated if it was not.
    strided
        Arrays whose strides are parameters, as in ``kernel.program``.
    text
        Read the text back, and prove that.  Else the proof is about the tree that the text
        is printed from.
    operations
        How much isl may spend on one question before the answer is 'undecided'.

    The proof takes the C, the kernel's domains, tree and accesses, and the launch; it
    uses nothing of what generated the C.  It covers all sizes that the assumptions and the
    checks of a call admit.
    """
    return prove_program(kernel, program_of(kernel, strided), text=text, operations=operations)


def prove_source(kernel: Kernel, source: str, *, operations: int = PROGRAM_QUESTION) -> Proof:
    """The same for another text in place of the one that was generated."""
    program = program_of(kernel)
    if source != program.source:
        program = replace(program, source=source, lines=())
    return prove_program(kernel, program, operations=operations)


@in_turn
def prove_program(
    kernel: Kernel, program: Program, *, text: bool = False, operations: int = PROGRAM_QUESTION
) -> Proof:
    """The same for a program; ``lines`` may be empty, then comments name the statements.

    Where its source is not what its tree prints, the source is read.
    """
    start = time.perf_counter()
    kernel = settled(kernel)
    recorder = Recorder(operations)
    if not program.launches and all(
        (kernel.statement_domain(s) & kernel.assumptions.set).is_empty() for s in kernel.statements
    ):
        kernel = kernel.with_(tree=build(flatten(kernel.tree)))  # nothing waits for anything
    if is_one_launch(kernel) and not program.launches:
        _check(kernel, program, recorder, text=text)
    else:
        for turn in SequenceCheck(kernel, program, recorder).turns(text=text):
            own = Recorder(operations)
            _check(turn.kernel, turn.program, own, text=text)
            recorder.include(own, turn.shift)
    return Proof(
        kernel=program.name,
        findings=recorder.findings,
        undecided=recorder.undecided,
        trusted=recorder.trusted,
        seconds=time.perf_counter() - start,
        source=program.source,
    )


def _check(source: Kernel, program: Program, recorder: Recorder, *, text: bool) -> None:
    kernel = _prepared(source, program, recorder)
    try:
        function = _function(kernel, program, text=text)
        needs, above = needs_of(function), definitions(_without_own(source, function))
        for piece, line in needs.items():
            if piece not in above:
                recorder.wrong("text", f"nothing above defines '{piece}'", line)
        with at_most(PROGRAM_TEXT):
            function = with_tickets(kernel, program, function)
            subject = Subject(kernel, program, with_flags(kernel, function))
    except DeepError as error:
        recorder.open("text", error.what, line=error.line)
        return
    except ReadError as error:
        recorder.wrong("text", error.what, error.line)
        return
    except SpentError:
        recorder.open("text", f"isl needs more than {PROGRAM_TEXT} operations to read it")
        return
    SignatureCheck(subject, recorder).run()
    if {p.name for p in function.parameters} != {p.name for p in program.params}:
        return  # that is said; nothing is known of what has other names or is not there
    check_declarations(subject, recorder)
    sizes = [p for p in function.parameters if p.name in kernel.sizes]
    if any(p.is_pointer or TYPES[p.ctype].kind not in "iub" for p in sizes):
        return  # so is that; sets know whole numbers alone
    check_layout(subject, recorder)
    check_storage(subject, source, recorder)
    cells = CellCheck(subject, recorder)
    instances = InstanceCheck(subject, recorder, cells.values)
    instances.run()
    check_coordinates(subject, recorder)
    check_order(subject, recorder)
    cells.run()
    data = DataFacts(subject)
    BoundsCheck(subject, recorder, data, instances).run()
    divergence = DivergenceCheck(subject, recorder)
    initialized = InitializedCheck(subject, recorder, data, instances, divergence.varying)
    ExtraInstancesCheck(subject, recorder, instances.surplus, initialized).run()
    initialized.run()
    divergence.run()
    CombinationCheck(subject, recorder, cells.is_zero).run()
    ConflictCheck(subject, recorder, data, initialized).run()
    widths = WidthCheck(subject, recorder)
    widths.run()
    OverflowCheck(subject, recorder, widths).run()


def _without_own(kernel: Kernel, function: Function) -> tuple[str, ...]:
    """The lines above a function but for the user's definitions, all that it calls among them."""
    if not kernel.functions:
        return function.above
    for text in texts_of(called_in(kernel)):
        if without_own(function.above, [text]) == function.above:
            raise ReadError(1, f"nothing above defines '{text[0].strip()}'")
    if {*function.own} != {*declared_in(kernel)}:
        raise ReadError(1, "the functions that it may call are not those of the kernel")
    return without_own(function.above, all_texts(kernel.functions))


def _function(kernel: Kernel, program: Program, *, text: bool) -> Function:
    """The tree that the source is printed from, or else what it reads as."""
    tree = program.tree
    if text or tree is None or printed(tree)[1] != program.source:
        return read_function(program.source, _origin(kernel, program), declared_in(kernel))
    check_depth(tree)
    return tree


def _origin(kernel: Kernel, program: Program) -> Origin:
    """Statements of lines: from the program's own map, else from comments."""
    comment = by_comment(frozenset(kernel.statement_by_id))
    return (lambda line, _: program.lines[line - 1].statement) if program.lines else comment


def _prepared(source: Kernel, program: Program, recorder: Recorder) -> Kernel:
    """The kernel with rules expanded, types and copies made, and strides that are parameters."""
    kernel = infer_types(dealt_out(expand_rules(source), recorder))
    check_types(source, kernel, recorder)
    kernel = with_private_copies(decide_address_spaces(kernel))
    kernel = with_segments(drop_own_axes(kernel))
    kernel = with_combinations(kernel)
    strides: dict[str, dict[int, str]] = {}
    for parameter in program.params:
        if isinstance(parameter, ValueParam) and parameter.role == "stride":
            # One of no array, or of no axis, is found where the parameters are looked at.
            strides.setdefault(parameter.array or "", {})[parameter.axis or 0] = parameter.name
    args: list[Argument] = []
    for argument in kernel.args:
        own = strides.get(argument.name, {})
        rank = len(argument.shape or ()) if isinstance(argument, ArrayArg) else 0
        if own and isinstance(argument, ArrayArg) and own.keys() <= {*range(rank)}:
            tags = list(argument.dim_tags or last_fastest(rank))
            for axis, name in own.items():
                tags[axis] = Strided(prim.Variable(name))
            args.append(replace(argument, dim_tags=tuple(tags)))
        else:
            args.append(argument)
    return kernel.with_(args=tuple(args))
