"""``loopkit doctor``: the findings, for a person or as JSON."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable

from loopkit._cli._output import Output
from loopkit._doctor import Finding, diagnose

STYLES = {"ok": "green", "missing": "yellow", "broken": "red"}
EXECUTORS = ("cuda", "host", "reference")


def doctor(*, as_json: bool) -> int:
    """Print what was found; the exit code is 1 where something required is broken."""
    output = Output()
    # What the libraries that are tried print must not mix with the findings.
    with output.working("trying everything"), contextlib.redirect_stdout(sys.stderr):
        findings = diagnose()
    fatal = [finding for finding in findings if finding.fatal]
    if as_json:
        answer = {"ok": not fatal, "findings": [finding.as_dict() for finding in findings]}
        print(json.dumps(answer, indent=2))
    else:
        show(output, findings)
    return 1 if fatal else 0


def show(output: Output, findings: Iterable[Finding]) -> None:
    """A line for each finding, and a summary of what runs here."""
    findings = list(findings)
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        line = f"{finding.status:<8} {finding.name:<{width}}  {finding.detail}"
        output.text(line, style=STYLES[finding.status])
        if finding.status != "ok" and finding.fix:
            output.text(f"{'':8} {'':{width}}  -> {finding.fix}")
    works = {finding.name for finding in findings if finding.status == "ok"}
    runs = [name for name in EXECUTORS if f"{name} executor" in works]
    output.text()
    output.text("Executors that work here: " + (", ".join(runs) or "none"))
    broken = [finding.name for finding in findings if finding.fatal]
    if broken:
        output.text("Broken, and loopkit needs it: " + ", ".join(broken), style="bold red")
