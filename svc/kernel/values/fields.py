"""What published fields say of themselves, and the types of those that several bodies, parameters and headers share.

What may live here: annotated types, and how they are annotated. A field that occurs in one struct is described there.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct, inspect

Environment = Literal["production", "staging", "development"]
Platform = Literal["web", "android", "ios"]
"""Scoring profile (interface 2.3)."""
State = Literal["enriched", "unavailable"]
ENVIRONMENTS: tuple[Environment, ...] = get_args(Environment)
PLATFORMS: tuple[Platform, ...] = get_args(Platform)

A_TIME = "2026-01-05T10:00:00.000Z"
A_REQUEST_ID = "019b8d2f-3c40-7a51-9d0e-6f1b2c3d4e5f"
AN_EVENT_ID = "019b8d2f-3c40-7f03-8a11-52d7c0e94b6a"
A_KEY_ID = "key_4fzZ0aQbX7Lr2WmKc9Tn"
A_LIST_ID = "lst_2Vn8Kd0sWq5Xb3Tz7LmP"
A_MEMBER_ID = "mem_7Kp2Wc9TnX0aQbLr4fZz"
A_REVIEW_ID = "rev_0qppzPLvL54VURDkQrfS"
A_WEBHOOK_ID = "whk_9sD2kLm4Qp7Rt1VwXz5B"
A_REPORT: dict[str, Any] = {
    "userAgent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "platform": "Linux x86_64",
    "languages": ["en-GB", "en"],
    "timezone": "Europe/London",
    "screen": {"width": 1920, "height": 1080, "colorDepth": 24, "devicePixelRatio": 1},
    "hardwareConcurrency": 8,
    "canvas": "5d1f0a4c7be2",
}

TIME_FORM = {"format": "date-time"}
UUID_FORM = {"format": "uuid"}
OR_ELSE = "or_else"
OBJECT_FORM = {"type": "object", "additionalProperties": True}


def about(description: str, *examples: Any, form: dict[str, Any] | None = None) -> Meta:
    """Return the description of a field for the published documents. Without `examples`, one is composed from those of
    its parts. `form`: JSON Schema that decoding does not check, because the service makes the value itself or a rule of
    the domain checks it. Write an optional field of a shared type as `Annotated[VisitorId, about(...)] | UnsetType`:
    around the union, both would be merged.
    """
    return Meta(description=description, examples=[*examples] or None, extra_json_schema=form)


def or_else(other: type[Struct]) -> Meta:
    """Return what the published documents say of a part of a response that has this form instead, in place of its own
    type. Encoding takes both; msgspec has no type for one of two structs without tags.
    """
    return Meta(extra={OR_ELSE: other}, extra_json_schema={OR_ELSE: other.__name__})


def bare(described: inspect.Type) -> inspect.Type:
    """Return a type without the `Meta` around it; any other type as it is."""
    return described.type if isinstance(described, inspect.Metadata) else described


def fields_of(kind: type[Struct]) -> tuple[inspect.Field, ...]:
    """Return the fields of a record in their order, with their types."""
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    return described.fields


def open_to(*values: str) -> dict[str, list[str]]:
    """Return the JSON Schema of an enumeration that later versions may add to (decisions 1.10)."""
    return {"x-extensible-enum": [*values]}


def is_visible(text: str) -> bool:
    """Return whether people see anything of a text: not blanks and invisible characters alone."""
    return re.search(VISIBLE, text) is not None


def id_form(prefix: str) -> dict[str, str]:
    """Return the JSON Schema of an id: the prefix and twenty letters and digits (decisions 1.1)."""
    return {"pattern": f"^{prefix}[0-9A-Za-z]{{20}}$"}


Time = Annotated[str, Meta(extra_json_schema=TIME_FORM)]
Timestamp = Annotated[Time, Meta(examples=[A_TIME])]
CreatedAt = Annotated[Timestamp, about("When it was made.")]
RequestId = Annotated[str, about("UUIDv7 of the request; it sorts by time.", A_REQUEST_ID, form=UUID_FORM)]
VisitorId = Annotated[
    str, about("Stable id of the visitor, within the organization.", "0qppzPLvL54VURDkQrfS", form=id_form(""))
]
OrganizationId = Annotated[
    str, about("The organization that the key acts on.", "org_Yv3kPq8sT1nB6wDx0hRz", form=id_form("org_"))
]
KeyId = Annotated[str, about("Id of the key.", A_KEY_ID, form=id_form("key_"))]
WebhookId = Annotated[str, about("Id of the endpoint.", A_WEBHOOK_ID, form=id_form("whk_"))]
Cursor = Annotated[str, Meta(examples=["AZuNLzxAfFGdDm8bLD1OX1OKp9pTEb2H"])]
PageCursor = Annotated[Cursor, about("`next_cursor` of the page before; the first page when left out.")]
Tag = Annotated[str, about("The caller's own reference, shown again on the event and in webhooks.", "order 1234")]
AccountId = Annotated[
    str,
    about("The customer's id of the account that the visitor acts for. Opaque: no e-mail address.", "user-8271"),
]
Action = Annotated[str, about("What the visitor does, such as `sign_up`, `log_in` or `checkout`.", "log_in")]

SUSPECT_SCORE = about("Sum of the weights of the signals that fired. Absent or `null` when not scored.", 40)
"""Of a number, or of one that may be `null`."""

# Each has an upper bound: a larger value would be accepted, and fail where it meets 64 bits or a date.
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Natural = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Share = Annotated[float, Meta(gt=0, le=1)]
Seconds = Annotated[float, Meta(ge=0.1, le=31_536_000)]
Days = Annotated[int, Meta(ge=1, le=36_500)]
Gib = Annotated[float, Meta(ge=0, le=131_072)]
Text = Annotated[str, Meta(min_length=1)]
NO_NEWLINE = r"(?!\n)"
"""At the end of a pattern: `$` alone would allow a line break after it."""
VISIBLE = (
    r"[^\s\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)
"""A character that people see: every name has one, or nothing would tell what it names."""
HostName = Annotated[str, Meta(pattern=r"^[^\s:/]+$(?!\n)")]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-fA-F]{64}$(?!\n)")]
AppleApp = Annotated[str, Meta(pattern=r"^[0-9A-Z]{10}[.][0-9A-Za-z._-]{1,155}$(?!\n)")]
PublicUrl = Annotated[str, Meta(pattern=r"^https?://[0-9A-Za-z.:\[\]-]+(/[0-9A-Za-z._~/-]*)?$(?!\n)", max_length=200)]
LogFormat = Literal["auto", "json", "console"]

_PASSWORD = re.compile(r"//[^/?#@]*:[^/?#]*@|[?&](?:ssl)?password=", re.IGNORECASE)


def url_problem(url: str) -> str | None:
    """Return what to do about a store URL with a password, which must not be shown; `None` without one."""
    if _PASSWORD.search(url) is None:
        return None
    return (
        "the store's URL holds a password, which everybody on this machine could read: put it into a file of mode 0600 "
        "and name that with SVC_STORE_PASSWORD_FILE, or use a passfile (~/.pgpass)"
    )
