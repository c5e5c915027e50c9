"""The second net under secrets: what has the form of a key, a signing secret or a token of the console is taken out
of a text.

Nothing that is logged should hold one in the first place. This finds those that came in by a message of an exception,
a header, a path.
"""

from __future__ import annotations

import re

_SECRET = re.compile(r"(svc_(?:pk|sk|px|mk|cs|cl|whsec)_(?:[0-9A-Za-z]{1,16}_){0,2})[0-9A-Za-z]{17,}", re.ASCII)
"""More than the grammar of `credentials`: wrong checksums, other lengths and pieces count too. What is shorter than 17
characters is a prefix, or too little to guess the rest from (decisions 2.1)."""


def redact(text: str) -> str:
    """The text with `svc_sk_us_production_[redacted]` instead of a key, and so for every kind of secret.

    Public keys are taken out too: they are no secret, but nothing in a log needs them, and a reader cannot see at a
    glance which kind it is.
    """
    return _SECRET.sub(r"\1[redacted]", text) if "svc_" in text else text
