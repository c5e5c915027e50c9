"""A small world for the tests of matching: people with devices, and an index in memory that counts what it is asked."""

from __future__ import annotations

import msgspec

from svc.identify.matching import Block, Features, Recognition, Statistics, Visitor, extract, match_visitor
from svc.identify.matching.blocks import EMPTY_BLOCK, BlockKey
from svc.identify.model import Agent, Attribute, Report, RequestFacts

START_MS = 1_790_000_000_000
MINUTE_MS = 60_000
DAY_MS = 86_400_000

CHROME = Agent(browser_family="chrome", browser_version=1400, os_family="windows", os_release=1000)
PHONE = Agent(browser_family="chrome", browser_version=1400, os_family="android", os_release=1500, mobile=True)

DESKTOP_VALUES = {
    Attribute.GPU: "intel uhd 770",
    Attribute.SCREEN: "1920x1080",
    Attribute.PIXEL_RATIO: "1",
    Attribute.HARDWARE: "8/16",
    Attribute.TOUCH: "0/Win32",
    Attribute.LANGUAGES: "de-DE,de,en",
    Attribute.TIMEZONE: "Europe/Berlin",
    Attribute.FONTS: "Arial,Calibri,Segoe UI",
    Attribute.CANVAS: "canvas-1",
    Attribute.WEBGL: "webgl-1",
    Attribute.AUDIO: "124.04",
    Attribute.COLOUR: "24/srgb",
    Attribute.MISCELLANEOUS: "chrome",
    Attribute.REST: "a=1",
    Attribute.FIRST_LANGUAGE: "de-de",
}


def other_device(name: str) -> dict[Attribute, str]:
    """A device that shares nothing telling with any other name's."""
    return {attribute: f"{value} of {name}" for attribute, value in DESKTOP_VALUES.items()}


def features_of(
    values: dict[Attribute, str] | None = None,
    *,
    agent: Agent = CHROME,
    ip: str = "81.2.69.142",
    token: str | None = None,
    token_is_new: bool = False,
    collector: str = "plain",
    fonts: tuple[str, ...] = ("Arial", "Calibri", "Segoe UI"),
    origin: str | None = None,
    private: bool = False,
    key: bytes | None = None,
    before: tuple[str, bytes] | None = None,
) -> Features:
    """`before`: the token and the key which the report's own are in place of."""
    report = Report(
        collectors=(collector,),
        attributes={attribute: f"{collector}:{value}" for attribute, value in (values or DESKTOP_VALUES).items()},
        fonts=fonts,
        client_token=token,
        client_token_is_new=token_is_new,
        client_token_before=before[0] if before else None,
        incognito=private or None,
    )
    key_before = before[1] if before else None
    return extract(report, agent, RequestFacts(ip=ip), origin=origin, key=key, key_before=key_before)


class Seen(msgspec.Struct, frozen=True):
    number: int
    is_new: bool
    confidence: int
    outcome: str
    token_conflict: bool
    split_from: int | None = None
    proven: bool = False
    to_renew: bool = False


class Organization:
    """An index in memory. Everything goes through its bytes, as in a store."""

    def __init__(self) -> None:
        self.blocks: dict[BlockKey, bytes] = {}
        self.visitors: dict[int, bytes] = {}
        self.statistics = Statistics()
        self.last_number = 0
        self.blocks_read: set[BlockKey] = set()
        self.visitors_read: set[int] = set()
        self.most_block_reads = self.most_visitor_reads = self.most_block_writes = self.most_visitor_writes = 0

    def block(self, key: BlockKey) -> Block:
        self.blocks_read.add(key)
        raw = self.blocks.get(key)
        return EMPTY_BLOCK if raw is None else Block.unpack(raw)

    def visitor(self, number: int) -> Visitor | None:
        self.visitors_read.add(number)
        raw = self.visitors.get(number)
        return None if raw is None else Visitor.unpack(raw)

    def forget_reads(self) -> None:
        self.blocks_read.clear()
        self.visitors_read.clear()

    def visit(
        self, features: Features, now_ms: int = START_MS, *, flooding: bool = False, replayed: bool = False
    ) -> Seen:
        self.forget_reads()
        recognition = match_visitor(self, self.statistics, features, now_ms, flooding=flooding, replayed=replayed)
        self.most_block_reads = max(self.most_block_reads, len(self.blocks_read))
        self.most_visitor_reads = max(self.most_visitor_reads, len(self.visitors_read))
        self.most_block_writes = max(self.most_block_writes, len(recognition.postings))
        records = (recognition.visitor, recognition.left, recognition.disputed)
        self.most_visitor_writes = max(self.most_visitor_writes, sum(record is not None for record in records))
        number = self.apply(recognition)
        self.statistics.learn(recognition.statistics_update)
        return Seen(
            number,
            recognition.number is None,
            recognition.confidence,
            recognition.outcome,
            recognition.token_conflict,
            recognition.split_from,
            recognition.proven,
            recognition.to_renew,
        )

    def apply(self, recognition: Recognition) -> int:
        number = recognition.number
        visitor = recognition.visitor
        if number is None:
            self.last_number += 1
            number = self.last_number
            if visitor is not None:
                visitor = msgspec.structs.replace(visitor, visitor_id=f"{number:020d}")
        if recognition.left is not None:
            assert recognition.split_from is not None
            self.visitors[recognition.split_from] = recognition.left.pack()
        if recognition.disputed is not None:
            other, record = recognition.disputed
            self.visitors[other] = record.pack()
        if visitor is not None:
            self.visitors[number] = visitor.pack()
        for key, weight in recognition.postings:
            self.blocks[key] = self._stored(key).with_posting(number, weight).pack()
        return number

    def _stored(self, key: BlockKey) -> Block:
        return Block.unpack(self.blocks[key]) if key in self.blocks else EMPTY_BLOCK
