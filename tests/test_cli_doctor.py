"""``loopkit doctor``: findings come from trying, and one failure hides no other."""

from __future__ import annotations

import json
import sys

import pytest
from seams import DoctorFinding as Finding
from seams import Output, Probe, compiler, driver, main
from seams import doctor as _doctor

from loopkit import LoopkitError, MissingDependencyError


def test_everything_required_works_here(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json"])
    answer = json.loads(capsys.readouterr().out)
    by_name = {finding["name"]: finding for finding in answer["findings"]}
    assert code == 0, [f for f in answer["findings"] if f["status"] == "broken"]
    assert answer["ok"] is True
    for name in ("Python", "islpy", "isl", "text to CUDA C", "reference executor"):
        assert by_name[name]["status"] == "ok"
    assert not [f for f in answer["findings"] if f["status"] == "broken"]


def test_what_is_missing_comes_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiler, "find_compiler", lambda: None)
    findings = [
        Probe("C++ compiler", _doctor._compiler).run(),
        Probe("host executor", lambda: _doctor._run("host")).run(),
    ]
    assert [f.status for f in findings] == ["missing", "missing"]
    assert all(f.fix for f in findings)
    _doctor.show(Output(), findings)
    printed = capsys.readouterr().out
    assert "-> " in printed
    assert "Executors that work here: none" in printed


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the host executor is for Linux")
def test_a_compiler_that_does_not_run_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "false")
    finding = Probe("C++ compiler", _doctor._compiler).run()
    assert finding.status == "missing"
    assert finding.detail.startswith("the C++ compiler 'false' cannot be run")
    assert finding.fix == "name a working one in the environment variable CXX"


def test_no_driver_is_missing_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise MissingDependencyError("there is no driver", instead="install it")

    monkeypatch.setattr(driver, "api", absent)
    monkeypatch.setattr(driver, "device_count", lambda: 0)
    assert Probe("GPU", _doctor._gpu).run().status == "missing"
    assert Probe("cuda executor", _doctor._cuda).run().status == "missing"


def test_a_probe_never_raises() -> None:
    def breaks() -> str:
        raise ZeroDivisionError("by zero")

    def refuses() -> str:
        raise LoopkitError("not so", instead="but so")

    assert Probe("x", breaks, fix="mend it").run() == Finding(
        "x", "broken", "ZeroDivisionError: by zero", "mend it"
    )
    assert Probe("x", refuses).run() == Finding("x", "broken", "not so", "but so")


def test_only_what_is_required_is_fatal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    optional = Finding("NVRTC", "broken", "no", "pip install")
    monkeypatch.setattr(_doctor, "diagnose", lambda: [optional])
    assert main(["doctor"]) == 0
    required = Finding("isl", "broken", "no", "pip install", required=True)
    monkeypatch.setattr(_doctor, "diagnose", lambda: [optional, required])
    assert main(["doctor"]) == 1
    assert "Broken, and loopkit needs it: isl" in capsys.readouterr().out
    assert main(["doctor", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False


def test_a_compiler_that_is_known_to_be_wrong_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_doctor, "_compile_something", lambda: ("12.9", b""))
    finding = Probe("NVRTC", _doctor._nvrtc).run()
    assert finding.status == "broken"
    assert finding.detail.startswith("NVRTC 12.9 compiles some loop nests to wrong addresses")
    assert finding.fix.startswith("pip install")
    monkeypatch.setattr(_doctor, "_compile_something", lambda: ("13.2", b""))
    assert Probe("NVRTC", _doctor._nvrtc).run().status == "ok"


@pytest.mark.nvrtc
def test_nvrtc_and_disassemblers_are_tried() -> None:
    assert "compiles" in _doctor._nvrtc()
    for tool in ("nvdisasm", "cuobjdump"):
        assert "disassembles" in _doctor._cuda_tool(tool)
