"""Proof that arrays in one storage do not overwrite values that are still live.

Barriers between the accesses are proven with all other conflicts. Which values the storage holds
follows from the order of the kernel's statements, which the text is proven to have.
"""

from __future__ import annotations

from loopkit._check.alias_check import overlaid
from loopkit._kernel import Kernel
from loopkit.codegen.proof.recorder import Recorder
from loopkit.codegen.proof.subject import Subject


def check_storage(subject: Subject, kernel: Kernel, recorder: Recorder) -> None:
    """Find reads of what was written to another array, in a kernel without rules."""
    with recorder.question("memory", "whether arrays of one storage overwrite each other"):
        for found in overlaid(kernel):
            assert found.sink.at is not None and found.other is not None
            reader, writer = (side.at.statement for side in (found.sink, found.other) if side.at)
            leaf = next((leaf for leaf in subject.leaves if leaf.statement == reader), None)
            what = (
                f"'{writer}' writes '{found.detail}' in the place of '{found.array}' before "
                f"'{reader}' reads that"
            )
            if found.exact:
                line = 1 if leaf is None else leaf.line
                recorder.wrong("memory", what, line, reader, array=found.array)
            else:
                recorder.open("memory", f"whether {what}", [leaf] if leaf is not None else ())
