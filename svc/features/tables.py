"""Every table of the store: the on-disk schema, in the order in which it is documented.

A declaration says everything that is said of a table (ADR 31): the parts of its key, the form of its values, how long
rows are kept, how those of a visitor are erased, whether they stay when the organization is removed, and which rules of
`invariants` read them through. Adding a table is a declaration in its folder, the transaction that uses it, and a
migration.

`organization` in a key is the organization's number (4 bytes), so that everything of one customer lies together and
nothing of another can be reached by a range. Request ids are UUIDv7: the id is the time index.
"""

from __future__ import annotations

from svc.features.erasure import tables as erasure
from svc.features.labels import tables as labels
from svc.features.lists import tables as lists
from svc.features.reviews import tables as reviews
from svc.features.rules import tables as rules
from svc.features.webhooks import tables as webhooks
from svc.identify.tables import accounts, attestation, events, origins, proofs, visitors, weights
from svc.kernel.access import tables as access
from svc.kernel.store import tables as store
from svc.kernel.store.schema.table import declared
from svc.kernel.tenants import tables as tenants

TABLES = declared(
    store, tenants, access, events, weights, visitors, accounts, attestation, origins, proofs, erasure, lists, rules,
    labels, reviews, webhooks,
)  # fmt: skip
