"""Names of countries, for databases that give only the code.

What may live here: the one table of `svc/domain/data/countries.toml`.
"""

from __future__ import annotations

from svc.domain.data import read_tables

COUNTRY_NAMES = read_tables("countries", dict[str, str])
"""ISO 3166-1 alpha-2 code -> short English name."""
