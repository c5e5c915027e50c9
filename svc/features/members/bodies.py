"""Bodies of the routes of members, and of those by which a member comes in (decisions 15.2, 15.3)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.members.sign_in.passwords import LONGEST_PASSWORD, SHORTEST_PASSWORD
from svc.features.members.sign_in.second_factor import MAX_CODE_LENGTH
from svc.features.organizations.bodies import MemberId
from svc.kernel.access.members import LONGEST_EMAIL, LONGEST_MEMBER_NAME, Member, MemberStatus
from svc.kernel.access.roles import ROLES, Role
from svc.kernel.values.fields import A_TIME, VISIBLE, Time, Timestamp, about, open_to
from svc.kernel.values.struct_fields import body_of

EmailText = Annotated[str, about("E-mail address, in lower case. Nothing is sent there.", "ada@shop.example")]
MemberName = Annotated[str, about("For people.", "Ada Lovelace")]
NewPassword = Annotated[
    str,
    Meta(min_length=SHORTEST_PASSWORD, max_length=LONGEST_PASSWORD),
    about(
        "The member's password from now on: none of the most common ones, and not the member's address or name.",
        "correct horse battery staple",
    ),
]
OwnPassword = Annotated[str, Meta(max_length=1024), about("The member's password.", "correct horse battery staple")]
NewMemberName = Annotated[MemberName, Meta(max_length=LONGEST_MEMBER_NAME, pattern=VISIBLE)]
MemberRole = Annotated[Role, about("What the member may do.", "analyst")]
SetStatus = Annotated[
    Literal["active", "suspended"], about("`suspended`: may not sign in, and its sessions end.", "suspended")
]


class MemberBody(msgspec.Struct, frozen=True, kw_only=True):
    """A member of the organization."""

    id: Annotated[MemberId, about("Its id.")]
    email: EmailText
    name: MemberName
    role: Annotated[Role, about("What the member may do.", "analyst", form=open_to(*ROLES))]
    status: Annotated[
        MemberStatus,
        about(
            "`invited` until it comes in for the first time.",
            "active",
            form=open_to("invited", "active", "suspended"),
        ),
    ]
    has_totp: Annotated[bool, about("Whether it needs a one-time code beside its password.", True)]
    has_password: Annotated[bool, about("Whether it can sign in by a password.", True)]
    has_provider: Annotated[bool, about("Whether it has signed in by the OpenID provider.", False)]
    created_at: Annotated[Timestamp, about("When it was made.")]
    created_by: Annotated[MemberId, about("The member who invited it; left out where nobody did.")] | UnsetType = UNSET
    last_signed_in_at: Annotated[Time | None, about("When it signed in last.", A_TIME)]


class MembersBody(msgspec.Struct, frozen=True):
    """The members of an organization."""

    members: Annotated[tuple[MemberBody, ...], about("Oldest first.")]


class InviteMemberBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `inviteMember`."""

    email: Annotated[EmailText, Meta(max_length=LONGEST_EMAIL)]
    name: NewMemberName
    role: MemberRole


class InvitedMemberBody(msgspec.Struct, frozen=True, kw_only=True):
    """A member with its invitation, which is in this response and in no other."""

    member: Annotated[MemberBody, about("The member.")]
    invitation_url: Annotated[
        str,
        about("Hand it to the member; it works once. Shown this once.", "https://svc.example.com/console#svc_ci_..."),
    ]
    expires_at: Annotated[Timestamp, about("Until when it works, seven days from now.")]


class UpdateMemberBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `updateMember`: what is left out stays."""

    name: NewMemberName | UnsetType = UNSET
    role: MemberRole | UnsetType = UNSET
    status: SetStatus | UnsetType = UNSET


InvitationToken = Annotated[str, about("What follows `#` in the invitation's link; it works once.", "svc_ci_...")]


class ReadInvitationBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `readInvitation`."""

    token: InvitationToken


class InvitationBody(msgspec.Struct, frozen=True, kw_only=True):
    """What an invitation is to."""

    organization: Annotated[str, about("Name of the organization.", "Example Shop")]
    email: EmailText
    name: MemberName
    role: Annotated[Role, about("What the member may do.", "analyst", form=open_to(*ROLES))]
    expires_at: Annotated[Timestamp, about("Until when it works.")]


class AcceptInvitationBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `acceptInvitation`."""

    token: InvitationToken
    password: NewPassword


class OfferedTotpBody(msgspec.Struct, frozen=True):
    """Response of `offerTotp`."""

    secret: Annotated[str, about("To type into an authenticator. Shown this once.", "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")]
    url: Annotated[
        str, about("The same as a link for authenticators.", "otpauth://totp/svc:ada%40shop.example?secret=...")
    ]


class ProofBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `offerTotp` and `replaceRecoveryCodes`: the password, or a code where the member has set them up; one of
    the two.
    """

    password: OwnPassword | UnsetType = UNSET
    code: (
        Annotated[
            str, Meta(max_length=MAX_CODE_LENGTH), about("A one-time code, or a recovery code in its place.", "287082")
        ]
        | UnsetType
    ) = UNSET


class RecoveryCodesBody(msgspec.Struct, frozen=True):
    """Response of `confirmTotp` and `replaceRecoveryCodes`."""

    recovery_codes: Annotated[
        tuple[str, ...],
        about(
            "Each signs in once in the place of a one-time code. Former ones are void. Shown this once.",
            ["k3x7q-mz2ua"],
        ),
    ]


class ChangePasswordBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `changePassword`."""

    password: OwnPassword
    new_password: NewPassword


class ConfirmTotpBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `confirmTotp`."""

    code: Annotated[str, Meta(max_length=16), about("A code that the authenticator shows now.", "287082")]


def member_row(member: Member) -> MemberBody:
    """Return a stored member, without anything by which it signs in."""
    return body_of(
        MemberBody,
        member,
        has_password=member.password is not None,
        has_provider=member.subject is not None,
    )
