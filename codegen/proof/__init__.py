"""Proof that a generated program does what its kernel says.

The tree of C, or CUDA C text that is read back into one, is compared with the kernel's domains,
loop tree and accesses: :func:`prove` returns what was proven, findings with concrete instances,
and questions left open. The proof shares no code with lowering beyond the tree of C and tools.
"""

from loopkit.codegen.proof.prove import prove, prove_program, prove_source
from loopkit.codegen.proof.report import Finding, Place, Proof, Trusted, Undecided

__all__ = [
    "Finding",
    "Place",
    "Proof",
    "Trusted",
    "Undecided",
    "prove",
    "prove_program",
    "prove_source",
]
