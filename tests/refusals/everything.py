"""All cases, by name."""

from __future__ import annotations

from refusals import (
    arguments,
    data,
    fusion,
    launches,
    loop_order,
    maps,
    parallel_tags,
    reductions,
    staging,
    statements,
    subscripts,
    temporaries,
)
from refusals.case import Case

FAMILIES: dict[str, tuple[Case, ...]] = {
    "parallel tags": parallel_tags.CASES,
    "loop order": loop_order.CASES,
    "maps": maps.CASES,
    "fusion": fusion.CASES,
    "temporaries": temporaries.CASES,
    "staging": staging.CASES,
    "launches": launches.CASES,
    "reductions": reductions.CASES,
    "subscripts": subscripts.CASES,
    "data": data.CASES,
    "statements": statements.CASES,
    "arguments": arguments.CASES,
}
CASES: dict[str, Case] = {case.name: case for them in FAMILIES.values() for case in them}
