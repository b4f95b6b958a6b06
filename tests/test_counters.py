"""The benchmark that compares costs with counters: what it makes of an answer, and of failures."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
counters: Any = importlib.import_module("counters")

#: Runs the command that it is given on the CPU, and prints what `ncu` would of each launch.
NCU = """\
import json, pathlib, subprocess, sys
metrics = sys.argv[sys.argv.index("--metrics") + 1].split(",")
command = sys.argv[sys.argv.index(PYTHON):]
subprocess.run([*command, "--executor", EXECUTOR], check=False)
if ANSWERS:
    notes = pathlib.Path(command[command.index("--log") + 1]).read_text().splitlines()
    print("==PROF== Connected")
    print('"ID","Kernel Name",' + ",".join(f'"{m}"' for m in metrics))
    print('"","",' + ",".join('"sector"' for m in metrics))
    for number, note in enumerate(notes):
        if "error" not in json.loads(note):
            print(f'"{number}","k",' + ",".join('"1,024"' for m in metrics))
"""


def stand_in(folder: Path, executor: str, answers: bool) -> str:
    """A command that stands in for `ncu`."""
    path = folder / "ncu"
    names = f"PYTHON, EXECUTOR, ANSWERS = {sys.executable!r}, {executor!r}, {answers}\n"
    path.write_text(f"#!{sys.executable}\n{names}{NCU}")
    path.chmod(0o755)
    return str(path)


CASES: list[Any] = [("vector_add", "scheduled", {"n": 2049}), ("vector_add", "none", {"n": 5})]


@pytest.mark.host
def test_what_fails_stands_in_its_row(tmp_path: Path) -> None:
    good, bad = counters.measured(CASES, 100, stand_in(tmp_path, "host", True))
    assert isinstance(good, dict) and set(good.values()) == {1024}
    assert bad == "KeyError: 'none'"


def test_an_answer_that_says_nothing_is_told(tmp_path: Path) -> None:
    found = list(counters.measured(CASES[:1], 100, stand_in(tmp_path, "no executor", False)))
    assert len(found) == 1 and "UnknownNameError" in str(found[0])


@pytest.mark.host
def test_the_launches_of_a_call_are_summed(tmp_path: Path) -> None:
    case = ("full_sum", "two launches", {"n": 100})
    (found,) = counters.measured([case], 100, stand_in(tmp_path, "host", True))
    assert set(found.values()) == {1024}  # the stand-in tells one row, two are asked for
    rows = [{"a": 1, "b": None}, {"a": 2, "b": 3}]
    assert counters.summed(rows) == {"a": 3, "b": None}


def test_counters_that_a_gpu_lacks() -> None:
    names = [*counters.flat(counters.METRICS)][:4]
    text = "noise\n" + "\n".join(
        ",".join(f'"{cell}"' for cell in row)
        for row in (["ID", *names], ["", *names], ["0", "1,024", "n/a", "0", "7.0"])
    )
    (row,) = counters.table(text)
    assert [row[name] for name in names] == [1024, None, 0, 7]
    assert row[next(counters.flat(counters.REQUESTS))] is None
    assert counters.table("") == []


def test_differences_are_named() -> None:
    registers = counters.kernels("matmul_registers")["full tiles"]
    costs = registers.costs(n=256, m=384, l=128)
    read = counters.bytes_of(costs, "wavefronts loaded")
    # Each thread multiplies 8 elements of a with 8 of b in a step along k: as text, both for each.
    assert read == 256 * 384 * 128 * 2 * 4
    made = {"pieces": 300, "requests": 100, "bytes": read // 8, "wide": {"LDS.128": 100}}
    seen = {"pieces": 300, "requests": 100}
    told = counters.why(costs, "wavefronts loaded", made, seen)
    assert told == (
        "100 of 100 requests are LDS.128; the code loads 0.125 of the bytes that the text reads: "
        "the rest stays in registers"
    )
    told = counters.why(costs, "wavefronts loaded", made, {"pieces": 300, "requests": 99})
    assert told == "not explained: the machine code asks for 300 wavefronts in 100 requests"
    more = {**made, "bytes": 2 * read, "wide": {}}
    assert "2 times the bytes" in counters.why(costs, "wavefronts loaded", more, seen)
    assert counters.why(costs, "sectors loaded", "no code", seen) == "not explained: no code"


def test_updates_of_one_cell_take_turns() -> None:
    example = importlib.import_module("histogram")
    costs = counters.kernels("histogram")["global atomics"].costs(**example.inputs(n=10_000))
    made = counters.counted(costs)["sectors updated"]
    waiting = sum(
        len(w) - len(set(w)) for w in batches(example.inputs(n=10_000)["values"].tolist())
    )
    assert counters.collisions(costs, "sectors updated") == waiting
    told = counters.why(costs, "sectors updated", made, {**made, "pieces": made["pieces"] + 7})
    assert told == f"{waiting:,} updates wait for one of their cell: 7 sectors are asked for again"
    more = {**made, "pieces": made["pieces"] + 2 * waiting + 1}
    assert "not explained" in counters.why(costs, "sectors updated", made, more)


def test_what_blocks_that_look_back_do_besides_is_told() -> None:
    """Tickets, what is published and flags stand in no access of the text (an H100's counters)."""
    costs = counters.kernels("scan_vector")["look-back"].costs(n=10001)
    measured = {
        "sectors loaded": (1263, "how far 5 blocks look back depends on"),
        "sectors stored": (1261, "each of 5 blocks publishes two sums, each in a word with its"),
        "sectors updated": (5, "each of 5 blocks takes a ticket"),
        "wavefronts loaded": (1337, "each warp of 5 blocks reads its ticket"),
        "wavefronts stored": (668, "each of 5 blocks keeps its ticket"),
    }
    for key, (pieces, text) in measured.items():
        seen = {"pieces": pieces, "requests": None}
        assert counters.why(costs, key, "data decide", seen).startswith(text)
    seen = {"pieces": 1262, "requests": None}
    assert "not explained" in counters.why(costs, "sectors stored", "data decide", seen)


def batches(values: list[int]) -> list[list[int]]:
    """What each warp has."""
    return [values[at : at + 32] for at in range(0, len(values), 32)]


def test_comparisons_as_text() -> None:
    assert counters.compared(5, 5) == "5"
    assert counters.compared(10, 5) == "5 = 0.5 x 10"
    assert counters.compared(None, 5) == "5 = ? x unknown"
    assert counters.compared(5, None) == "no counter"


def test_counts_are_summed_over_accesses() -> None:
    knl = counters.kernels("transpose")["scheduled"]
    found = counters.counted(knl.costs(n=512, m=256))
    cells = 512 * 256
    assert found["sectors loaded"] == {"pieces": cells // 8, "requests": cells // 32}
    assert found["sectors stored"] == {"pieces": cells // 8, "requests": cells // 32}
    assert found["wavefronts loaded"]["pieces"] == found["wavefronts stored"]["pieces"]
    assert json.dumps(found)
