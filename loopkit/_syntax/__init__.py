"""The language: from text to raw syntax trees.  Nothing here knows a kernel."""

from loopkit._syntax.domain_parser import parse_assumptions, parse_domain
from loopkit._syntax.expression_parser import parse_expression
from loopkit._syntax.instruction_parser import parse_instructions
from loopkit._syntax.items import (
    RawAssignment,
    RawItem,
    RawNop,
    RawStatement,
    RawSubstitution,
    position_of_name,
)
from loopkit._syntax.reduction_calls import REDUCTIONS, resolve_reductions

__all__ = [
    "REDUCTIONS",
    "RawAssignment",
    "RawItem",
    "RawNop",
    "RawStatement",
    "RawSubstitution",
    "parse_assumptions",
    "parse_domain",
    "parse_expression",
    "parse_instructions",
    "position_of_name",
    "resolve_reductions",
]
