"""Proof that a generated program does what its kernel says.

The tree of C, or the CUDA C that is read back into one, is compared with the kernel's
domains, loop tree and accesses: :func:`prove` says what was proven, what is wrong, with
concrete instances, and what stayed open.  Nothing in here uses what generated the tree.
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
