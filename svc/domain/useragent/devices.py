"""The kind of a device, as far as a user agent shows it.

What may live here: the marks of televisions, tablets and phones.
"""

from __future__ import annotations

from functools import cache

import ua_parser
from ua_parser.core import Matcher
from ua_parser.lazy import UserAgentMatcher
from ua_parser.regex import Resolver

_MARKS = (
    (r"\bTV\b|Smart-?TV|SMART-TV|GoogleTV|AppleTV|Android ?TV|HbbTV|\bAFT[A-Z]|BRAVIA|\bCrKey|Web0S", "screen"),
    (r"PlayStation|Nintendo|Xbox|Andr0id|\bRoku|ViziOS|TiVo ?OS|BrightSign|NETTV|\bOMI/", "screen"),
    (r"(?i:watch ?os)|^Watch\d", "phone"),
    (r"iPad|Tablet|\bKF[A-Z]{2,}|PlayBook|Kindle|\bNexus (?:7|9|10)\b|\bSM-[TX]\d{3}", "tablet"),
    (r"(?i:\btab(?:[ _-]?[a-z]?\d+)?\b|(?:media|mate)pad|\bpad\b)|Lenovo (?:TB-|YT-)", "tablet"),
    (r"Mobile|iPhone|iPod|Phone|BlackBerry|\bBB10|Symbian|Series ?[346]0|KAIOS|MIDP|Opera Mini|webOS|Bada", "phone"),
    (r"Nokia|NOKIA|SonyEricsson|UCWEB|J2ME|CLDC|MAUI|UP\.Browser|B(?:rew|REW)|KaiOS|Palm", "phone"),
)
"""What tells the kind of a device; the first that matches counts."""


def device_mark(text: str) -> str | None:
    """`screen` (a television or a console), `tablet` or `phone`, where the user agent says so; `None` where it does
    not.
    """
    found = _device_marks()(text, ua_parser.Domain.USER_AGENT).user_agent
    return found.family if found else None


@cache
def _device_marks() -> Resolver:
    matchers: list[Matcher[ua_parser.UserAgent]] = [UserAgentMatcher(pattern, mark) for pattern, mark in _MARKS]
    return Resolver((matchers, [], []))
