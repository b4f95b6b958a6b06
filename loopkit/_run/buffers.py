"""Arrays as bytes in host memory, and memory that two processes share."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import tempfile
from dataclasses import dataclass
from multiprocessing.shared_memory import SharedMemory
from typing import Any

#: What another process needs in order to see an arena: how, which one, and its size.
Ticket = tuple[str, Any, int]


@dataclass(frozen=True, slots=True)
class Buffer:
    """One array of a launch: where its bytes are in host memory, and which way they go.

    One that goes neither way is memory that only the kernel uses.
    """

    address: int
    size: int
    goes_in: bool = False
    comes_out: bool = False


def address_of(memory: Any) -> int:
    """Where writable memory begins; it must not move as long as the address is used."""
    # The object that gives the address must be gone before the memory can be closed.
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


class Arena:
    """Memory that grows as needed, shared with one other process.

    Outside of Windows it has no name, and nothing of it can be left behind: it is a file
    in no folder, whose descriptor the other process inherits, and which ends with both.
    (The folder for named shared memory is also small in many containers, and a process
    that writes more than fits there is killed.)

    Parameters
    ----------
    named:
        Whether to use shared memory with a name, as Windows has it.
    """

    #: More bytes than this are given back after each call.
    KEPT = 1 << 30

    def __init__(self, named: bool = os.name == "nt") -> None:
        self._size = 0
        self._mapped: mmap.mmap | None = None
        self._named: SharedMemory | None = None
        self._file = -1 if named else _file_in_memory()
        #: Where the memory begins in this process; 0 where there is none.
        self.address = 0

    @property
    def inherited(self) -> tuple[int, ...]:
        """The descriptors that the other process must inherit."""
        return () if self._file < 0 else (self._file,)

    @property
    def ticket(self) -> Ticket:
        """For `View.open` in the other process."""
        if self._named is not None:
            return "name", self._named.name, self._size
        return "file", self._file, self._size

    def reserve(self, size: int) -> None:
        """Have at least ``size`` bytes; they may move, and their content may be lost."""
        if self.address and size <= self._size:
            return
        # Twice what was there, so that slowly growing sizes do not mean a new arena each time.
        double = 2 * self._size if size <= self.KEPT else 0
        size = max(size, double, mmap.PAGESIZE)
        self._unmap()
        if self._file < 0:
            self._named = SharedMemory(create=True, size=size)
            self.address = address_of(self._named.buf)
        else:
            os.ftruncate(self._file, size)
            self._mapped = mmap.mmap(self._file, size)
            self.address = address_of(self._mapped)
        self._size = size

    def trim(self) -> None:
        """Give back what is too large to be kept."""
        if self._size > self.KEPT:
            self._unmap()
            if self._file >= 0:
                os.ftruncate(self._file, 0)

    def close(self) -> None:
        """Give everything back."""
        self._unmap()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _unmap(self) -> None:
        self.address = self._size = 0
        if self._mapped is not None:
            self._mapped.close()
            self._mapped = None
        if self._named is not None:
            self._named.close()
            with contextlib.suppress(FileNotFoundError):
                self._named.unlink()
            self._named = None


class View:
    """An arena, seen from the other process."""

    def __init__(self) -> None:
        self._ticket: Ticket | None = None
        self._memory: mmap.mmap | SharedMemory | None = None
        #: Where the memory begins in this process.
        self.address = 0

    def open(self, ticket: Ticket) -> int:
        """See what `Arena.ticket` stands for; returns where it begins here."""
        if ticket == self._ticket:
            return self.address
        self.close()
        how, which, size = ticket
        if how == "file":
            self._memory = mmap.mmap(which, size)
            self.address = address_of(self._memory)
        else:
            self._memory = SharedMemory(name=which)
            self.address = address_of(self._memory.buf)
        self._ticket = ticket
        return self.address

    def close(self) -> None:
        """See nothing any more."""
        if self._memory is not None:
            self._memory.close()
        self._memory = self._ticket = None
        self.address = 0


def _file_in_memory() -> int:
    """The descriptor of a file that is in no folder, and in memory where that is possible."""
    create = getattr(os, "memfd_create", None)
    if create is not None:
        return int(create("loopkit"))
    try:  # a Python that was built for older systems than it runs on
        found = int(ctypes.CDLL(None).memfd_create(b"loopkit", 1))
        if found >= 0:
            return found
    except AttributeError:
        pass
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
