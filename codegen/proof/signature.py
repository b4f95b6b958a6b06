"""Proof that calls pass what the text takes, and run only for sizes that the proof covers."""

from __future__ import annotations

from math import prod

import numpy as np

from loopkit._arrays import AddressSpace, ArrayArg, ValueArg, strides_of
from loopkit._errors import counted
from loopkit._nodes import Expression
from loopkit._program import ArrayParam, ValueParam
from loopkit._promotion import DType, dtype_name
from loopkit.codegen.c.tree import Parameter
from loopkit.codegen.c.types import TYPES
from loopkit.codegen.proof.recorder import Check, Recorder
from loopkit.codegen.proof.shown import shown
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.tickets import scanned_word

_FAST = "--use_fast_math"


class SignatureCheck(Check):
    """Compares the text's signature with the launched program, and the program with the kernel."""

    def __init__(self, subject: Subject, recorder: Recorder) -> None:
        super().__init__(subject, recorder)
        self.line = subject.function.line

    def run(self) -> None:
        """Check the head, the arguments, and what a call tests."""
        self.head()
        self.order()
        self.arguments()
        with self.recorder.question("call", "whether a call tests what is assumed"):
            self.assumptions()

    def wrong(self, what: str, array: str | None = None) -> None:
        """A finding; one for each array."""
        self.recorder.wrong("call", what, self.line, array=array)

    def head(self) -> None:
        """The name that is looked up, the threads that are launched, and how it is compiled."""
        function, program = self.subject.function, self.subject.program
        if function.name != program.name:
            self.wrong(f"'{program.name}' is launched, but the text calls it '{function.name}'")
        threads = prod(program.block)
        if threads > function.threads:
            self.wrong(
                f"{threads} threads of a block are launched, "
                f"but the text promises {function.threads} at most"
            )
        for option in program.options:
            if option != _FAST or not self.subject.kernel.options.fast_math:
                self.wrong(f"it is compiled with '{option}', which nobody asked for")

    def order(self) -> None:
        """Parameters of the text, one by one, are what a launch passes."""
        taken = self.subject.function.parameters
        passed = self.subject.program.params
        if len(taken) != len(passed):
            self.wrong(
                f"a launch passes {counted(len(passed), 'value')}, but the text takes {len(taken)}"
            )
            return
        written = {t.array for t in self.subject.touches if t.is_write}
        self.exchanged(written & {t.array for t in self.subject.touches if not t.is_write})
        for number, (own, given) in enumerate(zip(taken, passed, strict=True), 1):
            if own.name != given.name:
                self.wrong(
                    f"parameter {number} is '{own.name}', but a launch passes '{given.name}' there"
                )
                return
            self.parameter(own, given, is_written=own.name in written)

    def exchanged(self, both: set[str]) -> None:
        """No array is promised to one pointer that other threads may write behind a barrier."""
        if not any(leaf.barrier for leaf in self.subject.leaves):
            return
        for own in self.subject.function.parameters:
            if own.is_restrict and own.name in both:
                self.wrong(
                    f"'{own.name}' is declared __restrict__, but threads read and write it "
                    "around barriers: the compiler may keep what a thread has read before"
                )

    def parameter(
        self, own: Parameter, given: ValueParam | ArrayParam, *, is_written: bool
    ) -> None:
        """One parameter of the text and what is passed for it."""
        is_array = isinstance(given, ArrayParam)
        if own.is_pointer != is_array:
            kind = "an array" if is_array else "a value"
            self.wrong(f"'{own.name}' is passed as {kind}, but the text takes another")
        elif TYPES[own.ctype] != np.dtype(given.dtype):
            self.wrong(
                f"'{own.name}' is passed as {dtype_name(np.dtype(given.dtype))}, "
                f"but the text takes {own.ctype}"
            )
        if is_written and own.is_const:
            self.wrong(f"the text writes '{own.name}', which it declares constant")
        if is_written and isinstance(given, ArrayParam) and not given.is_written:
            others = " and may overlap others" if own.is_restrict else ""
            self.wrong(f"the text writes '{own.name}', which a call takes for unchanged{others}")

    def arguments(self) -> None:
        """What a call passes are the kernel's arguments, as large and laid out as the kernel's."""
        kernel, program = self.subject.kernel, self.subject.program
        names = tuple(a.name for a in kernel.passed)
        if program.arguments and program.arguments != names:
            self.wrong(
                f"arguments by position are taken for {', '.join(program.arguments)}, "
                f"but the kernel has {', '.join(names)}"
            )
        passed = {p.name: p for p in program.params}
        for argument in kernel.passed:
            given = passed.get(argument.name)
            if given is None:
                if any(argument.name in s.names for s in kernel.statements):
                    self.wrong(f"the argument '{argument.name}' is not passed")
            elif isinstance(argument, ValueArg):
                if not isinstance(given, ValueParam) or given.role != "argument":
                    self.wrong(f"the value '{argument.name}' is passed as something else")
                    continue
                self.same_type(argument.name, argument.dtype or np.dtype(np.int32), given.dtype)
            elif not isinstance(given, ArrayParam) or given.role != "argument":
                self.wrong(f"the array '{argument.name}' is passed as something else")
            else:
                self.array(argument, given)
        for name, given in passed.items():
            self.other(name, given)

    def same_type(self, name: str, due: DType, given: DType) -> None:
        """An argument's type."""
        if np.dtype(due) != np.dtype(given):
            self.wrong(f"'{name}' is {dtype_name(due)}, but is passed as {dtype_name(given)}")

    def array(self, argument: ArrayArg, given: ArrayParam) -> None:
        """An array's type, extents, strides and use."""
        kernel, name = self.subject.kernel, argument.name
        if argument.dtype is not None:
            self.same_type(name, argument.dtype, given.dtype)
        self.same_sizes(name, "extents", argument.shape or (), given.shape)
        self.same_sizes(name, "strides", strides_of(argument), given.strides)
        if name in kernel.writers and not given.is_written:
            self.wrong(f"the kernel writes '{name}', which a call takes for unchanged")
        if name not in kernel.writers and given.is_written:
            self.wrong(f"the kernel leaves '{name}' as it is, but a call takes it for a result")
        needed = name in kernel.readers if argument.is_input is None else argument.is_input
        if needed and not given.is_read:
            self.wrong(f"the kernel reads '{name}', which a call need not pass")
        if given.is_read and not needed:
            self.wrong(f"the kernel does not read '{name}', which a call must pass")

    def same_sizes(
        self, name: str, what: str, due: tuple[Expression, ...], given: tuple[Expression, ...]
    ) -> None:
        """Extents or strides as polynomials of sizes."""
        meaning = self.subject.meaning
        one, two = ([meaning.form(e) for e in side] for side in (due, given))
        if one != two:
            self.wrong(
                f"'{name}' has the {what} ({', '.join(map(shown, one))}), "
                f"but a call takes it to have ({', '.join(map(shown, two))})"
            )

    def other(self, name: str, given: ValueParam | ArrayParam) -> None:
        """What is passed beside the arguments: strides, and memory for temporaries."""
        kernel = self.subject.kernel
        if given.role == "argument":
            if name not in {a.name for a in kernel.passed}:
                self.wrong(f"a call passes '{name}', which is no argument of the kernel")
        elif isinstance(given, ValueParam):
            held = kernel.arg_by_name.get(given.array or "")
            if not isinstance(held, ArrayArg) or given.axis not in range(len(held.shape or ())):
                self.wrong(f"'{name}' is passed as a stride of no axis")
        elif name not in kernel.temporary_by_name and scanned_word(kernel) is not None:
            # Of the state of tiles, those who look back say what it must be.
            if not given.is_state or name in kernel.arg_by_name:
                self.wrong(f"'{name}' is passed as something else than the state of tiles")
        else:
            temporary = kernel.temporary_by_name.get(name)
            spaces = (AddressSpace.GLOBAL, AddressSpace.AUTO)
            if temporary is None or temporary.address_space not in spaces:
                self.wrong(f"'{name}' is passed as memory for a temporary, which it is not")

    def assumptions(self) -> None:
        """Sizes that a call lets through are those that the kernel is made for."""
        subject = self.subject
        beyond = subject.checked - subject.space.aligned(subject.kernel.assumptions.set)
        if beyond.is_empty():
            return
        sizes = subject.sizes_at(self.point(beyond))
        what = "a call lets sizes through that the assumptions exclude"
        self.recorder.wrong("call", what, self.line, sizes=sizes)
