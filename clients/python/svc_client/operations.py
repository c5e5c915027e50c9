"""The operations of the service, one method each, which blocks. Generated from docs/openapi.json: `make reference`."""

from __future__ import annotations

from typing import Any, Literal

from svc_client.call import UNSET, Call, Unset, given, new_idempotency_key, path
from svc_client.types import (
    AccountAnswer,
    AccountsAnswer,
    AddedBody,
    BrowserKeysBody,
    ChallengeAnswer,
    ChangesAnswer,
    DuplicateAnswer,
    EntriesBody,
    EventDetailBody,
    EventsAnswer,
    HealthBody,
    IdentifyAnswer,
    InvitedMemberBody,
    IssuedProxyKeyBody,
    IssuedSdkKeyBody,
    IssuedWebhookBody,
    LabelAnswer,
    ListBody,
    ListsBody,
    ManagementKeyBody,
    MemberBody,
    MembersBody,
    NewAccountThresholds,
    NewEntryBody,
    NoteBody,
    NotesBody,
    PerformanceBody,
    ProposalBody,
    ProposalsBody,
    ProxyKeyBody,
    ProxyKeysBody,
    QueuedDeliveryBody,
    ReadinessBody,
    ReviewAnswer,
    ReviewsBody,
    RiskWeightsBody,
    RuleFields,
    RulesAnswer,
    RulesPreview,
    Sdk,
    SdkKeyBody,
    SdkKeysBody,
    SeenVisitorAnswer,
    SeenVisitorsAnswer,
    SettingsBody,
    SignalsBody,
    SuggestionBody,
    SupplementAnswer,
    VerdictKeysBody,
    WebhookBody,
    WebhookDeliveriesBody,
    WebhooksBody,
)


