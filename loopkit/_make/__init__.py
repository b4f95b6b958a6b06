"""Construction of kernels: from domains and instruction text to a kernel with its loop tree."""

from loopkit._arrays import AUTO
from loopkit._make import called_kernels as functions
from loopkit._make import create
from loopkit._make.called_kernels import linkable, merge
from loopkit._make.check_types import check_types
from loopkit._make.einsum import make_einsum
from loopkit._make.given_data import ConstantArg, GlobalArg
from loopkit._make.infer_arguments import read_dtypes
from loopkit._make.operation import ReductionOperation
from loopkit._make.type_inference import infer_known_types, infer_types

make_kernel = linkable(create.make_kernel)
make_function = linkable(functions.make_function)

__all__ = [
    "AUTO",
    "ConstantArg",
    "GlobalArg",
    "ReductionOperation",
    "check_types",
    "infer_known_types",
    "infer_types",
    "make_einsum",
    "make_function",
    "make_kernel",
    "merge",
    "read_dtypes",
]
