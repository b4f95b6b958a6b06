"""The program under proof: its text, its kernel, its launch, and the sets that all checks share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._algebra.polynomials import Monomial, minus, plus, polynomial, scaled, sum_of
from loopkit._algebra.terms import number
from loopkit._arrays import ArrayArg, TemporaryVariable, ValueArg
from loopkit._assertions.limits import limits_of
from loopkit._cached import cached_property, memoised
from loopkit._hidden import hidden
from loopkit._intervals import Interval, of_dtype
from loopkit._kernel import Kernel, Statement
from loopkit._program import Program
from loopkit._promotion import INT32, INT64, INTEGERS, DType
from loopkit._tags import GroupAxis, LocalAxis
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.tree import HARDWARE
from loopkit.codegen.c.types import WHOLE, in_registers
from loopkit.codegen.proof.form_ranges import FAR
from loopkit.codegen.proof.forms import Form, names_of, number_in, variable
from loopkit.codegen.proof.names import Names
from loopkit.codegen.proof.proof_conditions import Condition, conjuncts, names_in, split
from loopkit.codegen.proof.report import Place
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.spaces import Space, at_most, copy_of, equal, in_range
from loopkit.codegen.proof.text_tree import Leaf, Touch, TreeBuilder
from loopkit.codegen.proof.translate import KernelTranslator, TextTranslator
from loopkit.codegen.proof.typed_forms import limits
from loopkit.codegen.proof.value_kernel import KernelValues


def extents(kernel: Kernel) -> tuple[str, ...]:
    """Names that are extents of arrays by themselves: a call takes no number below zero for these.

    Of other extents it takes any: an array without elements is passed for one below zero.
    """
    found = (e for a in kernel.args if isinstance(a, ArrayArg) for e in a.shape or ())
    return tuple(dict.fromkeys(e.name for e in found if isinstance(e, prim.Variable)))


class Subject:
    """One program under proof, read back from its text.

    ``kernel`` is the prepared kernel (rules expanded, ``ilp`` copies made) with which the text is
    compared.
    """

    def __init__(self, kernel: Kernel, program: Program, function: c.Function) -> None:
        self.kernel = kernel
        self.program = program
        self.function = function
        self.names = Names(function)
        # Arrays without axes: in global memory, C writes them `x[0]`.
        held = [a for a in (*kernel.args, *kernel.temporaries) if not isinstance(a, ValueArg)]
        self.scalars = frozenset(a.name for a in held if a.shape == ())
        self.text = TextTranslator(self.names, self.scalars)
        values = KernelValues(kernel, self._types_in_kernel())
        self.meaning = KernelTranslator(kernel, self.names, values, self.range_of_name)
        self.sizes = tuple(
            p.name
            for p in function.parameters
            if not p.is_pointer and self.names.types[p.name] in WHOLE
        )
        self.space = Space(self._all_names())
        inames = {s.id: s.inames for s in kernel.statements}
        builder = TreeBuilder(
            self.space, self.names, self.text, lambda name: inames.get(name, frozenset())
        )
        builder.build(function.body, self.root)
        self.leaves = builder.leaves
        self.sites = builder.sites
        self.loops = builder.loops
        self._domains: dict[object, isl.Set] = {}

    def _types_in_kernel(self) -> dict[str, DType]:
        """The types of the kernel's names.

        Loop variables are integers without a width of their own: they have the type
        that the text gives them, which holds their values (:mod:`.widths`).
        """
        found: dict[str, DType] = {}
        kernel = self.kernel
        for name in (*kernel.all_inames, *_sets.names_of(kernel.assumptions.set)):
            found[name] = INT64 if self.names.types.get(name) == INT64 else INT32
        for data in (*kernel.args, *kernel.temporaries):
            if data.dtype is not None:
                found[data.name] = np.dtype(data.dtype)
            elif isinstance(data, ValueArg):
                found[data.name] = INT32
        return found

    @memoised
    def range_of_name(self, name: str) -> Interval:
        """Bounds of an iname, in all loops that it heads, or of a size."""
        domain = self.kernel.assumptions.set
        if name in self.kernel.all_inames:
            domain = domain & self.kernel.domain_around([name])
        return _sets.bounds(domain, prim.Variable(name), (-FAR, FAR))

    def _all_names(self) -> list[str]:
        names = dict.fromkeys(self.sizes)
        names.update(dict.fromkeys(_sets.names_of(self.kernel.assumptions.set)))
        names.update(dict.fromkeys(self.words))
        names.update(dict.fromkeys(self.kernel.all_inames))
        for name, place in self.names.places.items():
            is_value = place == "value" or name in self.scalars
            if is_value and name not in HARDWARE and self.names.types[name] in WHOLE:
                names[name] = None
        return list(names)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The hardware indices that may differ between threads, and those that the text uses."""
        extents = (*self.program.grid, *self.program.block)
        used = {w for w, extent in zip(HARDWARE, extents, strict=True) if extent != 1}
        for node in c.statements(self.function.body):
            used = used.union(*map(self.names.used, c.expressions(node)))
        for _, tag in self.kernel.tags:
            if isinstance(tag, (GroupAxis, LocalAxis)):
                used.add(self.word_of(tag))
        return tuple(w for w in HARDWARE if w in used)

    @property
    def block_words(self) -> tuple[str, ...]:
        """The hardware indices that identify a block."""
        return tuple(w for w in self.words if w in CUDA.block_index)

    @property
    def thread_words(self) -> tuple[str, ...]:
        """The hardware indices that identify a thread in its block."""
        return tuple(w for w in self.words if w in CUDA.thread_index)

    @cached_property
    def thread_number(self) -> Form:
        """The linear index of a thread in its block, by which warps are cut."""
        total, stride = number(0), 1
        for word, extent in zip(CUDA.thread_index, self.program.block, strict=True):
            if word in self.thread_words:
                total = plus(total, scaled(variable(word), stride))
            stride *= extent
        return total

    @cached_property
    def shared_names(self) -> frozenset[str]:
        """Names with one value in the whole launch."""
        sizes = _sets.names_of(self.kernel.assumptions.set)
        return frozenset((*self.sizes, *sizes)) - frozenset(self.kernel.all_inames)

    @cached_property
    def data_names(self) -> frozenset[str]:
        """Integer variables in memory: names whose value only data decides."""
        return frozenset(n for n in self.space.names if n in self.scalars)

    def pair_space(self, common: tuple[str, ...], copies: int = 2) -> Space:
        """Names of several instances: sizes and ``common`` once, all others once each."""
        once = self.shared_names | frozenset(common)
        names = list(self.space.names)
        for copy in range(1, copies):
            names += [copy_of(n, copy) for n in self.space.names if n not in once]
        return Space(names)

    @cached_property
    def temporaries(self) -> frozenset[str]:
        """What the text declares, and the kernel's temporaries in global memory."""
        declared = frozenset(self.names.dimensions)
        return declared | (self.kernel.temporary_by_name.keys() & self.names.places.keys())

    @memoised
    def cell_space(self, rank: int) -> Space:
        """All names, those of a cell's indices, and one for an earlier iteration."""
        cells = [hidden("cell", axis) for axis in range(rank)]
        return Space([*self.space.names, *cells, hidden("earlier")])

    def extent(self, word: str) -> Form:
        """How many values a hardware index has."""
        extents = (*self.program.grid, *self.program.block)
        return self.meaning.form(extents[HARDWARE.index(word)])

    def launched(self, word: str) -> Condition:
        """``0 <= word < extent``."""
        return in_range(variable(word), self.extent(word))

    @cached_property
    def root(self) -> Scope:
        """What holds for every thread of every launch that the checks let through."""
        ranges: dict[str, Interval] = {}
        admitted = self.admitted
        for size in self.sizes:
            own = of_dtype(in_registers(self.names.types[size]))
            ranges[size] = _sets.bounds(admitted, prim.Variable(size), own)
        for name in self.data_names:
            ranges[name] = self.bounds_of_data[name]
        scope = Scope(self.space, None, None, (), (), ranges, admitted)
        for word in self.words:
            ranges[word] = (0, scope.range_of(self.extent(word))[1] - 1)
        launched = tuple(part for word in self.words for part in conjuncts(self.launched(word)))
        return Scope(self.space, None, None, launched, (), ranges, admitted)

    @cached_property
    def admitted(self) -> isl.Set:
        """The sizes that the assumptions and the checks of a call admit; what data types hold."""
        return (self.space.aligned(self.kernel.assumptions.set) & self.checked).coalesce()

    @cached_property
    def bounds_of_data(self) -> Mapping[str, Interval]:
        """Bounds of integer variables in memory: the lines give them what the statements do."""
        known = limits_of(self.kernel)
        return {
            name: known.narrow(prim.Variable(name)) or limits(self.names.types[name])
            for name in sorted(self.data_names)
        }

    @cached_property
    def checked(self) -> isl.Set:
        """The sizes that a call lets through, and what the types of data hold."""
        wanted = [self.meaning.condition(check.condition) for check in self.program.checks]
        for name in sorted(self.data_names):
            own, (low, high) = variable(name), self.bounds_of_data[name]
            wanted += at_most(number(low), own), at_most(own, number(high))
        for argument in self.kernel.args:
            if isinstance(argument, ValueArg) and argument.name in self.sizes:
                dtype = np.dtype(argument.dtype or np.int32)
                if dtype not in INTEGERS:
                    continue  # the text has another type, which is found
                own, (low, high) = variable(argument.name), of_dtype(dtype)
                wanted += at_most(number(low), own), at_most(own, number(high))
        wanted += (at_most(number(0), variable(n)) for n in extents(self.kernel))
        known = dict.fromkeys(split(*wanted)[0])
        here = self.space.position.keys()
        return self.space.all_of(part for part in known if names_in(part) <= here)

    @cached_property
    def coordinates(self) -> Mapping[str, tuple[str, int]]:
        """The word and the shift of each parallel iname: ``iname = word + shift``.

        From the text where it has the iname, else from the kernel's tags, for
        inames that only say how often a statement runs.
        """
        found: dict[str, tuple[str, int]] = {}
        for node in self.function.body:
            if isinstance(node, c.Let):
                form = self.text.form(node.value, self.root)
                for word in names_of(form) & set(self.words):
                    shift = number_in(minus(form, variable(word)))
                    if shift is not None:
                        found[node.name] = (word, shift)
        for iname, tag in self.kernel.tags:
            if iname not in found and isinstance(tag, (GroupAxis, LocalAxis)):
                word = self.word_of(tag)
                found[iname] = (word, self.first_value(iname) or 0)
        return found

    def first_value(self, iname: str) -> int | None:
        """The least value that an iname has in any loop around; None where there is none."""
        domain = self.kernel.domain_around([iname]) & self.kernel.assumptions.set
        if domain.is_empty():
            return None
        return _sets.minimum_value(domain, prim.Variable(iname))

    @staticmethod
    def word_of(tag: GroupAxis | LocalAxis) -> str:
        """CUDA's word for an axis."""
        return HARDWARE[tag.axis + (3 if isinstance(tag, LocalAxis) else 0)]

    def coordinate_conditions(self, inames: frozenset[str]) -> list[Condition]:
        """``iname = word + shift`` for the parallel inames among ``inames``."""
        result = []
        for iname in sorted(inames & self.coordinates.keys()):
            word, shift = self.coordinates[iname]
            result.append(equal(variable(iname), plus(variable(word), number(shift))))
        return result

    def words_of(self, inames: frozenset[str]) -> frozenset[str]:
        """The hardware indices that the inames fix."""
        return frozenset(self.coordinates[i][0] for i in inames & self.coordinates.keys())

    def domain(self, statement: Statement) -> tuple[isl.Set, frozenset[Condition]]:
        """The instances that the kernel has, and the conditions on data beyond that."""
        parts, unknown = split(*(self.meaning.condition(p) for p in statement.predicates))
        # The text has no flag of a loop that never runs.
        known = tuple(p for p in parts if names_in(p) <= self.space.position.keys())
        unknown = (*unknown, *(p for p in parts if p not in known))
        key = (statement.inames, known)
        if key not in self._domains:
            domain = self.space.aligned(self.kernel.statement_domain(statement))
            self._domains[key] = domain & self.admitted & self.space.all_of(known)
        return self._domains[key], frozenset(unknown)

    def instances(self, statement: Statement) -> isl.Set:
        """The instances of :meth:`domain`, on the blocks and threads that they are for."""
        due = self.coordinate_conditions(statement.inames)
        return self.domain(statement)[0] & self.space.all_of(due)

    def place_of(self, array: str) -> str:
        """``global``, ``shared`` or ``private``."""
        return self.names.places.get(array, "global")

    def held(self, array: str) -> ArrayArg | TemporaryVariable | None:
        """The kernel's array of that name."""
        try:
            return self.kernel.array(array)
        except Exception:
            return None

    def coefficients(self, form: Form) -> dict[Monomial, Form]:
        """A form as a polynomial in sizes whose coefficients are affine."""
        groups: dict[Monomial, dict[Monomial, int]] = {}
        for monomial, value in polynomial(form).items():
            inner = [a for a in monomial if not self._is_size(a)]
            outer = [a for a in monomial if self._is_size(a)]
            if not inner and len(outer) == 1:
                inner, outer = outer, []
            groups.setdefault(tuple(outer), {})[tuple(inner)] = value
        return {outer: sum_of(terms) for outer, terms in groups.items()}

    def _is_size(self, atom: Form) -> bool:
        names = names_of(atom)
        return bool(names) and names <= self.shared_names

    @property
    def touches(self) -> Iterator[Touch]:
        """All accesses, in the order of the text."""
        return (touch for leaf in self.leaves for touch in leaf.touches)

    def statement_of(self, leaf: Leaf) -> Statement | None:
        """The statement that a line executes."""
        return self.kernel.statement_by_id.get(leaf.statement or "")

    def inames_of(self, leaf: Leaf) -> list[str]:
        """The inames that identify the executions of a line."""
        statement = self.statement_of(leaf)
        if statement is None:
            return [loop.name for loop in leaf.scope.loops]
        return [i for i in self.kernel.all_inames if i in statement.inames]

    def place(self, leaf: Leaf, point: Mapping[str, int], copy: int = 0) -> Place:
        """The execution of a leaf at a point of a set."""

        def value(name: str) -> int:
            return point.get(copy_of(name, copy), point.get(name, 0))

        values = {i: value(i) for i in self.inames_of(leaf)} if point else {}
        block = tuple(map(value, CUDA.block_index)) if point and self.block_words else None
        thread = tuple(map(value, CUDA.thread_index)) if point and self.thread_words else None
        return Place(leaf.line, leaf.statement, values, block, thread)

    def with_larger_sizes(self, where: isl.Set) -> Iterator[isl.Set]:
        """Parts of a set in which all sizes are ever larger, as far as there are any."""
        for least in (1, 2, 5, 17):
            large = [at_most(number(least), variable(n)) for n in self.sizes]
            there = where & self.space.all_of(large)
            if not there.is_empty():
                yield there

    def sizes_at(self, point: Mapping[str, int]) -> dict[str, int]:
        """The sizes of a point."""
        return {n: point[n] for n in self.sizes if n in point}
