"""Settings of an organization: whether public keys get decisions, and from which counts on the signals of the group
`account` fire (decisions 11.5, 13.2).
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.organizations.jobs import change_settings
from svc.http.change import change
from svc.http.route import ORGANIZATION, Call, Route, Services
from svc.identify.velocity.counts import MOST
from svc.kernel.tenants import queries as lookups
from svc.kernel.tenants.organization import AccountThresholds, Organization
from svc.kernel.values.fields import about
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.struct_fields import body_of, fields_sent

_Count = Annotated[int, Meta(ge=1, le=MOST)]
_MultiAccount = Annotated[_Count, about("Accounts of a visitor in 30 days from which `multi_account` fires.", 3)]
_TestingVisitor = Annotated[
    _Count, about("Accounts of a visitor within an hour from which `account_testing` fires.", 5)
]
_TestingAddress = Annotated[
    _Count, about("Accounts of an address within an hour from which `account_testing` fires.", 20)
]
_Sharing = Annotated[_Count, about("Visitors of an account in 30 days from which `account_sharing` fires.", 6)]
_Decision = Annotated[
    bool, about("Whether responses and signed verdicts for public keys have the decision of the rules.", True)
]


class AccountThresholdsBody(msgspec.Struct, frozen=True, kw_only=True):
    """From which counts on signals fire."""

    multi_account: _MultiAccount
    account_testing_visitor: _TestingVisitor
    account_testing_address: _TestingAddress
    account_sharing: _Sharing


class SettingsBody(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an organization."""

    decision_in_response: _Decision
    account_thresholds: Annotated[AccountThresholdsBody, about("Of the signals of the group `account`.")]
    rate_limit_per_s: Annotated[
        int,
        about(
            "Identifications that it may send in a second; 0 = any number. Its operator sets it: `svc org rate-limit`.",
            100,
        ),
    ]
    event_retention_days: Annotated[
        int, about("For how many days its events are readable. The operator's setting of the service.", 30)
    ]


class NewAccountThresholds(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Thresholds to change; one that is left out stays."""

    multi_account: _MultiAccount | UnsetType = UNSET
    account_testing_visitor: _TestingVisitor | UnsetType = UNSET
    account_testing_address: _TestingAddress | UnsetType = UNSET
    account_sharing: _Sharing | UnsetType = UNSET


class UpdateSettingsBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings to change; one that is left out stays."""

    decision_in_response: _Decision | UnsetType = UNSET
    account_thresholds: Annotated[NewAccountThresholds, about("Of the signals of the group `account`.")] | UnsetType = (
        UNSET
    )


async def read_settings(services: Services, call: Call) -> SettingsBody | Refusal:
    """`GET .../settings`: the settings in force."""
    number = call.organization.number
    return _shown(services, await services.store.query(partial(lookups.organization, number=number)))


async def update_settings(services: Services, call: Call) -> SettingsBody | Refusal:
    """`PATCH .../settings`: change what is named; in force from the next request on (decisions 11.5). `422
    validation_error` (`out_of_range`) for a threshold that no count reaches.
    """
    body: UpdateSettingsBody = call.body
    job = partial(
        change_settings,
        number=call.organization.number,
        decision_in_response=None if body.decision_in_response is UNSET else body.decision_in_response,
        thresholds={} if body.account_thresholds is UNSET else fields_sent(body.account_thresholds),
    )
    changed = await change(services, call, job)
    return changed if isinstance(changed, Refusal) else _shown(services, changed)


def _shown(services: Services, organization: Organization) -> SettingsBody:
    thresholds: AccountThresholds = organization.account_thresholds
    return SettingsBody(
        decision_in_response=organization.decision_in_response,
        account_thresholds=body_of(AccountThresholdsBody, thresholds),
        rate_limit_per_s=organization.rate_limit_per_s,
        event_retention_days=services.event_retention_ms // DAY_MS,
    )


_route = partial(Route, tag="Management: settings", kinds=("management",), path=ORGANIZATION + "/settings")
ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="getSettings",
        summary="Read the settings of the organization",
        handler=read_settings,
    ),
    _route(
        operation_id="updateSettings",
        method="PATCH",
        summary="Change settings of the organization",
        description=(
            "What is left out stays; what the operator sets is not changed here. In force from the next request on, on "
            "every worker and node."
        ),
        handler=update_settings,
        needs="administer",
        body=UpdateSettingsBody,
    ),
)
