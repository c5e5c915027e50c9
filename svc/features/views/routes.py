"""Views in the console: listed, read by their address, saved and deleted."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.views.jobs import find_view, keys_of, save_view, views_at
from svc.features.views.tables import (
    LONGEST_NAME,
    LONGEST_VALUE,
    MAX_PARAMETERS,
    MAX_QUERY_BYTES,
    SAVED_VIEWS,
    View,
    ViewScreen,
    is_name,
)
from svc.http.change import caller_of, change, member_of
from svc.http.route import Call, Route, Services, console_route
from svc.kernel.access.audit import Audited
from svc.kernel.access.roles import may
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.fields import A_MEMBER_ID, Timestamp, about, id_form
from svc.kernel.values.ids import ordered_id
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import body_of
from svc.kernel.work.slices import all_in_slices

_AN_ID = "view_0qppzPLvL54VURDkQrfS"
_Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME), about("Its name, for people.", "Sign-ups by VPN")]
_Screen = Annotated[ViewScreen, about("The screen whose filters they are.", "events")]
_Parameter = Annotated[str, Meta(pattern=r"^[a-z_]{1,40}$(?!\n)")]
_Value = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]*$(?!\n)", max_length=LONGEST_VALUE)]
_Query = Annotated[
    dict[_Parameter, _Value],
    Meta(max_length=MAX_PARAMETERS),
    about(
        "Parameter of the address -> its value; 4 kB of UTF-8 in all.",
        {"group": "vpn", "action": "sign_up", "window": "7d"},
    ),
]
_IsShared = Annotated[bool, about("Whether it is the organization's; else one's own.", True)]


class NewViewBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A view as it is saved."""

    name: _Name
    screen: _Screen
    query: _Query
    is_shared: _IsShared = False


class ViewBody(msgspec.Struct, frozen=True, kw_only=True):
    """A view."""

    id: Annotated[str, about("Its address in the console is `#/view/` and this.", _AN_ID, form=id_form("view_"))]
    name: _Name
    screen: _Screen
    query: _Query
    is_shared: _IsShared
    saved_at: Annotated[Timestamp, about("When it was saved.")]
    saved_by: (
        Annotated[str, about("The member who saved it; left out where a management key did.", A_MEMBER_ID)] | UnsetType
    ) = UNSET


class ViewsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which views are listed."""

    screen: Annotated[ViewScreen, about("Only those of this screen.", "events")] | UnsetType = UNSET


class ViewsBody(msgspec.Struct, frozen=True):
    """The views that somebody has."""

    views: Annotated[tuple[ViewBody, ...], about("Those of the organization and one's own, by name.")]


def _row(view: View) -> ViewBody:
    return body_of(ViewBody, view, query=dict(view.query), is_shared=view.owner is None)


async def list_views(services: Services, call: Call) -> ViewsBody:
    """`GET /console/api/views`: the organization's, and those of the member who asks; of one screen or of all."""
    query: ViewsQuery = call.query
    keys = await services.store.query(partial(keys_of, number=call.organization.number, member=member_of(call)))
    found = [view for view in await all_in_slices(services.world, services.store, keys, views_at) if view is not None]
    wanted = [view for view in found if query.screen in (UNSET, view.screen)]
    return ViewsBody(tuple(map(_row, sorted(wanted, key=lambda view: (view.name, view.id)))))


async def read_view(services: Services, call: Call) -> ViewBody | Refusal:
    """`GET /console/api/views/{view_id}`: one of the organization, or of the member who asks. `404 not_found`."""
    number, view_id = call.organization.number, call.path["view_id"]
    found = await services.store.query(partial(find_view, number=number, view_id=view_id, member=member_of(call)))
    return Refusal("not_found") if found is None else _row(found[1])


async def create_view(services: Services, call: Call) -> ViewBody | Refusal:
    """`POST /console/api/views`: `201` with the new view. A management key has none of its own: `422`
    (`invalid_value`). `409 view_exists` or `view_limit`.
    """
    body: NewViewBody = call.body
    member = member_of(call)
    if body.is_shared and not _shares(call):
        return Refusal("insufficient_role", explanation=NOT_FOR_VIEWERS)
    if not body.is_shared and member is None:
        return invalid("is_shared", "invalid_value")
    if not is_name(body.name):
        return invalid("name", "invalid_value")
    if sum(len(text.encode()) for parameter in body.query.items() for text in parameter) > MAX_QUERY_BYTES:
        return invalid("query", "too_long")
    view = View(
        id=ordered_id("view", call.at_ms, services.world.entropy(16)),
        name=body.name,
        screen=body.screen,
        query=tuple(body.query.items()),
        saved_at_ms=call.at_ms,
        owner=None if body.is_shared else member,
        saved_by=member,
    )
    made = await change(services, call, partial(save_view, number=call.organization.number, view=view))
    return made if isinstance(made, Refusal) else _row(made)


async def delete_view(services: Services, call: Call) -> Refusal | None:
    """`DELETE /console/api/views/{view_id}`: `204`. `404 not_found`; `403 insufficient_role` for a viewer and one of
    the organization.
    """
    number, view_id = call.organization.number, call.path["view_id"]

    def job(transaction: Transaction) -> Refusal | None:
        found = find_view(transaction, number, view_id, member_of(call))
        if found is None:
            return Refusal("not_found")
        key, view = found
        if view.owner is None and not _shares(call):
            return Refusal("insufficient_role", explanation=NOT_FOR_VIEWERS)
        transaction.delete(SAVED_VIEWS, *key)
        return None

    refusal = await change(services, call, job, may_use_reserve=True)
    return refusal if isinstance(refusal, Refusal) else None


NOT_FOR_VIEWERS = "A viewer keeps views of its own, and changes none of the organization."


def _shares(call: Call) -> bool:
    return may(caller_of(call).key.role, "judge")


_route = partial(console_route, variables={"view_id": Annotated[str, about("Id of the view.", _AN_ID)]})
ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="listConsoleViews",
        path="/views",
        summary="List saved views",
        description="Filters by a name: those of the organization, and of a member its own.",
        handler=list_views,
        query=ViewsQuery,
    ),
    _route(
        operation_id="createConsoleView",
        method="POST",
        path="/views",
        summary="Save a view",
        description=(
            "For the organization, which a viewer may not, or for oneself, which a management key cannot. An "
            "organization has at most 200, and each member 50 of its own. One that names a visitor or an account goes "
            "with its erasure, and a member's own with the member."
        ),
        handler=create_view,
        needs="read",
        audited=Audited(made="id", withholds=frozenset({"name", "query"})),
        body=NewViewBody,
        status=201,
        errors=("view_exists", "view_limit", "insufficient_role"),
    ),
    _route(
        operation_id="getConsoleView",
        path="/views/{view_id}",
        summary="Read a saved view",
        handler=read_view,
        errors=("not_found",),
    ),
    _route(
        operation_id="deleteConsoleView",
        method="DELETE",
        path="/views/{view_id}",
        summary="Delete a saved view",
        handler=delete_view,
        needs="read",
        status=204,
        errors=("not_found", "insufficient_role"),
    ),
)
