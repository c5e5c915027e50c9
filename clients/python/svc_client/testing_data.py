"""What the service has: operations, errors, signals, fields of an event.

Generated from docs/openapi.json and the catalog of signals: `make reference`.
"""

from __future__ import annotations

from typing import Any, TypedDict

from svc_client.types import EventTriggerBody, ShadowBody, VelocityBody

OPERATIONS: dict[str, tuple[str, str, int]] = {
    "identify": ("POST", "/identify", 200),
    "issueAttestationChallenge": ("POST", "/attestation/challenge", 200),
    "supplementEvent": ("POST", "/events/{request_id}/supplement", 202),
    "listEvents": ("GET", "/events", 200),
    "getEvent": ("GET", "/events/{request_id}", 200),
    "updateEvent": ("PATCH", "/events/{request_id}", 200),
    "listChanges": ("GET", "/changes", 200),
    "listAccounts": ("GET", "/accounts", 200),
    "getAccount": ("GET", "/accounts/{account_id}", 200),
    "listVisitors": ("GET", "/visitors", 200),
    "getVisitor": ("GET", "/visitors/{visitor_id}", 200),
    "getVerdictKeys": ("GET", "/organizations/{organization_id}/verdict-keys", 200),
    "getManagementKey": ("GET", "/management/key", 200),
    "listProxyKeys": ("GET", "/management/organizations/{organization_id}/proxy-credentials", 200),
    "issueProxyKey": ("POST", "/management/organizations/{organization_id}/proxy-credentials", 201),
    "revokeProxyKey": (
        "POST",
        "/management/organizations/{organization_id}/proxy-credentials/{proxy_credential_id}/revoke",
        200,
    ),
    "listSdkKeys": ("GET", "/management/organizations/{organization_id}/sdk-keys", 200),
    "issueSdkKey": ("POST", "/management/organizations/{organization_id}/sdk-keys", 201),
    "revokeSdkKey": ("POST", "/management/organizations/{organization_id}/sdk-keys/{key_id}/revoke", 200),
    "replaceSdkKeyOrigins": (
        "PUT",
        "/management/organizations/{organization_id}/sdk-keys/{key_id}/allowed-origins",
        200,
    ),
    "rotateVerdictKey": ("POST", "/management/organizations/{organization_id}/verdict-keys/rotate", 200),
    "countBrowserKeys": ("GET", "/management/organizations/{organization_id}/browser-keys", 200),
    "revokeBrowserKeys": ("POST", "/management/organizations/{organization_id}/browser-keys/revoke", 200),
    "listWebhooks": ("GET", "/management/organizations/{organization_id}/webhooks", 200),
    "createWebhook": ("POST", "/management/organizations/{organization_id}/webhooks", 201),
    "updateWebhook": ("PATCH", "/management/organizations/{organization_id}/webhooks/{webhook_id}", 200),
    "deleteWebhook": ("DELETE", "/management/organizations/{organization_id}/webhooks/{webhook_id}", 204),
    "rotateWebhookSecret": (
        "POST",
        "/management/organizations/{organization_id}/webhooks/{webhook_id}/rotate-secret",
        200,
    ),
    "testWebhook": ("POST", "/management/organizations/{organization_id}/webhooks/{webhook_id}/test", 202),
    "redeliverWebhook": ("POST", "/management/organizations/{organization_id}/webhooks/{webhook_id}/redeliver", 202),
    "listWebhookDeliveries": ("GET", "/management/organizations/{organization_id}/webhook-deliveries", 200),
    "getRules": ("GET", "/management/organizations/{organization_id}/rules", 200),
    "saveRules": ("PUT", "/management/organizations/{organization_id}/rules", 200),
    "previewRules": ("POST", "/management/organizations/{organization_id}/rules/preview", 200),
    "listRuleProposals": ("GET", "/management/organizations/{organization_id}/rule-proposals", 200),
    "proposeRules": ("POST", "/management/organizations/{organization_id}/rule-proposals", 201),
    "dismissRuleProposal": ("DELETE", "/management/organizations/{organization_id}/rule-proposals/{proposal_id}", 204),
    "getOrganizationRiskWeights": ("GET", "/management/organizations/{organization_id}/risk-weights", 200),
    "saveOrganizationRiskWeights": ("PUT", "/management/organizations/{organization_id}/risk-weights/{platform}", 200),
    "restoreOrganizationRiskWeights": (
        "DELETE",
        "/management/organizations/{organization_id}/risk-weights/{platform}",
        200,
    ),
    "getSdkKeyRiskWeights": ("GET", "/management/organizations/{organization_id}/sdk-keys/{key_id}/risk-weights", 200),
    "saveSdkKeyRiskWeights": (
        "PUT",
        "/management/organizations/{organization_id}/sdk-keys/{key_id}/risk-weights/{platform}",
        200,
    ),
    "restoreSdkKeyRiskWeights": (
        "DELETE",
        "/management/organizations/{organization_id}/sdk-keys/{key_id}/risk-weights/{platform}",
        200,
    ),
    "listRiskSignals": ("GET", "/management/organizations/{organization_id}/risk-signals", 200),
    "getWeightsSuggestion": (
        "GET",
        "/management/organizations/{organization_id}/risk-weights/{platform}/suggestion",
        200,
    ),
    "listLists": ("GET", "/management/organizations/{organization_id}/lists", 200),
    "createList": ("POST", "/management/organizations/{organization_id}/lists", 201),
    "getList": ("GET", "/management/organizations/{organization_id}/lists/{list_id}", 200),
    "updateList": ("PATCH", "/management/organizations/{organization_id}/lists/{list_id}", 200),
    "deleteList": ("DELETE", "/management/organizations/{organization_id}/lists/{list_id}", 204),
    "listListEntries": ("GET", "/management/organizations/{organization_id}/lists/{list_id}/entries", 200),
    "addListEntries": ("POST", "/management/organizations/{organization_id}/lists/{list_id}/entries", 200),
    "removeListEntries": ("DELETE", "/management/organizations/{organization_id}/lists/{list_id}/entries", 204),
    "labelEvent": ("PUT", "/management/organizations/{organization_id}/events/{request_id}/label", 200),
    "getPerformance": ("GET", "/management/organizations/{organization_id}/performance", 200),
    "listReviews": ("GET", "/management/organizations/{organization_id}/reviews", 200),
    "openReview": ("POST", "/management/organizations/{organization_id}/reviews", 200),
    "getReview": ("GET", "/management/organizations/{organization_id}/reviews/{review_id}", 200),
    "assignReview": ("PATCH", "/management/organizations/{organization_id}/reviews/{review_id}", 200),
    "closeReview": ("POST", "/management/organizations/{organization_id}/reviews/{review_id}/close", 200),
    "reopenReview": ("POST", "/management/organizations/{organization_id}/reviews/{review_id}/reopen", 200),
    "listVisitorNotes": ("GET", "/management/organizations/{organization_id}/visitors/{visitor_id}/notes", 200),
    "createVisitorNote": ("POST", "/management/organizations/{organization_id}/visitors/{visitor_id}/notes", 201),
    "deleteVisitorNote": (
        "DELETE",
        "/management/organizations/{organization_id}/visitors/{visitor_id}/notes/{note_id}",
        204,
    ),
    "listAccountNotes": ("GET", "/management/organizations/{organization_id}/accounts/{account_id}/notes", 200),
    "createAccountNote": ("POST", "/management/organizations/{organization_id}/accounts/{account_id}/notes", 201),
    "deleteAccountNote": (
        "DELETE",
        "/management/organizations/{organization_id}/accounts/{account_id}/notes/{note_id}",
        204,
    ),
    "getSettings": ("GET", "/management/organizations/{organization_id}/settings", 200),
    "updateSettings": ("PATCH", "/management/organizations/{organization_id}/settings", 200),
    "listMembers": ("GET", "/management/organizations/{organization_id}/members", 200),
    "inviteMember": ("POST", "/management/organizations/{organization_id}/members", 201),
    "inviteMemberAgain": ("POST", "/management/organizations/{organization_id}/members/{member_id}/invitation", 200),
    "updateMember": ("PATCH", "/management/organizations/{organization_id}/members/{member_id}", 200),
    "removeMember": ("DELETE", "/management/organizations/{organization_id}/members/{member_id}", 204),
    "eraseVisitor": ("DELETE", "/management/organizations/{organization_id}/visitors/{visitor_id}", 204),
    "eraseAccount": ("DELETE", "/management/organizations/{organization_id}/accounts/{account_id}", 204),
    "getHealth": ("GET", "/healthz", 200),
    "getReadiness": ("GET", "/readyz", 200),
}
"""Operation -> its method, its path, and the status of its success."""
ERRORS: dict[str, tuple[int, str]] = {
    "bad_request": (400, "The request is not well-formed HTTP. Send one Content-Length or chunked body, and one Host."),
    "unauthorized": (
        401,
        "The key is not valid for this request: it is unknown, revoked or expired, or does not allow this origin or platform (secret and management keys allow no origin). The log of the service has the reason, under this request id.",
    ),
    "billing_blocked": (402, "This organization's traffic is blocked. Contact the operator of this service."),
    "no_credit": (402, "The organization's credit is used up. Ask the operator of this service for more."),
    "request_timeout": (408, "The request did not arrive in time. Send it again, without pauses."),
    "payload_too_large": (413, "The body is over 1 MiB, measured after decompression. Send less."),
    "unsupported_media_type": (415, "Send JSON as application/json, plain or with Content-Encoding: gzip."),
    "validation_error": (422, "The request is not valid. Fix the fields listed in `details` and retry."),
    "idempotency_key_too_long": (422, "The Idempotency-Key is over 255 characters. Send a shorter one."),
    "invalid_visitor_metadata": (
        422,
        "The forwarded visitor details are missing or malformed. Send x-svc-visitor-ip with one IPv4 or IPv6 address, and well-formed x-svc-visitor-origin and x-svc-visitor-user-agent if any.",
    ),
    "rate_limited": (429, "The organization is over its rate limit. Wait for the seconds in Retry-After."),
    "header_fields_too_large": (431, "The header fields are too large. Send fewer or shorter ones."),
    "internal_error": (500, "The service failed on this request. Quote the request id to its operator."),
    "service_unavailable": (
        503,
        "The service cannot take this request now. Send it again soon, with the same Idempotency-Key if it had one.",
    ),
    "supplement_conflict": (409, "Another deferred report was accepted for this request, and stays."),
    "invalid_supplement": (
        422,
        "The token does not hold for this request, key and origin, or is over 24 hours old, or signals.tier is not 'deferred'.",
    ),
    "invalid_request_id": (
        422,
        "The path names no request id. Request ids are UUIDs such as 019b76da-a800-7000-8000-000000000000.",
    ),
    "invalid_window": (
        422,
        "The window, page or filter is not valid. The window lies within the time for which events are kept (30 days, unless the operator says more) and has 30 days at most, its start before its end, both RFC 3339 with + sent as %2B; at most 10,000 events come before a page; level is low, medium or high; visitor is a visitor id.",
    ),
    "event_not_found": (
        404,
        "There is no such event in the key's environment, or it is older than events are kept (30 days, unless the operator says more).",
    ),
    "not_found": (404, "There is nothing at this path. Check the path and the identifiers in it."),
    "insufficient_role": (
        403,
        "The role of this key or member does not allow this. An admin may do it, or give a role that may.",
    ),
    "key_limit": (409, "The organization has 200 active keys, and may not have more. Revoke one first."),
    "proxy_key_revoked": (409, "This proxy key was revoked before. There is nothing left to do."),
    "sdk_key_revoked": (409, "This SDK key was revoked, which is for good. Issue a new key."),
    "webhook_limit": (409, "The organization has ten webhook endpoints, and may not have more. Delete one first."),
    "webhook_unsigned": (
        409,
        "Chat formats are unsigned: the endpoint has no secret. Change its format to json first.",
    ),
    "webhook_busy": (409, "A test or redelivery is on its way to this endpoint. Wait until it has ended."),
    "webhook_paused": (409, "The endpoint is paused. Resume it first."),
    "revision_conflict": (
        409,
        "Somebody else has saved since the revision you sent. Read the weights again and repeat your change.",
    ),
    "proposal_limit": (409, "There are 20 proposals, and may not be more. Dismiss one first."),
    "list_exists": (409, "The organization has a list of this name. Choose another name."),
    "list_limit": (409, "The organization has 100 lists or 100,000 entries, and may not have more. Delete some first."),
    "list_permanent": (
        409,
        "This list is one of the six that every organization has, which are neither deleted nor renamed. Remove its entries instead.",
    ),
    "list_in_use": (
        409,
        "A rule, or the filter of a webhook endpoint, names this list. Take it out of that first, also where the rule is off.",
    ),
    "review_closed": (409, "This review is closed. Open it again to change it."),
    "review_open": (409, "This review, or another one of its visitor and account, is open."),
    "note_limit": (409, "There are 100 notes about it, and may not be more. Delete one first."),
    "member_exists": (
        409,
        "The organization has a member with this address. Give it a new link, change it, or remove it first.",
    ),
    "member_limit": (409, "The organization has 500 members, and may not have more. Remove one first."),
    "member_suspended": (409, "This member is suspended. Set its status to active first."),
    "last_admin": (
        409,
        "It is the organization's last active admin. Make somebody else an admin first, or use a management key or the command line.",
    ),
    "member_invited": (409, "This member has not accepted the invitation yet. Remove it to take the invitation back."),
}
"""Code -> its status, and the message for people."""
SIGNALS: dict[str, tuple[str, dict[str, int]]] = {
    "automation": ("bot", {"web": 40, "android": 40, "ios": 40}),
    "headless": ("bot", {"web": 30}),
    "bot_user_agent": ("bot", {"web": 20, "android": 20, "ios": 20}),
    "spoofed_crawler": ("bot", {"web": 40, "android": 40, "ios": 40}),
    "ai_agent": ("bot", {"web": 10, "android": 10, "ios": 10}),
    "search_crawler": ("bot", {"web": 0, "android": 0, "ios": 0}),
    "anti_detect_browser": ("tampering", {"web": 30}),
    "browser_tampering": ("tampering", {"web": 15}),
    "os_mismatch": ("tampering", {"web": 12, "android": 12, "ios": 12}),
    "engine_mismatch": ("tampering", {"web": 12}),
    "gpu_mismatch": ("tampering", {"web": 8}),
    "developer_tools": ("tampering", {"web": 6, "android": 6}),
    "app_tampering": ("tampering", {"android": 25, "ios": 25}),
    "forged_report": ("tampering", {"web": 25}),
    "proof_failed": ("tampering", {"web": 20}),
    "tor": ("tor", {"web": 25, "android": 25, "ios": 25}),
    "vpn_public": ("vpn", {"web": 8, "android": 8, "ios": 8}),
    "vpn_timezone_mismatch": ("vpn", {"web": 5, "android": 5, "ios": 5}),
    "vpn_os_mismatch": ("vpn", {"web": 5, "android": 5, "ios": 5}),
    "vpn_auxiliary_mobile": ("vpn", {"android": 10, "ios": 10}),
    "vpn_relay": ("vpn", {"web": 3, "android": 3, "ios": 3}),
    "vpn_low": ("vpn", {"web": 4, "android": 4, "ios": 4}),
    "vpn_medium": ("vpn", {"web": 9, "android": 9, "ios": 9}),
    "vpn_high": ("vpn", {"web": 15, "android": 15, "ios": 15}),
    "public_proxy": ("proxy", {"web": 20, "android": 20, "ios": 20}),
    "hosting": ("proxy", {"web": 15, "android": 15, "ios": 15}),
    "residential_proxy_listed": ("residential_proxy", {"web": 15, "android": 15, "ios": 15}),
    "residential_proxy_behavior": ("residential_proxy", {"web": 10, "android": 10, "ios": 10}),
    "residential_proxy_low": ("residential_proxy", {"web": 5, "android": 5, "ios": 5}),
    "residential_proxy_medium": ("residential_proxy", {"web": 10, "android": 10, "ios": 10}),
    "residential_proxy_high": ("residential_proxy", {"web": 18, "android": 18, "ios": 18}),
    "ip_attack_source": ("ip_reputation", {"web": 20, "android": 20, "ios": 20}),
    "ip_email_spam": ("ip_reputation", {"web": 15, "android": 15, "ios": 15}),
    "virtual_machine": ("environment", {"web": 15}),
    "emulator": ("environment", {"android": 25}),
    "simulator": ("environment", {"ios": 25}),
    "cloned_app": ("environment", {"android": 20}),
    "rooted": ("integrity", {"android": 15}),
    "jailbroken": ("integrity", {"ios": 15}),
    "frida": ("integrity", {"android": 30, "ios": 30}),
    "hooked": ("integrity", {"android": 25, "ios": 25}),
    "debugger": ("integrity", {"android": 10, "ios": 10}),
    "developer_options": ("integrity", {"android": 0}),
    "unofficial_store": ("integrity", {"android": 0}),
    "mitm_attack": ("integrity", {"android": 25, "ios": 25}),
    "attestation_failed": ("integrity", {"android": 30, "ios": 30}),
    "attestation_missing": ("integrity", {"android": 0, "ios": 0}),
    "factory_reset": ("integrity", {"android": 5, "ios": 5}),
    "clock_tampered": ("integrity", {"android": 0, "ios": 0}),
    "location_spoofing": ("location", {"android": 20, "ios": 20}),
    "incognito": ("privacy", {"web": 4}),
    "privacy_settings": ("privacy", {"web": 6}),
    "high_activity": ("velocity", {"web": 8, "android": 8, "ios": 8}),
    "velocity_ip": ("velocity", {"web": 8, "android": 8, "ios": 8}),
    "velocity_country": ("velocity", {"web": 15, "android": 15, "ios": 15}),
    "storage_renewed": ("velocity", {"web": 10, "android": 10, "ios": 10}),
    "new_visitor_burst": ("velocity", {"web": 15, "android": 15, "ios": 15}),
    "token_conflict": ("velocity", {"web": 15, "android": 15, "ios": 15}),
    "network_new_for_visitor": ("velocity", {"web": 0, "android": 0, "ios": 0}),
    "replayed": ("replay", {"web": 40, "android": 40, "ios": 40}),
    "repeated_report": ("replay", {"web": 15, "android": 15, "ios": 15}),
    "repeated_rare_report": ("replay", {"web": 10, "android": 10, "ios": 10}),
    "key_shared": ("replay", {"web": 30}),
    "rare_device": ("rarity", {"web": 3, "android": 3, "ios": 3}),
    "unseen_rendering": ("rarity", {"web": 5}),
    "multi_account": ("account", {"web": 10, "android": 10, "ios": 10}),
    "account_testing": ("account", {"web": 30, "android": 30, "ios": 30}),
    "account_sharing": ("account", {"web": 0, "android": 0, "ios": 0}),
    "account_new_device": ("account", {"web": 5, "android": 5, "ios": 5}),
}
"""Signal -> its group, and its weight on each platform."""
EVENT_FIELDS: dict[str, bool] = {
    "visitor_is_new": False,
    "identifiable": False,
    "visitor_confidence": False,
    "proven": False,
    "state": False,
    "reason": True,
    "suspect_level": True,
    "occurred_at": False,
    "environment": False,
    "platform": False,
    "sdk_platform": False,
    "sdk_version": False,
    "origin": True,
    "tag": True,
    "account_id": True,
    "account_verified": True,
    "action": True,
    "label": True,
    "label_reason": True,
    "ip_address": False,
    "country_code": True,
    "country_name": True,
    "asn": True,
    "asn_name": True,
    "anonymity_network": True,
    "agent": True,
    "agent_version": True,
    "os": True,
    "device_kind": True,
    "visitor_kind": True,
    "suspect_score": False,
    "triggers": False,
    "has_document": False,
    "proof_covers": True,
    "velocity": True,
    "document": False,
    "shadow": True,
    "deferred_signals": True,
}
"""Field of an event that a test may set -> whether an event may be without it."""


class EventFields(TypedDict, total=False):
    """Fields of an event, as `get_event` has them. `None` leaves one out."""

    visitor_is_new: bool
    identifiable: bool
    visitor_confidence: int
    proven: bool
    state: str
    reason: str | None
    suspect_level: str | None
    occurred_at: str
    environment: str
    platform: str
    sdk_platform: str
    sdk_version: str
    origin: str | None
    tag: str | None
    account_id: str | None
    account_verified: bool | None
    action: str | None
    label: str | None
    label_reason: str | None
    ip_address: str
    country_code: str | None
    country_name: str | None
    asn: str | None
    asn_name: str | None
    anonymity_network: str | None
    agent: str | None
    agent_version: str | None
    os: str | None
    device_kind: str | None
    visitor_kind: str | None
    suspect_score: int | None
    triggers: list[EventTriggerBody]
    has_document: bool
    proof_covers: list[str] | None
    velocity: VelocityBody | None
    document: dict[str, Any] | None
    shadow: list[ShadowBody] | None
    deferred_signals: dict[str, Any] | None
