"""What all features say of their rows that are of a visitor or an account. Looked up when it is asked for, since the
erasure of one feature uses that of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from svc.features.contracts.erased import Erased, Forgetting
from svc.features.registry import FEATURES
from svc.features.tables import TABLES
from svc.kernel.store.schema.table import ErasedBy, PolicyError, Table


@cache
def forgetting() -> tuple[Forgetting, ...]:
    """Return how each feature forgets a visitor or an account."""
    modules = (module for feature in FEATURES for module in feature.modules("erasure"))
    return tuple(module.FORGET for module in modules if hasattr(module, "FORGET"))


@cache
def erased() -> dict[str, Erased]:
    """Return, by the name of the function, what it erases and what finds it. Raises as `refuse_unerased`."""
    modules = (module for feature in FEATURES for module in feature.modules("erasure"))
    found = {name: of for module in modules for name, of in module.ERASED.items()}
    refuse_unerased(TABLES, found)
    return found


def refuse_unerased(tables: Sequence[Table[Any]], known: dict[str, Erased]) -> None:
    """Raise `PolicyError` for a table that names a function which does not erase it."""
    for table in tables:
        personal = table.personal
        if isinstance(personal, ErasedBy):
            of = known.get(personal.function)
            if of is None or table not in of.tables:
                raise PolicyError(f"table {table.name}: {personal.function} does not erase it (ERASED of its feature)")
