"""The methods of :class:`~loopkit.Kernel`, in one table.

The kernel itself holds only data, in a lower layer than the functions that work on it.  Each
method is the free function of the same name: ``knl.split_iname("i", 4)`` is
``split_iname(knl, "i", 4)``.  Type checkers and editors see the table as a base class, with the
signatures of the functions.
"""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from loopkit import _execute, _inspect, _plot, _slabs, transforms
from loopkit._cached import cached_property
from loopkit._called import fitting
from loopkit._compat import other_names as _compat
from loopkit._compat.gone import not_there
from loopkit._errors import LoopkitError, Witness, WitnessError
from loopkit._history import History, Step
from loopkit._kernel import Kernel
from loopkit._registry import transforms as registered
from loopkit._steps import ErrorMethods, HistoryMethods, StepMethods, WitnessMethods


class Methods:
    """The methods of a kernel beyond access to its data."""

    __str__ = __repr__ = _inspect.show
    _repr_mimebundle_ = _inspect.mimebundle
    program = _inspect.program
    cuda = _inspect.cuda
    ptx = _inspect.ptx
    cubin = _inspect.cubin
    sass = _inspect.sass
    resources = _inspect.resources
    launch_config = _inspect.launch_config
    launches = _inspect.launches
    prove = _inspect.prove
    costs = _inspect.costs
    view = _inspect.view
    script = _inspect.script

    plot_access = _plot.plot_access
    plot_banks = _plot.plot_banks
    plot_domain = _plot.plot_domain
    plot_footprint = _plot.plot_footprint
    plot_loop = _plot.plot_loop
    plot_roofline = _plot.plot_roofline

    _default_executor = cached_property(_execute.executor)
    _settled = cached_property(_slabs.peel_slabs)
    __call__ = _execute.call
    executor = _execute.executor
    bind = _execute.bind

    set_loop_priority = _compat.set_loop_priority
    set_temporary_scope = _compat.set_temporary_scope

    if TYPE_CHECKING:
        add_and_infer_dtypes = transforms.add_and_infer_dtypes
        add_dependency = transforms.add_dependency
        add_dtypes = transforms.add_dtypes
        add_barrier = transforms.add_barrier
        add_inames_for_unused_hw_axes = transforms.add_inames_for_unused_hw_axes
        add_inames_to_insn = transforms.add_inames_to_insn
        add_padding = transforms.add_padding
        add_prefetch = transforms.add_prefetch
        affine_map_inames = transforms.affine_map_inames
        alias_temporaries = transforms.alias_temporaries
        assignment_to_subst = transforms.assignment_to_subst
        assume = transforms.assume
        assume_disjoint = transforms.assume_disjoint
        assume_increasing = transforms.assume_increasing
        assume_injective = transforms.assume_injective
        assume_within = transforms.assume_within
        buffer_array = transforms.buffer_array
        chunk_iname = transforms.chunk_iname
        collect_common_factors_on_increment = transforms.collect_common_factors_on_increment
        concatenate_arrays = transforms.concatenate_arrays
        duplicate_inames = transforms.duplicate_inames
        expand_subst = transforms.expand_subst
        extract_subst = transforms.extract_subst
        fission = transforms.fission
        fix_parameters = transforms.fix_parameters
        fuse_loops = transforms.fuse_loops
        join_inames = transforms.join_inames
        make_reduction_inames_unique = transforms.make_reduction_inames_unique
        map_domain = transforms.map_domain
        pad_temporary = transforms.pad_temporary
        peel_iname = transforms.peel_iname
        precompute = transforms.precompute
        prioritize_loops = transforms.prioritize_loops
        privatize_temporaries_with_inames = transforms.privatize_temporaries_with_inames
        reduction_arg_to_subst_rule = transforms.reduction_arg_to_subst_rule
        realize_reduction = transforms.realize_reduction
        remove_barrier = transforms.remove_barrier
        remove_inames_from_insn = transforms.remove_inames_from_insn
        remove_instructions = transforms.remove_instructions
        remove_unused_arguments = transforms.remove_unused_arguments
        remove_unused_inames = transforms.remove_unused_inames
        rename_argument = transforms.rename_argument
        rename_iname = transforms.rename_iname
        rename_inames = transforms.rename_inames
        rename_inames_in_batch = transforms.rename_inames_in_batch
        replace_instruction_ids = transforms.replace_instruction_ids
        save_and_reload_temporaries = transforms.save_and_reload_temporaries
        set_argument_order = transforms.set_argument_order
        set_temporary_address_space = transforms.set_temporary_address_space
        set_array_axis_names = transforms.set_array_axis_names
        split_array_dim = transforms.split_array_dim
        split_iname = transforms.split_iname
        swizzle_array = transforms.swizzle_array
        split_reduction_inward = transforms.split_reduction_inward
        split_reduction_outward = transforms.split_reduction_outward
        tag_array_axes = transforms.tag_array_axes
        tag_inames = transforms.tag_inames
        tag_instructions = transforms.tag_instructions
        inline_callable_kernel = transforms.inline_callable_kernel
        unprivatize_temporaries_with_inames = transforms.unprivatize_temporaries_with_inames
        unroll = transforms.unroll
        untag_inames = transforms.untag_inames


def _not_there(kernel: Kernel, name: str) -> Any:
    raise not_there("a kernel", name, (n for n in dir(Kernel) if n[0] != "_"))


class _Later:
    """A transform as a method, imported when it is first looked up."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, kernel: Kernel | None, owner: type) -> Any:
        function = getattr(transforms, self.name)
        setattr(Kernel, self.name, function)
        return function if kernel is None else MethodType(function, kernel)


class _Empty: ...


_OF_ANY_CLASS = frozenset(vars(_Empty))


def _attach() -> None:
    for kind, methods in (
        (Kernel, Methods),
        (Step, StepMethods),
        (History, HistoryMethods),
        (LoopkitError, ErrorMethods),
        (Witness, WitnessMethods),
    ):
        for one in reversed(methods.__mro__[:-1]):
            for name, method in vars(one).items():
                if name not in _OF_ANY_CLASS:
                    is_asked_for = isinstance(method, FunctionType) and not name.startswith("_")
                    setattr(kind, name, fitting(method) if is_asked_for else method)
    setattr(Kernel, "__getattr__", _not_there)  # noqa: B010 - hidden from type checkers
    for name in registered:
        setattr(Kernel, name, _Later(name))
    for owner in (WitnessError, Witness):
        setattr(owner, "picture", _plot.picture)  # noqa: B010 - mypy


_attach()