class Operations:
    """Every operation but those of the console. Each raises `ApiError` where the service refuses, and
    `UnreachableError` where it does not respond.
    """

    def _send(self, call: Call) -> Any:
        """The decoded body of the response; `None` without one."""
        raise NotImplementedError

    def identify(
        self,
        *,
        sdk: Sdk,
        signals: dict[str, Any],
        tag: str | None = None,
        account_id: str | None = None,
        action: str | None = None,
        verdict: bool | None = None,
        idempotency_key: str | None = None,
        replay: str | None = None,
        sdk_platform: str | None = None,
        visitor_ip: str | None = None,
        visitor_origin: str | None = None,
        visitor_user_agent: str | None = None,
        visitor_headers: str | None = None,
        public_key: str | None = None,
    ) -> IdentifyAnswer | DuplicateAnswer:
        """Identify a visitor.

        The response is sent once everything that it changes is stored. Retry with the same `Idempotency-Key`:
        what was stored is not identified or charged again. A body may be compressed (`Content-Encoding: gzip`),
        up to 1 MiB after decompression. Proxy keys go into `x-api-key` as the others do.

        Args:
            sdk: The SDK that collected the report.
            signals: The report that an SDK collected. What is in it is not a public contract.
            tag: The caller's own reference, shown again on the event and in webhooks.
            account_id: The customer's id of the account that the visitor acts for. Opaque: no e-mail address.
            action: What the visitor does, such as `sign_up`, `log_in` or `checkout`.
            verdict: Whether to respond with a signed `verdict`, too. Default: `false`.
            idempotency_key: Makes a retry safe: a request whose key was used in the last 24 hours is a
                duplicate and costs nothing. Its scope is the organization with all its environments: use random
                keys, or keys unique across environments.
            replay: `full`: a duplicate within a minute of its original, by the same key and from the same
                origin, gets the original's whole response and `duplicate: true`, if it comes from the same
                address or has the same `signals`. For a retry whose first response was lost or late.
            sdk_platform: Platform of the SDK, where the body does not say.
            visitor_ip: From a proxy key (required) or a secret key: the visitor's IPv4 or IPv6 address. With
                any other key it is ignored, and so are the other `x-svc-visitor-` headers.
            visitor_origin: The site that the visitor is at.
            visitor_user_agent: The visitor's user agent.
            visitor_headers: The visitor's `accept-language`, `sec-ch-ua...` and `sec-fetch-...` headers as a
                JSON object of texts. Without them `forged_report` stays silent.
            public_key: From a proxy key: the visitor's public key, whose origins, platforms and weights then
                apply.
        """
        return self._send(
            Call(
                "POST",
                "/identify",
                headers=given(
                    {
                        "Idempotency-Key": idempotency_key or new_idempotency_key(),
                        "x-svc-replay": replay or "full",
                        "x-svc-sdk-platform": sdk_platform,
                        "x-svc-visitor-ip": visitor_ip,
                        "x-svc-visitor-origin": visitor_origin,
                        "x-svc-visitor-user-agent": visitor_user_agent,
                        "x-svc-visitor-headers": visitor_headers,
                        "x-svc-public-key": public_key,
                    }
                ),
                body=given(
                    {
                        "sdk": sdk,
                        "signals": signals,
                        "tag": tag,
                        "account_id": account_id,
                        "action": action,
                        "verdict": verdict,
                    }
                ),
                is_repeatable=True,
            )
        )

    def issue_attestation_challenge(self, *, sdk_platform: str | None = None) -> ChallengeAnswer:
        """Issue an attestation challenge.

        For an app that proves its device: the challenge goes into the next report, within five minutes, once.

        Args:
            sdk_platform: Platform of the SDK, where the body does not say.
        """
        return self._send(Call("POST", "/attestation/challenge", headers=given({"x-svc-sdk-platform": sdk_platform})))

    def supplement_event(
        self,
        request_id: str,
        *,
        token: str,
        sdk: Sdk,
        signals: dict[str, Any],
        sdk_platform: str | None = None,
        visitor_ip: str | None = None,
        visitor_origin: str | None = None,
        visitor_user_agent: str | None = None,
        visitor_headers: str | None = None,
        public_key: str | None = None,
    ) -> SupplementAnswer:
        """Send the deferred report of an identification.

        What takes long to collect may follow within 24 hours, from the same key and origin. It is kept with the
        event and changes nothing else. The same report again is taken as a duplicate. A secret or proxy key
        that identified sends it with the same forwarded origin, and a proxy key with `x-svc-visitor-ip` again.
        An app, which has no origin, names its platform again in `sdk.platform` or `x-svc-sdk-platform`.

        Args:
            request_id: UUIDv7 of the request; it sorts by time.
            token: The `deferred_token` of the identification.
            sdk: The SDK that collected the report.
            signals: The deferred report that an SDK collected. What is in it is not a public contract.
            sdk_platform: Platform of the SDK, where the body does not say.
            visitor_ip: From a proxy key (required) or a secret key: the visitor's IPv4 or IPv6 address. With
                any other key it is ignored, and so are the other `x-svc-visitor-` headers.
            visitor_origin: The site that the visitor is at.
            visitor_user_agent: The visitor's user agent.
            visitor_headers: The visitor's `accept-language`, `sec-ch-ua...` and `sec-fetch-...` headers as a
                JSON object of texts. Without them `forged_report` stays silent.
            public_key: From a proxy key: the visitor's public key, whose origins, platforms and weights then
                apply.
        """
        return self._send(
            Call(
                "POST",
                path("/events/{}/supplement", request_id),
                headers=given(
                    {
                        "x-svc-sdk-platform": sdk_platform,
                        "x-svc-visitor-ip": visitor_ip,
                        "x-svc-visitor-origin": visitor_origin,
                        "x-svc-visitor-user-agent": visitor_user_agent,
                        "x-svc-visitor-headers": visitor_headers,
                        "x-svc-public-key": public_key,
                    }
                ),
                body=given({"token": token, "sdk": sdk, "signals": signals}),
                is_repeatable=True,
            )
        )

    def list_events(
        self,
        *,
        visitor: str | None = None,
        level: Literal["low", "medium", "high"] | None = None,
        tag: str | None = None,
        ip_address: str | None = None,
        country: str | None = None,
        signal: Literal[
            "automation",
            "headless",
            "bot_user_agent",
            "spoofed_crawler",
            "ai_agent",
            "search_crawler",
            "anti_detect_browser",
            "browser_tampering",
            "os_mismatch",
            "engine_mismatch",
            "gpu_mismatch",
            "developer_tools",
            "app_tampering",
            "forged_report",
            "proof_failed",
            "tor",
            "vpn_public",
            "vpn_timezone_mismatch",
            "vpn_os_mismatch",
            "vpn_auxiliary_mobile",
            "vpn_relay",
            "vpn_low",
            "vpn_medium",
            "vpn_high",
            "public_proxy",
            "hosting",
            "residential_proxy_listed",
            "residential_proxy_behavior",
            "residential_proxy_low",
            "residential_proxy_medium",
            "residential_proxy_high",
            "ip_attack_source",
            "ip_email_spam",
            "virtual_machine",
            "emulator",
            "simulator",
            "cloned_app",
            "rooted",
            "jailbroken",
            "frida",
            "hooked",
            "debugger",
            "developer_options",
            "unofficial_store",
            "mitm_attack",
            "attestation_failed",
            "attestation_missing",
            "factory_reset",
            "clock_tampered",
            "location_spoofing",
            "incognito",
            "privacy_settings",
            "high_activity",
            "velocity_ip",
            "velocity_country",
            "storage_renewed",
            "new_visitor_burst",
            "token_conflict",
            "network_new_for_visitor",
            "replayed",
            "repeated_report",
            "repeated_rare_report",
            "key_shared",
            "rare_device",
            "unseen_rendering",
            "multi_account",
            "account_testing",
            "account_sharing",
            "account_new_device",
        ]
        | None = None,
        kind: Literal["human", "ai_bot", "automation", "search_crawler"] | None = None,
        account_id: str | None = None,
        action: str | None = None,
        asn: str | None = None,
        decision: Literal["allow", "review", "challenge", "block"] | None = None,
        label: Literal["fraud", "legitimate"] | None = None,
        rule: str | None = None,
        shadow: bool | None = None,
        group: Literal[
            "bot",
            "tampering",
            "tor",
            "vpn",
            "proxy",
            "residential_proxy",
            "ip_reputation",
            "environment",
            "integrity",
            "location",
            "privacy",
            "velocity",
            "replay",
            "rarity",
            "account",
        ]
        | None = None,
        from_: str | None = None,
        to: str | None = None,
        page: int | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        order: Literal["newest", "oldest"] | None = None,
        after: str | None = None,
    ) -> EventsAnswer:
        """List events.

        Newest first, of the organization and environment of the key, of at most 30 days at once, as far back as
        events are kept: 30 days, unless the operator says more. Without `from` the window begins 24 hours
        before its end. Each row has the verdict of identify, with the signals by name under `signals` and their
        groups under `triggers`. Filters may be combined. `next_cursor` leads to the next page, in the same
        window and with the same filters, and is left out on the last one; `page` counts pages instead, at most
        10,000 events deep. A page of several filters that are rarely met together may be short, or empty, and
        still have a `next_cursor`: a request looks at no more than 20,000 events. `rule` lists what a rule
        decided, with `shadow=true` what it matched in shadow mode. With `order=oldest` the list is a feed: each
        event once, oldest first, from the oldest that is kept or from `from`, and then behind `after`. No event
        comes behind a `next_cursor`, of which each page has one: go on with it, and wait a second where
        `has_more` is false. An event comes about two seconds after its arrival; one that was stored later comes
        when it is, after younger ones. `to`, `page` and `cursor` are not for a feed, nor are filters on what an
        event may get later: `account_id`, `action`, `tag`, `label` and `rule` are `not_with_order`.

        Args:
            visitor: Only events of this visitor.
            level: Only events of this suspect level.
            tag: Only events with this tag.
            ip_address: Only events from this IPv4 or IPv6 address.
            country: Only events from this country: two letters.
            signal: Only events in which this signal fired.
            kind: Only events of this kind of visitor.
            account_id: Only events of this account.
            action: Only events with this action.
            asn: Only events from this autonomous system.
            decision: Only events with this decision.
            label: Only events with this label.
            rule: Only events that the rule with this id decided, also where it was deleted since.
            shadow: With `rule`: only events that the rule matched in shadow mode instead.
            group: Only events in which any signal of this group fired.
            from_: Start of the window, inclusive; 24 hours before its end when left out.
            to: End of the window, exclusive; now when left out.
            page: The first page when it and `cursor` are left out.
            cursor: `next_cursor` of the page before; the first page when left out.
            limit: How many per page, at most.
            order: `oldest` reads the feed; `newest` when left out.
            after: With `order=oldest`: `next_cursor` of the page before; from the oldest when left out.
        """
        return self._send(
            Call(
                "GET",
                "/events",
                query=given(
                    {
                        "visitor": visitor,
                        "level": level,
                        "tag": tag,
                        "ip_address": ip_address,
                        "country": country,
                        "signal": signal,
                        "kind": kind,
                        "account_id": account_id,
                        "action": action,
                        "asn": asn,
                        "decision": decision,
                        "label": label,
                        "rule": rule,
                        "shadow": shadow,
                        "group": group,
                        "from": from_,
                        "to": to,
                        "page": page,
                        "cursor": cursor,
                        "limit": limit,
                        "order": order,
                        "after": after,
                    }
                ),
                is_repeatable=True,
            )
        )

    def get_event(self, request_id: str) -> EventDetailBody:
        """Read one event.

        With the archived submission under `document`, and the deferred report when one arrived. The document
        also says why the verdict is what it is: `evidence` of each signal, `linkage` (how the visitor was
        found, how sure that is), `changes` since the visitor's last report, and the result of its
        `attestation`. Its contents are not a public contract.

        Args:
            request_id: UUIDv7 of the request; it sorts by time.
        """
        return self._send(Call("GET", path("/events/{}", request_id), is_repeatable=True))

    def update_event(
        self,
        request_id: str,
        *,
        account_id: str | Unset | None = UNSET,
        action: str | Unset | None = UNSET,
        tag: str | Unset | None = UNSET,
        label: Literal["fraud", "legitimate"] | Unset | None = UNSET,
        label_reason: Literal[
            "account_takeover", "bot", "chargeback", "multi_account", "other", "promo_abuse", "scraping", "spam"
        ]
        | Unset
        | None = UNSET,
    ) -> EventDetailBody | LabelAnswer:
        """Set the account, the action, the tag or the label of an event.

        For what is known only afterwards, such as the account that a sign-up makes, or a chargeback. Fields
        that are left out stay, `null` removes one; the last writer wins. The event keeps its visitor, velocity,
        signals, score and price, and no webhook is sent; the counts of the account and the visitor follow. A
        label may be set for 400 days: of an event that is not readable any more the label alone, which is then
        the response.

        Args:
            request_id: UUIDv7 of the request; it sorts by time.
            account_id: The account; `null` removes it.
            action: The action; `null` removes it.
            tag: The tag; `null` removes it.
            label: What the event turned out to be, for 400 days; `null` removes it, and the reason with it.
            label_reason: Why it has that label; only with a label.
        """
        return self._send(
            Call(
                "PATCH",
                path("/events/{}", request_id),
                body=given(
                    {},
                    {
                        "account_id": account_id,
                        "action": action,
                        "tag": tag,
                        "label": label,
                        "label_reason": label_reason,
                    },
                ),
            )
        )

    def list_changes(self, *, after: str | None = None, limit: int | None = None) -> ChangesAnswer:
        """List changes of events.

        For a copy that follows the store: each event once as `event.created`, `event.updated` when its account,
        action, tag or label was set or removed, and `event.erased` when its visitor was erased; of the
        organization and environment of the key, in the order in which they were stored, each once. `event` is
        the event as it is when the page is read, and is left out once it is erased. Nothing comes behind a
        `next_cursor`, of which each page has one: go on with it as `after`, and wait a second where `has_more`
        is false. A change comes about two seconds after it was made, and is kept for as long as events are,
        from when it was made: start a new copy if its cursor is older: it has missed changes, erasures too.
        That events grow too old is no change. Cursors are not those of `GET /events`.

        Args:
            after: `next_cursor` of the page before; from the oldest that is kept when left out.
            limit: How many per page, at most.
        """
        return self._send(Call("GET", "/changes", query=given({"after": after, "limit": limit}), is_repeatable=True))

    def list_accounts(
        self,
        *,
        country: str | None = None,
        level: Literal["low", "medium", "high"] | None = None,
        q: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        min_visitors: int | None = None,
    ) -> AccountsAnswer:
        """List accounts.

        The one that was seen last first, as far back as events are kept. Those of production are apart; those
        of staging and development are together, by the environment of the key. Filters may be combined. A page
        with filters that few fit may be short, or empty, and still have a `next_cursor`: a request looks at no
        more than 5,000 events.

        Args:
            country: Only those seen from this country in 30 days: two letters.
            level: Only those whose events of the last 24 hours have this as their highest suspect level.
            q: Only those whose id begins with this.
            cursor: `next_cursor` of the page before; the first page when left out.
            limit: How many per page, at most.
            min_visitors: The least number of visitors in 30 days.
        """
        return self._send(
            Call(
                "GET",
                "/accounts",
                query=given(
                    {
                        "country": country,
                        "level": level,
                        "q": q,
                        "cursor": cursor,
                        "limit": limit,
                        "min_visitors": min_visitors,
                    }
                ),
                is_repeatable=True,
            )
        )

    def get_account(self, account_id: str) -> AccountAnswer:
        """Read one account.

        Those of production are apart; those of staging and development are together, by the environment of the
        key. What it was seen with comes from its newest 2,000 events.

        Args:
            account_id: Id of the account, percent-encoded: `/` is `%2F`.
        """
        return self._send(Call("GET", path("/accounts/{}", account_id), is_repeatable=True))

    def list_visitors(
        self,
        *,
        country: str | None = None,
        level: Literal["low", "medium", "high"] | None = None,
        q: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        min_accounts: int | None = None,
    ) -> SeenVisitorsAnswer:
        """List visitors.

        The one that was seen last first, as far back as events are kept. Those of production are apart; those
        of staging and development are together, by the environment of the key. Filters may be combined. A page
        with filters that few fit may be short, or empty, and still have a `next_cursor`: a request looks at no
        more than 5,000 events. Visitors that are not identifiable, and new ones of a report that was sent
        before, are left out.

        Args:
            country: Only those seen from this country in 30 days: two letters.
            level: Only those whose events of the last 24 hours have this as their highest suspect level.
            q: Only those whose id begins with this.
            cursor: `next_cursor` of the page before; the first page when left out.
            limit: How many per page, at most.
            min_accounts: The least number of accounts in 30 days, sign-ups without one included.
        """
        return self._send(
            Call(
                "GET",
                "/visitors",
                query=given(
                    {
                        "country": country,
                        "level": level,
                        "q": q,
                        "cursor": cursor,
                        "limit": limit,
                        "min_accounts": min_accounts,
                    }
                ),
                is_repeatable=True,
            )
        )

    def get_visitor(self, visitor_id: str) -> SeenVisitorAnswer:
        """Read one visitor.

        Those of production are apart; those of staging and development are together, by the environment of the
        key. What it was seen with comes from its newest 2,000 events.

        Args:
            visitor_id: Stable id of the visitor, within the organization.
        """
        return self._send(Call("GET", path("/visitors/{}", visitor_id), is_repeatable=True))

    def get_verdict_keys(self, organization_id: str) -> VerdictKeysBody:
        """Read the public keys of signed verdicts.

        A JWK set, open to all. Keep it for an hour, and read it again for a `kid` that is not in it.

        Args:
            organization_id: The organization that the key acts on.
        """
        return self._send(Call("GET", path("/organizations/{}/verdict-keys", organization_id), is_repeatable=True))

    def get_management_key(self) -> ManagementKeyBody:
        """Describe the management key.

        Which organization it acts on, and in which role.
        """
        return self._send(Call("GET", "/management/key", is_repeatable=True))

    def list_proxy_keys(
        self, organization_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> ProxyKeysBody:
        """List proxy keys.

        Oldest first, revoked ones included for 400 days. All of them, or a page where `limit` or `cursor` is
        given. A key that has expired stays `active` until it is revoked. Needs the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            limit: How many per page, at most.
            cursor: `next_cursor` of the page before; the first page when left out.
        """
        return self._send(
            Call(
                "GET",
                path("/management/organizations/{}/proxy-credentials", organization_id),
                query=given({"limit": limit, "cursor": cursor}),
                is_repeatable=True,
            )
        )

    def issue_proxy_key(
        self,
        organization_id: str,
        *,
        name: str,
        environment: Literal["development", "production", "staging"],
        expires_at: str | Unset | None = UNSET,
    ) -> IssuedProxyKeyBody:
        """Issue a proxy key.

        The secret is shown this once. At most 200 keys of all kinds that are neither revoked nor expired may be
        in an organization. Needs the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            name: A name for people.
            environment: Environment of the key.
            expires_at: When the key stops working; `null` = never.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/proxy-credentials", organization_id),
                body=given({"name": name, "environment": environment}, {"expires_at": expires_at}),
            )
        )

    def revoke_proxy_key(self, organization_id: str, proxy_credential_id: str) -> ProxyKeyBody:
        """Revoke a proxy key.

        For good. It is refused from the next request on, and stays listed. Needs the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            proxy_credential_id: Id of the proxy key.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/proxy-credentials/{}/revoke", organization_id, proxy_credential_id),
            )
        )

    def list_sdk_keys(
        self, organization_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> SdkKeysBody:
        """List SDK keys.

        Oldest first, revoked ones included for 400 days. All of them, or a page where `limit` or `cursor` is
        given. A key that has expired stays `active` until it is revoked.

        Args:
            organization_id: The organization that the key acts on.
            limit: How many per page, at most.
            cursor: `next_cursor` of the page before; the first page when left out.
        """
        return self._send(
            Call(
                "GET",
                path("/management/organizations/{}/sdk-keys", organization_id),
                query=given({"limit": limit, "cursor": cursor}),
                is_repeatable=True,
            )
        )

    def issue_sdk_key(
        self,
        organization_id: str,
        *,
        name: str,
        environment: Literal["development", "production", "staging"],
        expires_at: str | Unset | None = UNSET,
        kind: Literal["public", "secret"] | None = None,
        platforms: list[Literal["android", "ios", "web"]] | None = None,
        allowed_origins: list[str] | None = None,
    ) -> IssuedSdkKeyBody:
        """Issue an SDK key.

        The secret is shown this once. At most 200 keys of all kinds that are neither revoked nor expired may be
        in an organization. Needs the role `admin` or `developer`.

        Args:
            organization_id: The organization that the key acts on.
            name: A name for people.
            environment: Environment of the key.
            expires_at: When the key stops working; `null` = never.
            kind: `public` for SDKs, `secret` for servers. Default: `"public"`.
            platforms: `["web"]` when left out.
            allowed_origins: Sites that may use the key. Default: `[]`.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/sdk-keys", organization_id),
                body=given(
                    {
                        "name": name,
                        "environment": environment,
                        "kind": kind,
                        "platforms": platforms,
                        "allowed_origins": allowed_origins,
                    },
                    {"expires_at": expires_at},
                ),
            )
        )

    def revoke_sdk_key(self, organization_id: str, key_id: str) -> SdkKeyBody:
        """Revoke an SDK key.

        For good. It is refused from the next request on, and stays listed. Needs the role `admin` or
        `developer`.

        Args:
            organization_id: The organization that the key acts on.
            key_id: Id of the key.
        """
        return self._send(
            Call("POST", path("/management/organizations/{}/sdk-keys/{}/revoke", organization_id, key_id))
        )

    def replace_sdk_key_origins(self, organization_id: str, key_id: str, *, allowed_origins: list[str]) -> SdkKeyBody:
        """Replace the allowed origins of an SDK key.

        An origin is `scheme://host[:port]`; `https://*.example.com` is any host below it, and not the host
        itself. Below a public suffix, such as `https://*.co.uk`, are the sites of strangers: never allow one.
        Needs the role `admin` or `developer`.

        Args:
            organization_id: The organization that the key acts on.
            key_id: Id of the key.
            allowed_origins: The whole new list, such as `https://shop.example` or `https://*.shop.example`.
        """
        return self._send(
            Call(
                "PUT",
                path("/management/organizations/{}/sdk-keys/{}/allowed-origins", organization_id, key_id),
                body=given({"allowed_origins": allowed_origins}),
            )
        )

    def rotate_verdict_key(
        self, organization_id: str, *, previous_key_valid_hours: int | None = None
    ) -> VerdictKeysBody:
        """Rotate the key of signed verdicts.

        The next key, which is published already, signs from the next request on. Verdicts by the previous one
        are accepted for this many hours, `0` = no longer. Needs the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            previous_key_valid_hours: For how long verdicts by the previous key are accepted. Default: `24`.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/verdict-keys/rotate", organization_id),
                body=given({"previous_key_valid_hours": previous_key_valid_hours}),
            )
        )

    def count_browser_keys(
        self, organization_id: str, *, from_: str | None = None, to: str | None = None
    ) -> BrowserKeysBody:
        """Count the keys of browsers.

        Those that first signed in a window of time and are not revoked. All visitors are looked through. Needs
        the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            from_: Start of the window; all keys when left out.
            to: End of the window, exclusive; now when left out, which is best.
        """
        return self._send(
            Call(
                "GET",
                path("/management/organizations/{}/browser-keys", organization_id),
                query=given({"from": from_, "to": to}),
                is_repeatable=True,
            )
        )

    def revoke_browser_keys(self, organization_id: str, *, from_: str, to: str | None = None) -> BrowserKeysBody:
        """Revoke the keys of browsers.

        After a script that was not yours ran on your pages: it may have planted a key, which proves as the
        visitor's own does, from anywhere. Keys that first signed in the window prove nothing from the next
        request on; the web SDK renews them, and their visitors stay, unproven for a visit. A planted key counts
        from when it first signed, which may be on a later visit: leave out `to`. May be repeated. Needs the
        role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            from_: Start of the window.
            to: End of the window, exclusive; now when left out, which is best.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/browser-keys/revoke", organization_id),
                body=given({"from": from_, "to": to}),
            )
        )

    def list_webhooks(self, organization_id: str) -> WebhooksBody:
        """List webhook endpoints.

        Newest first, without secrets.

        Args:
            organization_id: The organization that the key acts on.
        """
        return self._send(
            Call("GET", path("/management/organizations/{}/webhooks", organization_id), is_repeatable=True)
        )

    def create_webhook(
        self,
        organization_id: str,
        *,
        url: str,
        environment: Literal["live", "test"],
        events: list[
            Literal[
                "identification.completed",
                "visitor.suspect",
                "identification.refused",
                "billing.status_changed",
                "usage.daily_settled",
                "webhook.test",
                "review.opened",
                "review.closed",
            ]
        ],
        description: str,
        format: Literal["discord", "json", "slack", "teams"] | None = None,
        filter: str | Unset | None = UNSET,
    ) -> IssuedWebhookBody:
        """Register a webhook endpoint.

        At most ten per organization. The signing secret is shown this once. The URL must be `https`, and every
        address of its host public and none of this service's own; it is judged again at every attempt, and
        redirects are not followed. Ports are 443 and those above 1023, unless the operator allows others.
        `live` endpoints get events of production traffic, `test` ones all others; `billing.status_changed`
        needs `live`. A `filter` that cannot be used is `invalid_condition`, and one that could cost too much
        `too_expensive`; `message` says why. Needs the role `admin` or `developer`.

        Args:
            organization_id: The organization that the key acts on.
            url: Where deliveries go: `https`, without user info or fragment, port 443 or one above 1023, and
                every address of its host public.
            environment: `live`: production traffic; `test`: staging and development.
            events: Event types to subscribe to.
            description: May be empty.
            format: `json` is the signed envelope. `slack`, `discord` and `teams` (an Adaptive Card) are
                messages for people, unsigned, and one for an identification, whichever events it causes.
                Default: `"json"`.
            filter: Which events are sent; `null` or left out for all.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/webhooks", organization_id),
                body=given(
                    {
                        "url": url,
                        "environment": environment,
                        "events": events,
                        "description": description,
                        "format": format,
                    },
                    {"filter": filter},
                ),
            )
        )

    def update_webhook(
        self,
        organization_id: str,
        webhook_id: str,
        *,
        url: str | None = None,
        environment: Literal["live", "test"] | None = None,
        events: list[
            Literal[
                "identification.completed",
                "visitor.suspect",
                "identification.refused",
                "billing.status_changed",
                "usage.daily_settled",
                "webhook.test",
                "review.opened",
                "review.closed",
            ]
        ]
        | None = None,
        description: str | None = None,
        paused: bool | None = None,
        format: Literal["discord", "json", "slack", "teams"] | None = None,
        filter: str | Unset | None = UNSET,
    ) -> WebhookBody:
        """Change a webhook endpoint.

        Send only what changes. While it is paused nothing new is queued for it, and what was queued waits until
        it is resumed. A changed URL, or `paused: false`, gives a failing endpoint a new start. What waits goes
        out in the format that the endpoint has then; after a change to `json`, a rotation shows a secret. Needs
        the role `admin` or `developer`.

        Args:
            organization_id: The organization that the key acts on.
            webhook_id: Id of the endpoint.
            url: Where deliveries go: `https`, without user info or fragment, port 443 or one above 1023, and
                every address of its host public.
            environment: `live`: production traffic; `test`: staging and development.
            events: The whole new list.
            description: A note for people.
            paused: `true` holds deliveries back, `false` lets them go on.
            format: `json` is the signed envelope. `slack`, `discord` and `teams` (an Adaptive Card) are
                messages for people, unsigned, and one for an identification, whichever events it causes.
            filter: `null` removes it.
        """
        return self._send(
            Call(
                "PATCH",
                path("/management/organizations/{}/webhooks/{}", organization_id, webhook_id),
                body=given(
                    {
                        "url": url,
                        "environment": environment,
                        "events": events,
                        "description": description,
                        "paused": paused,
                        "format": format,
                    },
                    {"filter": filter},
                ),
            )
        )

    def delete_webhook(self, organization_id: str, webhook_id: str) -> None:
        """Delete a webhook endpoint.

        Deliveries to it stop at once. Needs the role `admin` or `developer`.

        Args:
            organization_id: The organization that the key acts on.
            webhook_id: Id of the endpoint.
        """
        self._send(Call("DELETE", path("/management/organizations/{}/webhooks/{}", organization_id, webhook_id)))

    def rotate_webhook_secret(
        self, organization_id: str, webhook_id: str, *, previous_secret_valid_hours: int | None = None
    ) -> IssuedWebhookBody:
        """Rotate the signing secret of a webhook endpoint.

        The new secret is shown this once. The previous one signs along for this many hours, `0` = not at all;
        an older one no more. A chat format has no secret. Needs the role `admin` or `developer`.

        Args:
            organization_id: The organization that the key acts on.
            webhook_id: Id of the endpoint.
            previous_secret_valid_hours: For how long the previous secret signs along. Default: `24`.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/webhooks/{}/rotate-secret", organization_id, webhook_id),
                body=given({"previous_secret_valid_hours": previous_secret_valid_hours}),
            )
        )

    def test_webhook(self, organization_id: str, webhook_id: str) -> QueuedDeliveryBody:
        """Send a test event.

        One `webhook.test`, whether or not the endpoint subscribes to it. It is tried once, and its failure does
        not make the endpoint `failing`. Needs the role `admin` or `developer`.

        Args:
            organization_id: The organization that the key acts on.
            webhook_id: Id of the endpoint.
        """
        return self._send(
            Call("POST", path("/management/organizations/{}/webhooks/{}/test", organization_id, webhook_id))
        )

    def redeliver_webhook(self, organization_id: str, webhook_id: str, *, event_id: str) -> QueuedDeliveryBody:
        """Deliver an event again.

        An event that was sent to this endpoint in the last 30 days, accepted or not, with the same `id`. It is
        tried once, and its failure does not make the endpoint `failing`. Needs the role `admin` or `developer`.

        Args:
            organization_id: The organization that the key acts on.
            webhook_id: Id of the endpoint.
            event_id: An event that was sent to this endpoint in the last 30 days.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/webhooks/{}/redeliver", organization_id, webhook_id),
                body=given({"event_id": event_id}),
            )
        )

    def list_webhook_deliveries(
        self,
        organization_id: str,
        *,
        environment: Literal["all", "live", "test"] | None = None,
        endpoint_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> WebhookDeliveriesBody:
        """List delivery attempts.

        Of the last 30 days, newest first. The last page has no `next_cursor`. With `endpoint_id`, a page may be
        short or empty and have one.

        Args:
            organization_id: The organization that the key acts on.
            environment: Only attempts of these endpoints.
            endpoint_id: Only attempts to the endpoint of this id.
            limit: How many per page, at most.
            cursor: `next_cursor` of the page before; the first page when left out.
        """
        return self._send(
            Call(
                "GET",
                path("/management/organizations/{}/webhook-deliveries", organization_id),
                query=given({"environment": environment, "endpoint_id": endpoint_id, "limit": limit, "cursor": cursor}),
                is_repeatable=True,
            )
        )

    def get_rules(self, organization_id: str, *, environment: Literal["live", "test"] | None = None) -> RulesAnswer:
        """Read the rules.

        Args:
            organization_id: The organization that the key acts on.
            environment: `live` is production, `test` staging and development.
        """
        return self._send(
            Call(
                "GET",
                path("/management/organizations/{}/rules", organization_id),
                query=given({"environment": environment}),
                is_repeatable=True,
            )
        )

    def save_rules(
        self,
        organization_id: str,
        *,
        revision: int,
        rules: list[RuleFields],
        environment: Literal["live", "test"] | None = None,
    ) -> RulesAnswer:
        """Save the rules.

        The whole ruleset, in force from the next request on: a rule that is not sent is gone, also one that the
        organization started with. Send the `revision` that you read: another one is `409 revision_conflict`. A
        condition that cannot be used is `invalid_condition`; `message` has line and column. Only admins change
        active rules and their order, and use more than 80 % of what a ruleset may have. Where the rules could
        cost more than 2 ms of CPU an event, the first that goes beyond is `too_expensive`. Needs the role
        `admin`, `developer` or `analyst`.

        Args:
            organization_id: The organization that the key acts on.
            revision: The revision that was read.
            rules: All rules, in their order: the first that matches decides.
            environment: `live` is production, `test` staging and development.
        """
        return self._send(
            Call(
                "PUT",
                path("/management/organizations/{}/rules", organization_id),
                query=given({"environment": environment}),
                body=given({"revision": revision, "rules": rules}),
            )
        )

    def preview_rules(
        self, organization_id: str, *, rules: list[RuleFields], environment: Literal["live", "test"] | None = None
    ) -> RulesPreview:
        """Try rules on the newest events.

        On the newest 10,000 events of that kind of environment, with their stored velocity, without what was
        set later, and with lists and labels as they are now. Refused as saving the rules would be.

        Args:
            organization_id: The organization that the key acts on.
            rules: All rules, in their order.
            environment: `live` is production, `test` staging and development.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/rules/preview", organization_id),
                query=given({"environment": environment}),
                body=given({"rules": rules}),
            )
        )

    def list_rule_proposals(
        self, organization_id: str, *, environment: Literal["live", "test"] | None = None
    ) -> ProposalsBody:
        """List proposals of rules.

        What waits for an admin. A proposal is kept for 90 days.

        Args:
            organization_id: The organization that the key acts on.
            environment: `live` is production, `test` staging and development.
        """
        return self._send(
            Call(
                "GET",
                path("/management/organizations/{}/rule-proposals", organization_id),
                query=given({"environment": environment}),
                is_repeatable=True,
            )
        )

    def propose_rules(
        self,
        organization_id: str,
        *,
        revision: int,
        rules: list[RuleFields],
        environment: Literal["live", "test"] | None = None,
        note: str | None = None,
    ) -> ProposalBody:
        """Propose rules to an admin.

        Nothing is in force. Refused as saving the rules would be; at most 20 wait. Needs the role `admin`,
        `developer` or `analyst`.

        Args:
            organization_id: The organization that the key acts on.
            revision: Of the ruleset that it was made from.
            rules: All rules, in their order, as a save takes them.
            environment: `live` is production, `test` staging and development.
            note: Why, for admins. Default: `""`.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/rule-proposals", organization_id),
                query=given({"environment": environment}),
                body=given({"revision": revision, "rules": rules, "note": note}),
            )
        )

    def dismiss_rule_proposal(
        self, organization_id: str, proposal_id: str, *, environment: Literal["live", "test"] | None = None
    ) -> None:
        """Dismiss a proposal of rules.

        By an admin, or by its author. Needs the role `admin`, `developer` or `analyst`.

        Args:
            organization_id: The organization that the key acts on.
            proposal_id: Id of the proposal.
            environment: `live` is production, `test` staging and development.
        """
        self._send(
            Call(
                "DELETE",
                path("/management/organizations/{}/rule-proposals/{}", organization_id, proposal_id),
                query=given({"environment": environment}),
            )
        )

    def get_organization_risk_weights(self, organization_id: str) -> RiskWeightsBody:
        """Read the organization's risk weights.

        Args:
            organization_id: The organization that the key acts on.
        """
        return self._send(
            Call("GET", path("/management/organizations/{}/risk-weights", organization_id), is_repeatable=True)
        )

    def save_organization_risk_weights(
        self,
        organization_id: str,
        platform: Literal["web", "android", "ios"],
        *,
        suspect_threshold: int | None = None,
        weights: dict[str, int] | None = None,
        vpn_weights_mode: Literal["confidence", "method"] | None = None,
        residential_proxy_weights_mode: Literal["confidence", "method"] | None = None,
        revision: int | None = None,
    ) -> RiskWeightsBody:
        """Save the organization's risk weights for a platform.

        What is not named keeps its value in force. Send the `revision` that you read to make sure that nobody
        has saved since: another one is `409 revision_conflict`. Needs the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            platform: Platform whose weights are meant.
            suspect_threshold: Score from which a visitor is suspect.
            weights: Signal name to weight. Default: `{}`.
            vpn_weights_mode: Which half of the VPN signals counts.
            residential_proxy_weights_mode: Which half of the residential-proxy signals counts.
            revision: The stored revision that the change was made upon; left out = whatever it is.
        """
        return self._send(
            Call(
                "PUT",
                path("/management/organizations/{}/risk-weights/{}", organization_id, platform),
                body=given(
                    {
                        "suspect_threshold": suspect_threshold,
                        "weights": weights,
                        "vpn_weights_mode": vpn_weights_mode,
                        "residential_proxy_weights_mode": residential_proxy_weights_mode,
                        "revision": revision,
                    }
                ),
            )
        )

    def restore_organization_risk_weights(
        self, organization_id: str, platform: Literal["web", "android", "ios"]
    ) -> RiskWeightsBody:
        """Restore the organization's risk weights for a platform.

        Back to the defaults. Needs the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            platform: Platform whose weights are meant.
        """
        return self._send(
            Call("DELETE", path("/management/organizations/{}/risk-weights/{}", organization_id, platform))
        )

    def get_sdk_key_risk_weights(self, organization_id: str, key_id: str) -> RiskWeightsBody:
        """Read the risk weights of an SDK key.

        Args:
            organization_id: The organization that the key acts on.
            key_id: Id of the key.
        """
        return self._send(
            Call(
                "GET",
                path("/management/organizations/{}/sdk-keys/{}/risk-weights", organization_id, key_id),
                is_repeatable=True,
            )
        )

    def save_sdk_key_risk_weights(
        self,
        organization_id: str,
        key_id: str,
        platform: Literal["web", "android", "ios"],
        *,
        suspect_threshold: int | None = None,
        weights: dict[str, int] | None = None,
        vpn_weights_mode: Literal["confidence", "method"] | None = None,
        residential_proxy_weights_mode: Literal["confidence", "method"] | None = None,
        revision: int | None = None,
    ) -> RiskWeightsBody:
        """Save the risk weights of an SDK key for a platform.

        What is not named keeps its value in force. Send the `revision` that you read to make sure that nobody
        has saved since: another one is `409 revision_conflict`. Needs the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            key_id: Id of the key.
            platform: Platform whose weights are meant.
            suspect_threshold: Score from which a visitor is suspect.
            weights: Signal name to weight. Default: `{}`.
            vpn_weights_mode: Which half of the VPN signals counts.
            residential_proxy_weights_mode: Which half of the residential-proxy signals counts.
            revision: The stored revision that the change was made upon; left out = whatever it is.
        """
        return self._send(
            Call(
                "PUT",
                path("/management/organizations/{}/sdk-keys/{}/risk-weights/{}", organization_id, key_id, platform),
                body=given(
                    {
                        "suspect_threshold": suspect_threshold,
                        "weights": weights,
                        "vpn_weights_mode": vpn_weights_mode,
                        "residential_proxy_weights_mode": residential_proxy_weights_mode,
                        "revision": revision,
                    }
                ),
            )
        )

    def restore_sdk_key_risk_weights(
        self, organization_id: str, key_id: str, platform: Literal["web", "android", "ios"]
    ) -> RiskWeightsBody:
        """Restore the risk weights of an SDK key for a platform.

        Back to those of the organization. Needs the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            key_id: Id of the key.
            platform: Platform whose weights are meant.
        """
        return self._send(
            Call(
                "DELETE",
                path("/management/organizations/{}/sdk-keys/{}/risk-weights/{}", organization_id, key_id, platform),
            )
        )

    def list_risk_signals(self, organization_id: str) -> SignalsBody:
        """List the signals that can fire.

        Args:
            organization_id: The organization that the key acts on.
        """
        return self._send(
            Call("GET", path("/management/organizations/{}/risk-signals", organization_id), is_repeatable=True)
        )

    def get_weights_suggestion(
        self,
        organization_id: str,
        platform: Literal["web", "android", "ios"],
        *,
        environment: Literal["live", "test"] | None = None,
    ) -> SuggestionBody:
        """Read which weights labels suggest.

        From the organization's own labeled events of the platform, at least 50 of each label: the stored ones,
        and those among about the newest million that are deleted. Nothing is changed. With fewer there are no
        weights in the response.

        Args:
            organization_id: The organization that the key acts on.
            platform: Platform whose weights are meant.
            environment: `live` is production, `test` staging and development.
        """
        return self._send(
            Call(
                "GET",
                path("/management/organizations/{}/risk-weights/{}/suggestion", organization_id, platform),
                query=given({"environment": environment}),
                is_repeatable=True,
            )
        )

    def list_lists(self, organization_id: str) -> ListsBody:
        """List lists.

        Every organization has six from the start: `blocked_visitors`, `blocked_accounts`, `blocked_addresses`,
        `trusted_visitors`, `trusted_accounts` and `trusted_addresses`.

        Args:
            organization_id: The organization that the key acts on.
        """
        return self._send(Call("GET", path("/management/organizations/{}/lists", organization_id), is_repeatable=True))

    def create_list(
        self,
        organization_id: str,
        *,
        name: str,
        kind: Literal["account", "address", "asn", "country", "origin", "tag", "visitor"],
    ) -> ListBody:
        """Make a list.

        At most 100 per organization, the six built-in lists included. Needs the role `admin` or `developer`.

        Args:
            organization_id: The organization that the key acts on.
            name: Unique in the organization: `[a-z][a-z0-9_]{0,47}`. Rules name the list by it.
            kind: What its entries are, which never changes. A list of kind `address` has addresses and
                networks.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/lists", organization_id),
                body=given({"name": name, "kind": kind}),
            )
        )

    def get_list(self, organization_id: str, list_id: str) -> ListBody:
        """Read a list.

        Without its entries, which are listed apart.

        Args:
            organization_id: The organization that the key acts on.
            list_id: Id of the list.
        """
        return self._send(
            Call("GET", path("/management/organizations/{}/lists/{}", organization_id, list_id), is_repeatable=True)
        )

    def update_list(self, organization_id: str, list_id: str, *, name: str | None = None) -> ListBody:
        """Rename a list.

        A built-in list, and one that a rule uses, keeps its name. Needs the role `admin` or `developer`.

        Args:
            organization_id: The organization that the key acts on.
            list_id: Id of the list.
            name: Unique in the organization: `[a-z][a-z0-9_]{0,47}`. Rules name the list by it.
        """
        return self._send(
            Call(
                "PATCH",
                path("/management/organizations/{}/lists/{}", organization_id, list_id),
                body=given({"name": name}),
            )
        )

    def delete_list(self, organization_id: str, list_id: str) -> None:
        """Delete a list.

        With its entries. A built-in list, and one that a rule uses, cannot be deleted. Needs the role `admin`
        or `developer`.

        Args:
            organization_id: The organization that the key acts on.
            list_id: Id of the list.
        """
        self._send(Call("DELETE", path("/management/organizations/{}/lists/{}", organization_id, list_id)))

    def list_list_entries(
        self,
        organization_id: str,
        list_id: str,
        *,
        q: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> EntriesBody:
        """List the entries of a list.

        In the order of their values, without those that have expired. A page may be short and have a
        `next_cursor`.

        Args:
            organization_id: The organization that the key acts on.
            list_id: Id of the list.
            q: Beginning of the value.
            limit: How many per page, at most.
            cursor: `next_cursor` of the page before; the first page when left out.
        """
        return self._send(
            Call(
                "GET",
                path("/management/organizations/{}/lists/{}/entries", organization_id, list_id),
                query=given({"q": q, "limit": limit, "cursor": cursor}),
                is_repeatable=True,
            )
        )

    def add_list_entries(self, organization_id: str, list_id: str, *, entries: list[NewEntryBody]) -> AddedBody:
        """Add entries to a list.

        All of them or, where one is refused, none. Values are stored in one spelling: networks without host
        bits, lower-case origins, upper-case countries, AS numbers as digits. At most 100,000 entries that have
        not expired may be in the lists of an organization. What is added counts from the next request on. Needs
        the role `admin`, `developer` or `analyst`.

        Args:
            organization_id: The organization that the key acts on.
            list_id: Id of the list.
            entries: At most 1,000. A value that is in the list gets a new note and expiry.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/lists/{}/entries", organization_id, list_id),
                body=given({"entries": entries}),
            )
        )

    def remove_list_entries(self, organization_id: str, list_id: str, *, values: list[str]) -> None:
        """Remove entries from a list.

        By their values. From the next request on they are in it no more. Needs the role `admin`, `developer` or
        `analyst`.

        Args:
            organization_id: The organization that the key acts on.
            list_id: Id of the list.
            values: At most 1,000. One that is not in the list is passed over.
        """
        self._send(
            Call(
                "DELETE",
                path("/management/organizations/{}/lists/{}/entries", organization_id, list_id),
                body=given({"values": values}),
            )
        )

    def label_event(
        self,
        organization_id: str,
        request_id: str,
        *,
        label: Literal["fraud", "legitimate"] | None,
        label_reason: Literal[
            "account_takeover", "bot", "chargeback", "multi_account", "other", "promo_abuse", "scraping", "spam"
        ]
        | Unset
        | None = UNSET,
    ) -> LabelAnswer:
        """Label an event.

        What it turned out to be, of an event of any environment, for 400 days from its arrival. Servers with a
        secret key use `updateEvent`. Needs the role `admin`, `developer` or `analyst`.

        Args:
            organization_id: The organization that the key acts on.
            request_id: UUIDv7 of the request; it sorts by time.
            label: What the event turned out to be; `null` removes the label.
            label_reason: Why; none when left out.
        """
        return self._send(
            Call(
                "PUT",
                path("/management/organizations/{}/events/{}/label", organization_id, request_id),
                body=given({}, {"label": label, "label_reason": label_reason}),
            )
        )

    def get_performance(
        self,
        organization_id: str,
        *,
        environment: Literal["live", "test"] | None = None,
        from_: str | None = None,
        to: str | None = None,
    ) -> PerformanceBody:
        """Read how signals, rules and levels did.

        By the labels of events: of those in which a signal fired, how many are fraud (precision), and how much
        of all fraud that is (recall). Of the whole UTC days that the window touches, at most 400. An event
        without a label is never counted as legitimate.

        Args:
            organization_id: The organization that the key acts on.
            environment: `live` is production, `test` staging and development.
            from_: Start of the window; 30 days before its end when left out.
            to: End of the window, exclusive; now when left out.
        """
        return self._send(
            Call(
                "GET",
                path("/management/organizations/{}/performance", organization_id),
                query=given({"environment": environment, "from": from_, "to": to}),
                is_repeatable=True,
            )
        )

    def list_reviews(
        self,
        organization_id: str,
        *,
        state: Literal["closed", "open"] | None = None,
        assignee: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ReviewsBody:
        """List reviews.

        The one that was opened last first, for 400 days. A page with an assignee who has few may be short, or
        empty, and have a `next_cursor`.

        Args:
            organization_id: The organization that the key acts on.
            state: Only reviews of this state.
            assignee: Only those that the member with this id takes care of, or with `none` nobody does.
            limit: How many per page, at most.
            cursor: `next_cursor` of the page before; the first page when left out.
        """
        return self._send(
            Call(
                "GET",
                path("/management/organizations/{}/reviews", organization_id),
                query=given({"state": state, "assignee": assignee, "limit": limit, "cursor": cursor}),
                is_repeatable=True,
            )
        )

    def open_review(self, organization_id: str, *, request_id: str) -> ReviewAnswer:
        """Open a review.

        Of an event of any environment. A rule that decides `review` does the same. Of a visitor and account one
        is open at a time: where there is one, it is the response, with `200`. Needs the role `admin`,
        `developer` or `analyst`.

        Args:
            organization_id: The organization that the key acts on.
            request_id: UUIDv7 of the request; it sorts by time.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/reviews", organization_id),
                body=given({"request_id": request_id}),
            )
        )

    def get_review(self, organization_id: str, review_id: str) -> ReviewAnswer:
        """Read a review.

        Args:
            organization_id: The organization that the key acts on.
            review_id: Id of the review.
        """
        return self._send(
            Call("GET", path("/management/organizations/{}/reviews/{}", organization_id, review_id), is_repeatable=True)
        )

    def assign_review(
        self, organization_id: str, review_id: str, *, assignee: str | Unset | None = UNSET
    ) -> ReviewAnswer:
        """Assign a review.

        To a member, or to nobody. Needs the role `admin`, `developer` or `analyst`.

        Args:
            organization_id: The organization that the key acts on.
            review_id: Id of the review.
            assignee: The member who takes care of it; `null` = nobody.
        """
        return self._send(
            Call(
                "PATCH",
                path("/management/organizations/{}/reviews/{}", organization_id, review_id),
                body=given({}, {"assignee": assignee}),
            )
        )

    def close_review(
        self,
        organization_id: str,
        review_id: str,
        *,
        label: Literal["fraud", "legitimate"],
        label_reason: Literal[
            "account_takeover", "bot", "chargeback", "multi_account", "other", "promo_abuse", "scraping", "spam"
        ]
        | None = None,
        note: str | None = None,
    ) -> ReviewAnswer:
        """Close a review.

        The label goes to the event of the review, and to no other. Needs the role `admin`, `developer` or
        `analyst`.

        Args:
            organization_id: The organization that the key acts on.
            review_id: Id of the review.
            label: What the event turned out to be.
            label_reason: Why.
            note: What was found.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/reviews/{}/close", organization_id, review_id),
                body=given({"label": label, "label_reason": label_reason, "note": note}),
            )
        )

    def reopen_review(self, organization_id: str, review_id: str) -> ReviewAnswer:
        """Open a closed review again.

        Its label stays, on its event too, until it is closed the next time. `review.opened` is sent again. Not
        where another one of its visitor and account is open. Needs the role `admin`, `developer` or `analyst`.

        Args:
            organization_id: The organization that the key acts on.
            review_id: Id of the review.
        """
        return self._send(
            Call("POST", path("/management/organizations/{}/reviews/{}/reopen", organization_id, review_id))
        )

    def list_visitor_notes(self, organization_id: str, visitor_id: str) -> NotesBody:
        """List notes about a visitor.

        Args:
            organization_id: The organization that the key acts on.
            visitor_id: Stable id of the visitor, within the organization.
        """
        return self._send(
            Call(
                "GET",
                path("/management/organizations/{}/visitors/{}/notes", organization_id, visitor_id),
                is_repeatable=True,
            )
        )

    def create_visitor_note(self, organization_id: str, visitor_id: str, *, text: str) -> NoteBody:
        """Write a note about a visitor.

        At most 100. Notes are kept for 400 days; the erasure of their subject deletes them. Needs the role
        `admin`, `developer` or `analyst`.

        Args:
            organization_id: The organization that the key acts on.
            visitor_id: Stable id of the visitor, within the organization.
            text: What was written.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/visitors/{}/notes", organization_id, visitor_id),
                body=given({"text": text}),
            )
        )

    def delete_visitor_note(self, organization_id: str, visitor_id: str, note_id: str) -> None:
        """Delete a note about a visitor.

        Needs the role `admin`, `developer` or `analyst`.

        Args:
            organization_id: The organization that the key acts on.
            visitor_id: Stable id of the visitor, within the organization.
            note_id: Id of the note.
        """
        self._send(
            Call(
                "DELETE",
                path("/management/organizations/{}/visitors/{}/notes/{}", organization_id, visitor_id, note_id),
            )
        )

    def list_account_notes(self, organization_id: str, account_id: str) -> NotesBody:
        """List notes about an account.

        Args:
            organization_id: The organization that the key acts on.
            account_id: Id of the account, percent-encoded: `/` is `%2F`.
        """
        return self._send(
            Call(
                "GET",
                path("/management/organizations/{}/accounts/{}/notes", organization_id, account_id),
                is_repeatable=True,
            )
        )

    def create_account_note(self, organization_id: str, account_id: str, *, text: str) -> NoteBody:
        """Write a note about an account.

        At most 100. Notes are kept for 400 days; the erasure of their subject deletes them. Needs the role
        `admin`, `developer` or `analyst`.

        Args:
            organization_id: The organization that the key acts on.
            account_id: Id of the account, percent-encoded: `/` is `%2F`.
            text: What was written.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/accounts/{}/notes", organization_id, account_id),
                body=given({"text": text}),
            )
        )

    def delete_account_note(self, organization_id: str, account_id: str, note_id: str) -> None:
        """Delete a note about an account.

        Needs the role `admin`, `developer` or `analyst`.

        Args:
            organization_id: The organization that the key acts on.
            account_id: Id of the account, percent-encoded: `/` is `%2F`.
            note_id: Id of the note.
        """
        self._send(
            Call(
                "DELETE",
                path("/management/organizations/{}/accounts/{}/notes/{}", organization_id, account_id, note_id),
            )
        )

    def get_settings(self, organization_id: str) -> SettingsBody:
        """Read the settings of the organization.

        Args:
            organization_id: The organization that the key acts on.
        """
        return self._send(
            Call("GET", path("/management/organizations/{}/settings", organization_id), is_repeatable=True)
        )

    def update_settings(
        self,
        organization_id: str,
        *,
        decision_in_response: bool | None = None,
        account_thresholds: NewAccountThresholds | None = None,
    ) -> SettingsBody:
        """Change settings of the organization.

        What is left out stays; what the operator sets is not changed here. In force from the next request on,
        on every worker and node. Needs the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            decision_in_response: Whether responses and signed verdicts for public keys have the decision of the
                rules.
            account_thresholds: Of the signals of the group `account`.
        """
        return self._send(
            Call(
                "PATCH",
                path("/management/organizations/{}/settings", organization_id),
                body=given({"decision_in_response": decision_in_response, "account_thresholds": account_thresholds}),
            )
        )

    def list_members(self, organization_id: str) -> MembersBody:
        """List members.

        Oldest first, those that are invited or suspended among them. Needs the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
        """
        return self._send(
            Call("GET", path("/management/organizations/{}/members", organization_id), is_repeatable=True)
        )

    def invite_member(
        self, organization_id: str, *, email: str, name: str, role: Literal["admin", "analyst", "developer", "viewer"]
    ) -> InvitedMemberBody:
        """Invite a member.

        The response has a link by which the member chooses a password and comes in. It works once, within seven
        days. The service sends no mail: hand the link over. At most 500 members per organization. Needs the
        role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            email: E-mail address, in lower case. Nothing is sent there.
            name: For people.
            role: What the member may do.
        """
        return self._send(
            Call(
                "POST",
                path("/management/organizations/{}/members", organization_id),
                body=given({"email": email, "name": name, "role": role}),
            )
        )

    def invite_member_again(self, organization_id: str, member_id: str) -> InvitedMemberBody:
        """Invite a member again.

        Another link, which takes the place of the former one: for a member without link, password or the device
        with the one-time codes. The member chooses a new password with it, then signs in without a code, and
        all its other sessions end. Needs the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            member_id: Id of the member.
        """
        return self._send(
            Call("POST", path("/management/organizations/{}/members/{}/invitation", organization_id, member_id))
        )

    def update_member(
        self,
        organization_id: str,
        member_id: str,
        *,
        name: str | None = None,
        role: Literal["admin", "analyst", "developer", "viewer"] | None = None,
        status: Literal["active", "suspended"] | None = None,
    ) -> MemberBody:
        """Change a member.

        Name, role or status; in force from its next request on. No act of a member may leave the organization
        without an active admin (`409 last_admin`). Needs the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            member_id: Id of the member.
            name: For people.
            role: What the member may do.
            status: `suspended`: may not sign in, and its sessions end.
        """
        return self._send(
            Call(
                "PATCH",
                path("/management/organizations/{}/members/{}", organization_id, member_id),
                body=given({"name": name, "role": role, "status": status}),
            )
        )

    def remove_member(self, organization_id: str, member_id: str) -> None:
        """Remove a member.

        Its sessions end at once. What it did stays attributed to its id. No act of a member may leave the
        organization without an active admin (`409 last_admin`). Needs the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            member_id: Id of the member.
        """
        self._send(Call("DELETE", path("/management/organizations/{}/members/{}", organization_id, member_id)))

    def erase_visitor(self, organization_id: str, visitor_id: str) -> None:
        """Erase a visitor.

        With its events, their submissions and deferred reports, for good. Events that cannot be read stay until
        the operator takes them out; rules, webhooks and names of lists stay as they are, whatever they name.
        Needs the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            visitor_id: Stable id of the visitor, within the organization.
        """
        self._send(Call("DELETE", path("/management/organizations/{}/visitors/{}", organization_id, visitor_id)))

    def erase_account(self, organization_id: str, account_id: str) -> None:
        """Erase an account.

        Its id leaves events, counts, lists, notes and queued webhooks, for good. The events stay; so do rules,
        webhooks, names of lists and events that cannot be read, whatever they name. Needs the role `admin`.

        Args:
            organization_id: The organization that the key acts on.
            account_id: Id of the account, percent-encoded: `/` is `%2F`.
        """
        self._send(Call("DELETE", path("/management/organizations/{}/accounts/{}", organization_id, account_id)))

    def get_health(self) -> HealthBody:
        """Is the process up?."""
        return self._send(Call("GET", "/healthz", is_repeatable=True))

    def get_readiness(self) -> ReadinessBody:
        """Can it serve?."""
        return self._send(Call("GET", "/readyz", is_repeatable=True))
