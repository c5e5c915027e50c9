"""Matching: whose report is this? Pure: features and what the store holds in, a recognition with its writes out.

Read `recognition` first (the procedure and its bounds), then `claims` (what a token says), `decision` (whose it is) and
`likelihood` (how many others look alike, and how sure is sure), `features`, `blocks`, `visitor` and `tokens` (what is
compared, how it is found, what is kept), `statistics` and `lessons` (what visits taught), `parameters` (the numbers and
their sources) and `changes` (what differs, in words).
"""

from svc.identify.matching.blocks import EMPTY_BLOCK, Block, BlockKey, Index, block_keys, likely_visitors
from svc.identify.matching.changes import changes
from svc.identify.matching.features import Features, extract
from svc.identify.matching.lessons import StatisticsUpdate
from svc.identify.matching.recognition import Recognition, match_visitor
from svc.identify.matching.statistics import Statistics
from svc.identify.matching.visitor import Visitor

__all__ = [
    "EMPTY_BLOCK",
    "Block",
    "BlockKey",
    "Features",
    "Index",
    "Recognition",
    "Statistics",
    "StatisticsUpdate",
    "Visitor",
    "block_keys",
    "changes",
    "extract",
    "likely_visitors",
    "match_visitor",
]
