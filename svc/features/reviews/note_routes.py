"""Notes about visitors and accounts (decisions 14.5). The routes of both differ in their path alone."""

from __future__ import annotations

from functools import partial
from typing import Any

from svc.features.reviews.bodies import NewNoteBody, NoteBody, NotesBody, note_row
from svc.features.reviews.jobs import add_note, delete_note
from svc.features.reviews.queries import is_known, notes_of
from svc.features.reviews.reviews import Note
from svc.http.change import change, member_of
from svc.http.route import ORGANIZATION, Call, Route, Services
from svc.identify.model import Subject
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.refusals import Refusal


async def list_notes(services: Services, call: Call) -> NotesBody | Refusal:
    """`GET .../notes`: the notes about a visitor or an account, newest first. `404 not_found` for an unknown one."""
    number, (subject, subject_id) = call.organization.number, _about(call)

    def read(snapshot: Snapshot) -> list[Note] | None:
        if not is_known(snapshot, number, subject, subject_id):
            return None
        return notes_of(snapshot, number, subject, subject_id)

    found = await services.store.query(read)
    return Refusal("not_found") if found is None else NotesBody(tuple(map(note_row, reversed(found))))


async def create_note(services: Services, call: Call) -> NoteBody | Refusal:
    """`POST .../notes`: `201` with the new note. `404 not_found`, `409 note_limit`."""
    body: NewNoteBody = call.body
    number, (subject, subject_id) = call.organization.number, _about(call)
    entropy = services.world.entropy(16)

    def job(transaction: Transaction) -> Note | Refusal:
        if not is_known(transaction, number, subject, subject_id):
            return Refusal("not_found")
        return add_note(transaction, number, subject, subject_id, body.text, call.at_ms, entropy, member_of(call))

    made = await change(services, call, job)
    return made if isinstance(made, Refusal) else note_row(made)


async def remove_note(services: Services, call: Call) -> Refusal | None:
    """`DELETE .../notes/{note_id}`: `204`. `404 not_found`."""
    number, (subject, subject_id) = call.organization.number, _about(call)
    job = partial(delete_note, number=number, subject=subject, subject_id=subject_id, note_id=call.path["note_id"])
    refusal = await change(services, call, job, may_use_reserve=True)
    return refusal if isinstance(refusal, Refusal) else None


def _about(call: Call) -> tuple[Subject, str]:
    """Whom the path names."""
    if "visitor_id" in call.path:
        return "visitor", call.path["visitor_id"]
    return "account", call.path["account_id"]


def _routes(whom: str, path: str) -> tuple[Route, ...]:
    """The routes of notes about `whom`, `Visitor` or `Account`."""
    routes: dict[str, dict[str, Any]] = {
        f"list{whom}Notes": {"handler": list_notes, "response": NotesBody, "summary": f"List notes about {_A[whom]}"},
        f"create{whom}Note": {
            "method": "POST",
            "handler": create_note,
            "needs": "judge",
            "summary": f"Write a note about {_A[whom]}",
            "description": "At most 100. Notes are kept for 400 days; the erasure of their subject deletes them.",
            "body": NewNoteBody,
            "response": NoteBody,
            "status": 201,
            "errors": ("note_limit",),
        },
        f"delete{whom}Note": {
            "method": "DELETE",
            "handler": remove_note,
            "needs": "judge",
            "summary": f"Delete a note about {_A[whom]}",
            "status": 204,
        },
    }
    paths = (path, path, path + "/{note_id}")
    return tuple(
        Route(operation_id=name, path=ORGANIZATION + at, tag="Management: notes", kinds=("management",), **fields)
        for (name, fields), at in zip(routes.items(), paths, strict=True)
    )


_A = {"Visitor": "a visitor", "Account": "an account"}
ROUTES: tuple[Route, ...] = (
    *_routes("Visitor", "/visitors/{visitor_id}/notes"),
    *_routes("Account", "/accounts/{account_id}/notes"),
)
