"""What differs between a report and the record of its visitor: names for people, no part of a link decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from svc.domain.model import Attribute

if TYPE_CHECKING:
    from svc.domain.matching.features import Features
    from svc.domain.matching.visitor import Visitor

_NAMES: Final = tuple(attribute.name.lower() for attribute in Attribute)


def changes(features: Features, visitor: Visitor) -> tuple[str, ...]:
    """What is another than at the visitor's last report that was surely its own (decisions 7.3).

    Names of `Attribute` in lower case and in its order, then `browser_version`, `os_version`, and `device_class` where
    system or browser is another one. What either side did not report is no difference. Values of two collectors cannot
    be compared: then `collector` stands for the attributes.
    """
    found: list[str] = []
    if features.collector == visitor.collector:
        pairs = zip(_NAMES, features.values, visitor.values, strict=True)
        found += [name for name, new, old in pairs if new != old and new and old]
    else:
        found.append("collector")
    versions = (
        ("browser_version", features.browser_version, visitor.browser_version),
        ("os_version", features.os_release, visitor.os_release),
    )
    found += [name for name, new, old in versions if new != old and new and old]
    if features.family != visitor.family:
        found.append("device_class")
    return tuple(found)
