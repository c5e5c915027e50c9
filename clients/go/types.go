// Code generated from docs/openapi.json by make reference. DO NOT EDIT.

package svc

// A response may have more fields than are here, and a field that lists its values may have others: both are
// added within version 1.

// AccountAnswer is part of a response.
type AccountAnswer struct {
	// When it was seen first, to the second.
	FirstSeenAt string `json:"first_seen_at"`
	// When it was seen last.
	LastSeenAt string `json:"last_seen_at"`
	// The newest 100, the one seen last first.
	Addresses []SeenAddress `json:"addresses"`
	// The newest 100, the one seen last first.
	Countries []SeenCountry `json:"countries"`
	// Its labeled events of the last 400 days.
	Labels LabelCounts `json:"labels"`
	// Notes about it.
	NotesCount int64 `json:"notes_count"`
	// While counts are rebuilt after an upgrade: `velocity` leaves out earlier events. Else absent.
	CountedSince *string `json:"counted_since,omitzero"`
	// The customer's id of the account that the visitor acts for. Opaque: no e-mail address.
	AccountID string `json:"account_id"`
	// Of the account, now.
	Velocity AccountVelocity `json:"velocity"`
	// The newest 100 identifiable visitors that acted for it, the one seen last first.
	Visitors []VisitorOfAccount `json:"visitors"`
}

// AccountOfVisitor is part of a response.
type AccountOfVisitor struct {
	// The customer's id of the account that the visitor acts for. Opaque: no e-mail address.
	AccountID string `json:"account_id"`
	// `visitor_confidence` of the visitor's last event for it.
	Confidence int64 `json:"confidence"`
	// When it was seen first.
	FirstSeenAt string `json:"first_seen_at"`
	// When it was seen last.
	LastSeenAt string `json:"last_seen_at"`
}

// AccountRow is part of a response.
type AccountRow struct {
	// The customer's id of the account that the visitor acts for. Opaque: no e-mail address.
	AccountID string `json:"account_id"`
	// When it was seen first, to the second.
	FirstSeenAt string `json:"first_seen_at"`
	// When it was seen last.
	LastSeenAt string `json:"last_seen_at"`
	// The highest suspect level of its events in the last 24 hours; left out where none was scored. Now one of `low`,
	// `medium`, `high`.
	Level *string `json:"level,omitzero"`
	// Of the account, now.
	Velocity AccountVelocity `json:"velocity"`
}

// AccountThresholdsBody is part of a response.
type AccountThresholdsBody struct {
	// Accounts of a visitor in 30 days from which `multi_account` fires.
	MultiAccount int64 `json:"multi_account"`
	// Accounts of a visitor within an hour from which `account_testing` fires.
	AccountTestingVisitor int64 `json:"account_testing_visitor"`
	// Accounts of an address within an hour from which `account_testing` fires.
	AccountTestingAddress int64 `json:"account_testing_address"`
	// Visitors of an account in 30 days from which `account_sharing` fires.
	AccountSharing int64 `json:"account_sharing"`
}

// AccountVelocity is part of a response.
type AccountVelocity struct {
	// Events of the account.
	Events map[string]int64 `json:"events"`
	// Identifiable visitors that acted for it.
	Visitors map[string]int64 `json:"visitors"`
	// Addresses that they came from.
	Addresses map[string]int64 `json:"addresses"`
	// Countries of these addresses.
	Countries map[string]int64 `json:"countries"`
}

// AccountsAnswer is part of a response.
type AccountsAnswer struct {
	// The one that was seen last first.
	Accounts []AccountRow `json:"accounts"`
	// Of the next page, which may be empty; left out on the last one.
	NextCursor *string `json:"next_cursor,omitzero"`
	// While counts are rebuilt after an upgrade: `velocity` leaves out earlier events. Else absent.
	CountedSince *string `json:"counted_since,omitzero"`
}

// AddEntriesBody is part of a request.
type AddEntriesBody struct {
	// At most 1,000. A value that is in the list gets a new note and expiry.
	Entries []NewEntryBody `json:"entries"`
}

// AddedBody is part of a response.
type AddedBody struct {
	// Values that were not in the list.
	Added int64 `json:"added"`
	// Values that were.
	Replaced int64 `json:"replaced"`
}

// AddressVelocity is part of a response.
type AddressVelocity struct {
	// Events from the address.
	Events map[string]int64 `json:"events"`
	// Identifiable visitors that came from it.
	Visitors map[string]int64 `json:"visitors"`
	// Accounts that they acted for; each sign-up without an account is one.
	Accounts map[string]int64 `json:"accounts"`
}

// AssignReviewBody is part of a request.
type AssignReviewBody struct {
	// The member who takes care of it; `null` = nobody.
	Assignee Optional[string] `json:"assignee,omitzero"`
}

// BrowserKeysBody is part of a response.
type BrowserKeysBody struct {
	// Start of the window.
	From string `json:"from"`
	// End of the window, exclusive.
	To string `json:"to"`
	// Visitors who have such keys.
	Visitors int64 `json:"visitors"`
	// The keys themselves: a browser has one on each site.
	Keys int64 `json:"keys"`
}

// ChallengeAnswer is part of a response.
type ChallengeAnswer struct {
	// 32 random bytes in base64, for one use.
	Challenge string `json:"challenge"`
	// Five minutes after issue.
	ExpiresAt string `json:"expires_at"`
}

// ChangeBody is part of a response.
type ChangeBody struct {
	// What happened. Now one of `event.created`, `event.updated`, `event.erased`.
	Type string `json:"type"`
	// When: of `event.created` the arrival of the event.
	At string `json:"at"`
	// UUIDv7 of the request; it sorts by time.
	RequestID string `json:"request_id"`
	// The event as it is now, a row of `GET /events`; left out once it is erased or too old to be read.
	Event *EventBody `json:"event,omitzero"`
	// Of an updated event that is too old to be read: its label; `null` = it has none.
	Label *string `json:"label,omitzero"`
	// Of an updated event that is too old to be read: why it has it.
	LabelReason *string `json:"label_reason,omitzero"`
}

// ChangesAnswer is part of a response.
type ChangesAnswer struct {
	// Oldest first.
	Changes []ChangeBody `json:"changes"`
	// For what follows; every page has one.
	NextCursor string `json:"next_cursor"`
	// Whether there is a next page now.
	HasMore bool `json:"has_more"`
}

// CloseReviewBody is part of a request.
type CloseReviewBody struct {
	// What the event turned out to be.
	Label string `json:"label"`
	// Why.
	LabelReason Optional[string] `json:"label_reason,omitzero"`
	// What was found.
	Note Optional[string] `json:"note,omitzero"`
}

// CreateListBody is part of a request.
type CreateListBody struct {
	// Unique in the organization: `[a-z][a-z0-9_]{0,47}`. Rules name the list by it.
	Name string `json:"name"`
	// What its entries are, which never changes. A list of kind `address` has addresses and networks.
	Kind string `json:"kind"`
}

// CreateWebhookBody is part of a request.
type CreateWebhookBody struct {
	// Where deliveries go: `https`, without user info or fragment, port 443 or one above 1023, and every address of
	// its host public.
	URL string `json:"url"`
	// `live`: production traffic; `test`: staging and development.
	Environment string `json:"environment"`
	// Event types to subscribe to.
	Events []string `json:"events"`
	// May be empty.
	Description string `json:"description"`
	// `json` is the signed envelope. `slack`, `discord` and `teams` (an Adaptive Card) are messages for people,
	// unsigned, and one for an identification, whichever events it causes. Default: `"json"`.
	Format Optional[string] `json:"format,omitzero"`
	// Which events are sent; `null` or left out for all.
	Filter Optional[string] `json:"filter,omitzero"`
}

// DecisionBody is part of a response.
type DecisionBody struct {
	// What to do. Now one of `allow`, `review`, `challenge`, `block`.
	Action string `json:"action"`
	// Id of the first rule that matched.
	RuleID string `json:"rule_id"`
	// Its name then.
	Rule string `json:"rule"`
}

// DetailBody is part of a response.
type DetailBody struct {
	// A path such as `sdk.version`; empty for the whole body.
	Field string `json:"field"`
	// What is the matter with it. Now one of `required`, `unknown_field`, `wrong_type`, `malformed_json`,
	// `malformed_encoding`, `out_of_range`, `too_long`, `too_deep`, `invalid_url`, `not_public_address`,
	// `unknown_event_type`, `requires_live`, `invalid_origin`, `unknown_signal`, `invalid_cursor`, `not_with_order`,
	// `invalid_value`, `invalid_condition`, `too_expensive`.
	Issue string `json:"issue"`
	// Where it is. Now one of `body`, `query`, `header`, `path`.
	Location string `json:"location"`
}

// DuplicateAnswer is part of a response.
type DuplicateAnswer struct {
	// UUIDv7 of the request; it sorts by time.
	RequestID string `json:"request_id"`
	// The same was accepted before, and nothing changed.
	Duplicate *bool `json:"duplicate,omitzero"`
}

// EntriesBody is part of a response.
type EntriesBody struct {
	// In the order of their values.
	Entries []EntryBody `json:"entries"`
	// Of the next page; left out on the last one.
	NextCursor *string `json:"next_cursor,omitzero"`
}

// EntryBody is part of a response.
type EntryBody struct {
	// In its one spelling: networks without host bits, lower-case origins, upper-case countries.
	Value string `json:"value"`
	// Why it is there.
	Note string `json:"note"`
	// When the entry expires.
	ExpiresAt *string `json:"expires_at"`
	// When it was added.
	CreatedAt string `json:"created_at"`
	// The member who added it; left out where a management key did.
	CreatedBy *string `json:"created_by,omitzero"`
}

// ErrorBody is part of a response.
type ErrorBody struct {
	// What was refused.
	Error Fault `json:"error"`
	// UUIDv7 of the request; it sorts by time.
	RequestID string `json:"request_id"`
}

// EventBody is part of a response.
type EventBody struct {
	// UUIDv7 of the request; it sorts by time.
	RequestID string `json:"request_id"`
	// Stable id of the visitor, within the organization.
	VisitorID string `json:"visitor_id"`
	// Whether the organization sees this visitor for the first time.
	VisitorIsNew bool `json:"visitor_is_new"`
	// `false` when the report carried too little to identify anyone. The request is still scored.
	Identifiable bool `json:"identifiable"`
	// `90` to `100`: nothing that decided could have been copied. `85` to `89`: the same visitor by all that is known,
	// not proven. `0`: a new visitor id.
	VisitorConfidence int64 `json:"visitor_confidence"`
	// The browser signed the report with the key that its token had before: neither was copied to another one. `false`
	// on a first visit, before which there is no key.
	Proven bool `json:"proven"`
	// `enriched`, or `unavailable` when the network look-up could not run.
	State string `json:"state"`
	// Why `state` is `unavailable`. Now one of `no_network_data`, `private_address`, `lookup_failed`.
	Reason *string `json:"reason,omitzero"`
	// From the threshold in force: `low` below it, `high` from twice of it. Left out when not scored. Now one of
	// `low`, `medium`, `high`.
	SuspectLevel *string `json:"suspect_level,omitzero"`
	// What the rules of the organization decided; left out where none matched.
	Decision *DecisionBody `json:"decision,omitzero"`
	// When the request arrived.
	OccurredAt string `json:"occurred_at"`
	// Environment of the key.
	Environment string `json:"environment"`
	// Scoring profile.
	Platform string `json:"platform"`
	// Which SDK sent the report, such as `web`, `ios`, `flutter-android`.
	SDKPlatform string `json:"sdk_platform"`
	// Its version; `unknown` when it did not say.
	SDKVersion string `json:"sdk_version"`
	// Site that the request came from; left out for native apps.
	Origin *string `json:"origin,omitzero"`
	// The caller's own reference, shown again on the event and in webhooks.
	Tag *string `json:"tag,omitzero"`
	// The customer's id of the account that the visitor acts for. Opaque: no e-mail address.
	AccountID *string `json:"account_id,omitzero"`
	// Whether a secret key named the account; beside `account_id` alone.
	AccountVerified *bool `json:"account_verified,omitzero"`
	// What the visitor does, such as `sign_up`, `log_in` or `checkout`.
	Action *string `json:"action,omitzero"`
	// What the event turned out to be; left out where nobody has said. Now one of `fraud`, `legitimate`.
	Label *string `json:"label,omitzero"`
	// Why it has that label. Now one of `chargeback`, `account_takeover`, `multi_account`, `promo_abuse`, `bot`,
	// `scraping`, `spam`, `other`.
	LabelReason *string `json:"label_reason,omitzero"`
	// The visitor's address.
	IPAddress string `json:"ip_address"`
	// ISO 3166-1 alpha-2.
	CountryCode *string `json:"country_code,omitzero"`
	// The country in English.
	CountryName *string `json:"country_name,omitzero"`
	// Number of the autonomous system.
	ASN *string `json:"asn,omitzero"`
	// Name of the network.
	ASNName *string `json:"asn_name,omitzero"`
	// The strongest that applies; left out for an ordinary connection. Now one of `tor`, `vpn`, `proxy`, `hosting`.
	AnonymityNetwork *string `json:"anonymity_network,omitzero"`
	// Browser or app.
	Agent *string `json:"agent,omitzero"`
	// Its version.
	AgentVersion *string `json:"agent_version,omitzero"`
	// Operating system.
	OS *string `json:"os,omitzero"`
	// What kind of device it is. Now one of `desktop`, `mobile`, `tablet`, `server`.
	DeviceKind *string `json:"device_kind,omitzero"`
	// Who is at it. Now one of `human`, `ai_bot`, `automation`, `search_crawler`.
	VisitorKind *string `json:"visitor_kind,omitzero"`
	// Sum of the weights of the signals that fired. Absent or `null` when not scored.
	SuspectScore *int64 `json:"suspect_score"`
	// What fired, heaviest first.
	Triggers []EventTriggerBody `json:"triggers"`
	// Each signal that fired, heaviest first: the parts of `triggers`. Left out of events stored before 0.2.0.
	Signals []TriggerBody `json:"signals,omitzero"`
	// Whether the archived submission exists.
	HasDocument bool `json:"has_document"`
	// What the browser signed, beside `proven: true`: whose visit it is, and by a newer SDK also account, action and
	// tag of the request, or that it had none. What was set of the event later is not covered.
	ProofCovers []string `json:"proof_covers,omitzero"`
	// How often and with whom the visitor, the account and the address were seen, this event included; without it if
	// its report was sent before (`replayed`).
	Velocity *VelocityBody `json:"velocity,omitzero"`
	// `unreadable`: the event is corrupt in the store, and its other fields are missing. The operator of the service
	// can take it out.
	Error *string `json:"error,omitzero"`
}

// EventDetailBody is part of a response.
type EventDetailBody struct {
	// UUIDv7 of the request; it sorts by time.
	RequestID string `json:"request_id"`
	// Stable id of the visitor, within the organization.
	VisitorID string `json:"visitor_id"`
	// Whether the organization sees this visitor for the first time.
	VisitorIsNew bool `json:"visitor_is_new"`
	// `false` when the report carried too little to identify anyone. The request is still scored.
	Identifiable bool `json:"identifiable"`
	// `90` to `100`: nothing that decided could have been copied. `85` to `89`: the same visitor by all that is known,
	// not proven. `0`: a new visitor id.
	VisitorConfidence int64 `json:"visitor_confidence"`
	// The browser signed the report with the key that its token had before: neither was copied to another one. `false`
	// on a first visit, before which there is no key.
	Proven bool `json:"proven"`
	// `enriched`, or `unavailable` when the network look-up could not run.
	State string `json:"state"`
	// Why `state` is `unavailable`. Now one of `no_network_data`, `private_address`, `lookup_failed`.
	Reason *string `json:"reason,omitzero"`
	// From the threshold in force: `low` below it, `high` from twice of it. Left out when not scored. Now one of
	// `low`, `medium`, `high`.
	SuspectLevel *string `json:"suspect_level,omitzero"`
	// What the rules of the organization decided; left out where none matched.
	Decision *DecisionBody `json:"decision,omitzero"`
	// When the request arrived.
	OccurredAt string `json:"occurred_at"`
	// Environment of the key.
	Environment string `json:"environment"`
	// Scoring profile.
	Platform string `json:"platform"`
	// Which SDK sent the report, such as `web`, `ios`, `flutter-android`.
	SDKPlatform string `json:"sdk_platform"`
	// Its version; `unknown` when it did not say.
	SDKVersion string `json:"sdk_version"`
	// Site that the request came from; left out for native apps.
	Origin *string `json:"origin,omitzero"`
	// The caller's own reference, shown again on the event and in webhooks.
	Tag *string `json:"tag,omitzero"`
	// The customer's id of the account that the visitor acts for. Opaque: no e-mail address.
	AccountID *string `json:"account_id,omitzero"`
	// Whether a secret key named the account; beside `account_id` alone.
	AccountVerified *bool `json:"account_verified,omitzero"`
	// What the visitor does, such as `sign_up`, `log_in` or `checkout`.
	Action *string `json:"action,omitzero"`
	// What the event turned out to be; left out where nobody has said. Now one of `fraud`, `legitimate`.
	Label *string `json:"label,omitzero"`
	// Why it has that label. Now one of `chargeback`, `account_takeover`, `multi_account`, `promo_abuse`, `bot`,
	// `scraping`, `spam`, `other`.
	LabelReason *string `json:"label_reason,omitzero"`
	// The visitor's address.
	IPAddress string `json:"ip_address"`
	// ISO 3166-1 alpha-2.
	CountryCode *string `json:"country_code,omitzero"`
	// The country in English.
	CountryName *string `json:"country_name,omitzero"`
	// Number of the autonomous system.
	ASN *string `json:"asn,omitzero"`
	// Name of the network.
	ASNName *string `json:"asn_name,omitzero"`
	// The strongest that applies; left out for an ordinary connection. Now one of `tor`, `vpn`, `proxy`, `hosting`.
	AnonymityNetwork *string `json:"anonymity_network,omitzero"`
	// Browser or app.
	Agent *string `json:"agent,omitzero"`
	// Its version.
	AgentVersion *string `json:"agent_version,omitzero"`
	// Operating system.
	OS *string `json:"os,omitzero"`
	// What kind of device it is. Now one of `desktop`, `mobile`, `tablet`, `server`.
	DeviceKind *string `json:"device_kind,omitzero"`
	// Who is at it. Now one of `human`, `ai_bot`, `automation`, `search_crawler`.
	VisitorKind *string `json:"visitor_kind,omitzero"`
	// Sum of the weights of the signals that fired. Absent or `null` when not scored.
	SuspectScore *int64 `json:"suspect_score"`
	// What fired, heaviest first.
	Triggers []EventTriggerBody `json:"triggers"`
	// Each signal that fired, heaviest first: the parts of `triggers`. Left out of events stored before 0.2.0.
	Signals []TriggerBody `json:"signals,omitzero"`
	// Whether the archived submission exists.
	HasDocument bool `json:"has_document"`
	// What the browser signed, beside `proven: true`: whose visit it is, and by a newer SDK also account, action and
	// tag of the request, or that it had none. What was set of the event later is not covered.
	ProofCovers []string `json:"proof_covers,omitzero"`
	// How often and with whom the visitor, the account and the address were seen, this event included; without it if
	// its report was sent before (`replayed`).
	Velocity *VelocityBody `json:"velocity,omitzero"`
	// The archived submission and what scored it; `null` where none was kept. Its contents are not a public contract.
	Document map[string]any `json:"document"`
	// Rules in shadow mode that matched; left out where none did.
	Shadow []ShadowBody `json:"shadow,omitzero"`
	// The deferred report, when one arrived. Its contents are not a public contract.
	DeferredSignals map[string]any `json:"deferred_signals,omitzero"`
}

// EventTriggerBody is part of a response.
type EventTriggerBody struct {
	// The group of signals that fired. Now one of `bot`, `tampering`, `tor`, `vpn`, `proxy`, `residential_proxy`,
	// `ip_reputation`, `environment`, `integrity`, `location`, `privacy`, `velocity`, `replay`, `rarity`, `account`.
	Signal string `json:"signal"`
	// What the group added to the score.
	Weight int64 `json:"weight"`
	// How well founded it is; it does not change the weight. Now one of `high`, `low`, `medium`.
	Confidence string `json:"confidence"`
}

// EventsAnswer is part of a response.
type EventsAnswer struct {
	// Newest first, unless the `order` was another. An event that is corrupt in the store has a row with `request_id`
	// and `error` alone: look for `error` before other fields.
	Rows []EventBody `json:"rows"`
	// As asked for; 1 where a cursor asked for it.
	Page int64 `json:"page"`
	// The most events that a page has: the `limit` of the request.
	PageSize int64 `json:"page_size"`
	// For the next page; left out on the last one, of which the feed has none.
	NextCursor *string `json:"next_cursor,omitzero"`
	// Of the feed: whether there is a next page now.
	HasMore *bool `json:"has_more,omitzero"`
}

// Fault is part of a response.
type Fault struct {
	// For programs. Now one of `bad_request`, `unauthorized`, `billing_blocked`, `no_credit`, `insufficient_role`,
	// `cross_origin_request`, `secure_connection_required`, `not_found`, `event_not_found`, `method_not_allowed`,
	// `request_timeout`, `revision_conflict`, `sdk_key_revoked`, `proxy_key_revoked`, `key_limit`,
	// `supplement_conflict`, `list_exists`, `list_limit`, `list_permanent`, `list_in_use`, `proposal_limit`,
	// `review_closed`, `review_open`, `note_limit`, `member_exists`, `member_limit`, `member_invited`,
	// `member_suspended`, `last_admin`, `webhook_limit`, `webhook_busy`, `webhook_paused`, `webhook_unsigned`,
	// `view_exists`, `view_limit`, `payload_too_large`, `unsupported_media_type`, `invalid_visitor_metadata`,
	// `invalid_request_id`, `invalid_window`, `validation_error`, `idempotency_key_too_long`, `invalid_supplement`,
	// `rate_limited`, `header_fields_too_large`, `internal_error`, `service_unavailable`.
	Code string `json:"code"`
	// For people: what to do about it.
	Message string `json:"message"`
	// The HTTP status.
	Status int64 `json:"status"`
	// Each fault in the request.
	Details []DetailBody `json:"details,omitzero"`
}

// HealthBody is part of a response.
type HealthBody struct {
	// The process is up. Now one of `ok`.
	Status string `json:"status"`
	// Version of the service.
	Version string `json:"version"`
}

// IdentifyAnswer is part of a response.
type IdentifyAnswer struct {
	// UUIDv7 of the request; it sorts by time.
	RequestID string `json:"request_id"`
	// Stable id of the visitor, within the organization.
	VisitorID string `json:"visitor_id"`
	// Whether the organization sees this visitor for the first time.
	VisitorIsNew bool `json:"visitor_is_new"`
	// `false` when the report carried too little to identify anyone. The request is still scored.
	Identifiable bool `json:"identifiable"`
	// `90` to `100`: nothing that decided could have been copied. `85` to `89`: the same visitor by all that is known,
	// not proven. `0`: a new visitor id.
	VisitorConfidence int64 `json:"visitor_confidence"`
	// The browser signed the report with the key that its token had before: neither was copied to another one. `false`
	// on a first visit, before which there is no key.
	Proven bool `json:"proven"`
	// `enriched`, or `unavailable` when the network look-up could not run.
	State string `json:"state"`
	// Why `state` is `unavailable`. Now one of `no_network_data`, `private_address`, `lookup_failed`.
	Reason *string `json:"reason,omitzero"`
	// From the threshold in force: `low` below it, `high` from twice of it. Left out when not scored. Now one of
	// `low`, `medium`, `high`.
	SuspectLevel *string `json:"suspect_level,omitzero"`
	// What the rules of the organization decided; left out where none matched.
	Decision *DecisionBody `json:"decision,omitzero"`
	// Allows the deferred report of this request to be sent, for 24 hours.
	DeferredToken string `json:"deferred_token"`
	// This is the response of an earlier request with the same `Idempotency-Key`; nothing changed.
	Duplicate *bool `json:"duplicate,omitzero"`
	// The web SDK renews its token and key. Only to a public key, and only `true`.
	ClientTokenRenew *bool `json:"client_token_renew,omitzero"`
	// Sum of the weights of the signals that fired. Absent or `null` when not scored.
	SuspectScore *int64 `json:"suspect_score,omitzero"`
	// What fired, heaviest first.
	Triggers []TriggerBody `json:"triggers,omitzero"`
	// The verdict as a JWS, for a backend that verifies it by the organization's keys (`getVerdictKeys`). Only where
	// the request asked for it.
	Verdict *string `json:"verdict,omitzero"`
}

// IdentifyBody is part of a request.
type IdentifyBody struct {
	// The SDK that collected the report.
	SDK SDK `json:"sdk"`
	// The report that an SDK collected. What is in it is not a public contract.
	Signals map[string]any `json:"signals"`
	// The caller's own reference, shown again on the event and in webhooks.
	Tag Optional[string] `json:"tag,omitzero"`
	// The customer's id of the account that the visitor acts for. Opaque: no e-mail address.
	AccountID Optional[string] `json:"account_id,omitzero"`
	// What the visitor does, such as `sign_up`, `log_in` or `checkout`.
	Action Optional[string] `json:"action,omitzero"`
	// Whether to respond with a signed `verdict`, too. Default: `false`.
	Verdict Optional[bool] `json:"verdict,omitzero"`
}

// InviteMemberBody is part of a request.
type InviteMemberBody struct {
	// E-mail address, in lower case. Nothing is sent there.
	Email string `json:"email"`
	// For people.
	Name string `json:"name"`
	// What the member may do.
	Role string `json:"role"`
}

// InvitedMemberBody is part of a response.
type InvitedMemberBody struct {
	// The member.
	Member MemberBody `json:"member"`
	// Hand it to the member; it works once. Shown this once.
	InvitationURL string `json:"invitation_url"`
	// Until when it works, seven days from now.
	ExpiresAt string `json:"expires_at"`
}

// IssueProxyKeyBody is part of a request.
type IssueProxyKeyBody struct {
	// A name for people.
	Name string `json:"name"`
	// Environment of the key.
	Environment string `json:"environment"`
	// When the key stops working; `null` = never.
	ExpiresAt Optional[string] `json:"expires_at,omitzero"`
}

// IssueSDKKeyBody is part of a request.
type IssueSDKKeyBody struct {
	// A name for people.
	Name string `json:"name"`
	// Environment of the key.
	Environment string `json:"environment"`
	// When the key stops working; `null` = never.
	ExpiresAt Optional[string] `json:"expires_at,omitzero"`
	// `public` for SDKs, `secret` for servers. Default: `"public"`.
	Kind Optional[string] `json:"kind,omitzero"`
	// `["web"]` when left out.
	Platforms []string `json:"platforms,omitzero"`
	// Sites that may use the key. Default: `[]`.
	AllowedOrigins []string `json:"allowed_origins,omitzero"`
}

// IssuedProxyKeyBody is part of a response.
type IssuedProxyKeyBody struct {
	// The proxy key.
	Credential ProxyKeyBody `json:"credential"`
	// Shown this once.
	Secret string `json:"secret"`
}

// IssuedSDKKeyBody is part of a response.
type IssuedSDKKeyBody struct {
	// The SDK key.
	Key SDKKeyBody `json:"key"`
	// Shown this once.
	Secret string `json:"secret"`
}

// IssuedWebhookBody is part of a response.
type IssuedWebhookBody struct {
	// The endpoint.
	Endpoint WebhookBody `json:"endpoint"`
	// The whole signing secret, shown this once; empty for a chat format.
	Secret string `json:"secret"`
	// The same for a library of Standard Webhooks: `whsec_` and base64. Empty for a chat format.
	StandardSecret string `json:"standard_secret"`
}

// JwkBody is part of a response.
type JwkBody struct {
	// Always `OKP`.
	Kty string `json:"kty"`
	// Always `Ed25519`.
	Crv string `json:"crv"`
	// The key, base64url.
	X string `json:"x"`
	// Its thumbprint (RFC 7638).
	Kid string `json:"kid"`
	// Always `sig`.
	Use string `json:"use"`
	// Always `EdDSA`.
	Alg string `json:"alg"`
}

// LabelAnswer is part of a response.
type LabelAnswer struct {
	// UUIDv7 of the request; it sorts by time.
	RequestID string `json:"request_id"`
	// What the event turned out to be.
	Label *string `json:"label"`
	// Why it has that label.
	LabelReason *string `json:"label_reason"`
}

// LabelBody is part of a request.
type LabelBody struct {
	// What the event turned out to be; `null` removes the label.
	Label *string `json:"label"`
	// Why; none when left out.
	LabelReason Optional[string] `json:"label_reason,omitzero"`
}

// LabelCounts is part of a response.
type LabelCounts struct {
	// Labeled `fraud`.
	Fraud int64 `json:"fraud"`
	// Labeled `legitimate`.
	Legitimate int64 `json:"legitimate"`
}

// ListBody is part of a response.
type ListBody struct {
	// Its id.
	ID string `json:"id"`
	// Unique in the organization: `[a-z][a-z0-9_]{0,47}`. Rules name the list by it.
	Name string `json:"name"`
	// What its entries are, which never changes. A list of kind `address` has addresses and networks. Now one of
	// `account`, `address`, `asn`, `country`, `origin`, `tag`, `visitor`.
	Kind string `json:"kind"`
	// How many entries it has.
	Entries int64 `json:"entries"`
	// When it was made.
	CreatedAt string `json:"created_at"`
	// When its name or its entries were changed last.
	UpdatedAt string `json:"updated_at"`
}

// ListsBody is part of a response.
type ListsBody struct {
	// In the order of their names.
	Lists []ListBody `json:"lists"`
}

// ManagementKeyBody is part of a response.
type ManagementKeyBody struct {
	// Id of the key.
	KeyID string `json:"key_id"`
	// The organization every management route acts on.
	OrganizationID string `json:"organization_id"`
	// A name for people.
	Name string `json:"name"`
	// What the key may do. Now one of `admin`, `developer`.
	Role string `json:"role"`
	// Region of the key.
	Region string `json:"region"`
}

// MemberBody is part of a response.
type MemberBody struct {
	// Its id.
	ID string `json:"id"`
	// E-mail address, in lower case. Nothing is sent there.
	Email string `json:"email"`
	// For people.
	Name string `json:"name"`
	// What the member may do. Now one of `admin`, `developer`, `analyst`, `viewer`.
	Role string `json:"role"`
	// `invited` until it comes in for the first time. Now one of `invited`, `active`, `suspended`.
	Status string `json:"status"`
	// Whether it needs a one-time code beside its password.
	HasTotp bool `json:"has_totp"`
	// Whether it can sign in by a password.
	HasPassword bool `json:"has_password"`
	// Whether it has signed in by the OpenID provider.
	HasProvider bool `json:"has_provider"`
	// When it was made.
	CreatedAt string `json:"created_at"`
	// The member who invited it; left out where nobody did.
	CreatedBy *string `json:"created_by,omitzero"`
	// When it signed in last.
	LastSignedInAt *string `json:"last_signed_in_at"`
}

// MembersBody is part of a response.
type MembersBody struct {
	// Oldest first.
	Members []MemberBody `json:"members"`
}

// NewAccountThresholds is part of a request.
type NewAccountThresholds struct {
	// Accounts of a visitor in 30 days from which `multi_account` fires.
	MultiAccount Optional[int64] `json:"multi_account,omitzero"`
	// Accounts of a visitor within an hour from which `account_testing` fires.
	AccountTestingVisitor Optional[int64] `json:"account_testing_visitor,omitzero"`
	// Accounts of an address within an hour from which `account_testing` fires.
	AccountTestingAddress Optional[int64] `json:"account_testing_address,omitzero"`
	// Visitors of an account in 30 days from which `account_sharing` fires.
	AccountSharing Optional[int64] `json:"account_sharing,omitzero"`
}

// NewEntryBody is part of a request.
type NewEntryBody struct {
	// A visitor id, an account id, an address or network, a country code, an AS number, an origin or a tag, as the
	// kind of the list is.
	Value string `json:"value"`
	// Why it is there. Default: `""`.
	Note Optional[string] `json:"note,omitzero"`
	// When the entry expires; `null` = never.
	ExpiresAt Optional[string] `json:"expires_at,omitzero"`
}

// NewNoteBody is part of a request.
type NewNoteBody struct {
	// What was written.
	Text string `json:"text"`
}

// NewProposalBody is part of a request.
type NewProposalBody struct {
	// Of the ruleset that it was made from.
	Revision int64 `json:"revision"`
	// All rules, in their order, as a save takes them.
	Rules []RuleFields `json:"rules"`
	// Why, for admins. Default: `""`.
	Note Optional[string] `json:"note,omitzero"`
}

// NoteBody is part of a response.
type NoteBody struct {
	// Id of the note.
	ID string `json:"id"`
	// What was written.
	Text string `json:"text"`
	// When it was written.
	CreatedAt string `json:"created_at"`
	// The member who wrote it; left out where a management key did.
	Author *string `json:"author,omitzero"`
}

// NotesBody is part of a response.
type NotesBody struct {
	// Newest first: at most 100.
	Notes []NoteBody `json:"notes"`
}

// OpenReviewBody is part of a request.
type OpenReviewBody struct {
	// UUIDv7 of the request; it sorts by time.
	RequestID string `json:"request_id"`
}

// PerformanceBody is part of a response.
type PerformanceBody struct {
	// Start of the first UTC day.
	From string `json:"from"`
	// End of the last UTC day.
	To string `json:"to"`
	// Of the whole window.
	Total PerformanceTotal `json:"total"`
	// Most events first.
	Signals []PerformanceLine `json:"signals"`
	// Groups of signals, most events first.
	Groups []PerformanceLine `json:"groups"`
	// Those in force in their order, then former ones. An event counts for the rule that decided and shadows.
	Rules []PerformanceLine `json:"rules"`
	// `low`, `medium` and `high`, each by itself.
	Levels []PerformanceLine `json:"levels"`
	// Labeled events by score, lowest first.
	Scores []PerformanceScores `json:"scores"`
}

// PerformanceLine is part of a response.
type PerformanceLine struct {
	// Of the signal, group, rule or level.
	Name string `json:"name"`
	// Id of the rule.
	RuleID *string `json:"rule_id,omitzero"`
	// Events in which it fired, matched, or that have this level.
	Events int64 `json:"events"`
	// Of these, labeled ones.
	Labelled int64 `json:"labelled"`
	// Of these, fraud.
	Fraud int64 `json:"fraud"`
	// Of the labeled ones, legitimate.
	Legitimate int64 `json:"legitimate"`
	// `fraud` of `labelled`.
	Precision *float64 `json:"precision"`
	// Lower end of its 95 % interval (Wilson).
	PrecisionLow *float64 `json:"precision_low"`
	// Upper end.
	PrecisionHigh *float64 `json:"precision_high"`
	// `fraud` of all fraud in the window.
	Recall *float64 `json:"recall"`
}

// PerformanceScores is part of a response.
type PerformanceScores struct {
	// Lowest score.
	From int64 `json:"from"`
	// The score where the next line begins; `null` = there is none.
	To *int64 `json:"to"`
	// Of the labeled ones, fraud.
	Fraud int64 `json:"fraud"`
	// Of the labeled ones, legitimate.
	Legitimate int64 `json:"legitimate"`
}

// PerformanceTotal is part of a response.
type PerformanceTotal struct {
	// Events.
	Events int64 `json:"events"`
	// Labeled events.
	Labelled int64 `json:"labelled"`
	// Of these, fraud.
	Fraud int64 `json:"fraud"`
	// Of these, legitimate.
	Legitimate int64 `json:"legitimate"`
}

// PlatformWeightsBody is part of a response.
type PlatformWeightsBody struct {
	// Scoring profile. Now one of `android`, `ios`, `web`.
	Platform string `json:"platform"`
	// Whose configuration is in force. Now one of `default`, `key`, `organization`.
	Scope string `json:"scope"`
	// Whether this scope has its own saved configuration.
	Stored bool `json:"stored"`
	// Of the scope's own configuration; 0 when nothing is stored.
	Revision int64 `json:"revision"`
	// Score from which a visitor is suspect.
	SuspectThreshold int64 `json:"suspect_threshold"`
	// Signal -> weight in force.
	Weights map[string]int64 `json:"weights"`
	// Signal name to default weight.
	Defaults map[string]int64 `json:"defaults"`
	// Every signal of the platform.
	Signals []string `json:"signals"`
	// Which half of the VPN signals counts. Now one of `confidence`, `method`.
	VPNWeightsMode string `json:"vpn_weights_mode"`
	// Which half of the residential-proxy signals counts. Now one of `confidence`, `method`.
	ResidentialProxyWeightsMode string `json:"residential_proxy_weights_mode"`
	// Of the scope's own configuration.
	UpdatedAt *string `json:"updated_at,omitzero"`
	// The member who saved it; left out where a management key did.
	UpdatedByUserID *string `json:"updated_by_user_id,omitzero"`
}

// PreviewBody is part of a request.
type PreviewBody struct {
	// All rules, in their order.
	Rules []RuleFields `json:"rules"`
}

// PreviewedRule is part of a response.
type PreviewedRule struct {
	// Id of the rule.
	RuleID *string `json:"rule_id,omitzero"`
	// Its name: unique, up to 80 characters.
	Name string `json:"name"`
	// Events that it would have decided, or matched in shadow mode.
	Matches int64 `json:"matches"`
	// The newest of them.
	Examples []string `json:"examples"`
	// Events on which its evaluation failed: it does not match then.
	Errors int64 `json:"errors"`
	// Why, on the newest of them.
	Error *string `json:"error,omitzero"`
}

// ProposalBody is part of a response.
type ProposalBody struct {
	// Id of the proposal.
	ID string `json:"id"`
	// Of the ruleset that it was made from.
	Revision int64 `json:"revision"`
	// In their order.
	Rules []ProposedRule `json:"rules"`
	// Why, for admins.
	Note string `json:"note"`
	// When it was made.
	CreatedAt string `json:"created_at"`
	// The member who made it; left out where a management key did.
	Author *string `json:"author,omitzero"`
}

// ProposalsBody is part of a response.
type ProposalsBody struct {
	// Oldest first: at most 20.
	Proposals []ProposalBody `json:"proposals"`
}

// ProposedRule is part of a response.
type ProposedRule struct {
	// Left out of a rule that is not in force: a save of these rules makes it.
	ID *string `json:"id,omitzero"`
	// Its name: unique, up to 80 characters.
	Name string `json:"name"`
	// When it matches, in CEL (the Common Expression Language).
	Condition string `json:"condition"`
	// What it decides. Now one of `allow`, `block`, `challenge`, `review`.
	Action string `json:"action"`
	// `shadow`: it is evaluated and counted, and decides nothing. `off`: neither. Now one of `active`, `off`,
	// `shadow`.
	Mode string `json:"mode"`
	// For people.
	Note string `json:"note"`
}

// ProxyKeyBody is part of a response.
type ProxyKeyBody struct {
	// Its id.
	ID string `json:"id"`
	// A name for people.
	Name string `json:"name"`
	// Environment of the key. Now one of `development`, `production`, `staging`.
	Environment string `json:"environment"`
	// Region of the key.
	Region string `json:"region"`
	// Start of the secret.
	Prefix string `json:"prefix"`
	// Last four characters of the secret.
	Last4 string `json:"last4"`
	// `active` until it is revoked, also when it has expired. Now one of `active`, `revoked`.
	Status string `json:"status"`
	// When it was last used, to the minute.
	LastUsedAt *string `json:"last_used_at"`
	// When it stops working.
	ExpiresAt *string `json:"expires_at"`
	// When it was made.
	CreatedAt string `json:"created_at"`
	// When it was revoked.
	RevokedAt *string `json:"revoked_at"`
}

// ProxyKeysBody is part of a response.
type ProxyKeysBody struct {
	// Oldest first, revoked included.
	Credentials []ProxyKeyBody `json:"credentials"`
	// Of the next page; left out on the last one, and where no page was asked for.
	NextCursor *string `json:"next_cursor,omitzero"`
}

// QualityBody is part of a response.
type QualityBody struct {
	// Of the labeled events that reach it, fraud; `null` = none does.
	Precision *float64 `json:"precision"`
	// Of the fraud, that which reaches it.
	Recall *float64 `json:"recall"`
}

// QueuedDeliveryBody is part of a response.
type QueuedDeliveryBody struct {
	// Of the delivery that is on its way.
	EventID string `json:"event_id"`
}

// ReadinessBody is part of a response.
type ReadinessBody struct {
	// Whether it can serve. Now one of `ready`, `unavailable`.
	Status string `json:"status"`
	// What that depends on, part by part.
	Checks ReadinessChecks `json:"checks"`
}

// ReadinessChecks is part of a response.
type ReadinessChecks struct {
	// `full` when there is no space for writes, `unreachable` while the database does not respond or the service waits
	// to start, `stalled` while a commit takes over 10 s, `failing` when writes were tried for 10 s and none was
	// stored, `lost` when the store's file was replaced, removed, cut or overwritten. Now one of `failing`, `full`,
	// `lost`, `ok`, `stalled`, `unreachable`.
	Store string `json:"store"`
	// `behind` while a delivery to an endpoint that responds is over a minute late, `stopped` while nobody sends; it
	// never fails readiness. Now one of `behind`, `ok`, `stopped`.
	Webhooks string `json:"webhooks"`
	// State of the network databases; it never fails readiness. Now one of `missing`, `ok`, `stale`.
	NetworkData string `json:"network_data"`
}

// RedeliverWebhookBody is part of a request.
type RedeliverWebhookBody struct {
	// An event that was sent to this endpoint in the last 30 days.
	EventID string `json:"event_id"`
}

// RemoveEntriesBody is part of a request.
type RemoveEntriesBody struct {
	// At most 1,000. One that is not in the list is passed over.
	Values []string `json:"values"`
}

// ReplaceOriginsBody is part of a request.
type ReplaceOriginsBody struct {
	// The whole new list, such as `https://shop.example` or `https://*.shop.example`.
	AllowedOrigins []string `json:"allowed_origins"`
}

// ReviewAnswer is part of a response.
type ReviewAnswer struct {
	// The review.
	Review ReviewBody `json:"review"`
}

// ReviewBody is part of a response.
type ReviewBody struct {
	// Id of the review; it sorts by time.
	ID string `json:"id"`
	// `open` or `closed`.
	State string `json:"state"`
	// Of its event.
	Environment string `json:"environment"`
	// UUIDv7 of the request; it sorts by time.
	RequestID string `json:"request_id"`
	// Stable id of the visitor, within the organization.
	VisitorID string `json:"visitor_id"`
	// The customer's id of the account that the visitor acts for. Opaque: no e-mail address.
	AccountID *string `json:"account_id,omitzero"`
	// Sum of the weights of the signals that fired. Absent or `null` when not scored.
	SuspectScore *int64 `json:"suspect_score"`
	// Of its event; left out when not scored.
	SuspectLevel *string `json:"suspect_level,omitzero"`
	// Id of the rule that opened it; left out where a person did.
	RuleID *string `json:"rule_id,omitzero"`
	// Name of that rule then.
	Rule *string `json:"rule,omitzero"`
	// When it was opened.
	OpenedAt string `json:"opened_at"`
	// The member who opened it by hand.
	OpenedBy *string `json:"opened_by,omitzero"`
	// When it was last opened again after it was closed; left out if never.
	ReopenedAt *string `json:"reopened_at,omitzero"`
	// The member who opened it again.
	ReopenedBy *string `json:"reopened_by,omitzero"`
	// The member who takes care of it; `null` = nobody.
	Assignee *string `json:"assignee"`
	// When it was closed; left out while it is open.
	ClosedAt *string `json:"closed_at,omitzero"`
	// The member who closed it.
	ClosedBy *string `json:"closed_by,omitzero"`
	// What the event turned out to be; left out where nobody has said. Now one of `fraud`, `legitimate`.
	Label *string `json:"label,omitzero"`
	// Why it has that label. Now one of `chargeback`, `account_takeover`, `multi_account`, `promo_abuse`, `bot`,
	// `scraping`, `spam`, `other`.
	LabelReason *string `json:"label_reason,omitzero"`
	// What the person who closed it wrote.
	Note *string `json:"note,omitzero"`
}

// ReviewsBody is part of a response.
type ReviewsBody struct {
	// The one that was opened last first.
	Reviews []ReviewBody `json:"reviews"`
	// Of the next page, which may be empty; left out on the last one.
	NextCursor *string `json:"next_cursor,omitzero"`
}

// RevokeBrowserKeysBody is part of a request.
type RevokeBrowserKeysBody struct {
	// Start of the window.
	From string `json:"from"`
	// End of the window, exclusive; now when left out, which is best.
	To Optional[string] `json:"to,omitzero"`
}

// RiskWeightsBody is part of a response.
type RiskWeightsBody struct {
	// The organization that the key acts on.
	OrganizationID string `json:"organization_id"`
	// Whose weights they are. Now one of `key`, `organization`.
	Scope string `json:"scope"`
	// The SDK key; left out for those of the organization.
	SDKKeyID *string `json:"sdk_key_id,omitzero"`
	// The largest weight that may be given.
	MaxWeight int64 `json:"max_weight"`
	// Each platform once.
	Platforms []PlatformWeightsBody `json:"platforms"`
}

// RotateVerdictKeyBody is part of a request.
type RotateVerdictKeyBody struct {
	// For how long verdicts by the previous key are accepted. Default: `24`.
	PreviousKeyValidHours Optional[int64] `json:"previous_key_valid_hours,omitzero"`
}

// RotateWebhookSecretBody is part of a request.
type RotateWebhookSecretBody struct {
	// For how long the previous secret signs along. Default: `24`.
	PreviousSecretValidHours Optional[int64] `json:"previous_secret_valid_hours,omitzero"`
}

// RuleCounts is part of a response.
type RuleCounts struct {
	// Events of the last 24 hours, from a full hour on, that it decided or matched in shadow mode.
	Matched24h int64 `json:"matched_24h"`
	// The same of the last 30 days.
	Matched30d int64 `json:"matched_30d"`
	// Events of the last 24 hours for which its evaluation failed.
	Errors24h int64 `json:"errors_24h"`
}

// RuleFields is part of a request.
type RuleFields struct {
	// Id of the rule.
	ID Optional[string] `json:"id,omitzero"`
	// Its name: unique, up to 80 characters.
	Name string `json:"name"`
	// When it matches, in CEL (the Common Expression Language).
	Condition string `json:"condition"`
	// What it decides.
	Action string `json:"action"`
	// `shadow`: it is evaluated and counted, and decides nothing. `off`: neither. Default: `"active"`.
	Mode Optional[string] `json:"mode,omitzero"`
	// For people. Default: `""`.
	Note Optional[string] `json:"note,omitzero"`
	// Ignored, so that a rule can be sent as it was read.
	Counts any `json:"counts,omitzero"`
}

// RuleRow is part of a response.
type RuleRow struct {
	// Id of the rule.
	ID string `json:"id"`
	// Its name: unique, up to 80 characters.
	Name string `json:"name"`
	// When it matches, in CEL (the Common Expression Language).
	Condition string `json:"condition"`
	// What it decides. Now one of `allow`, `block`, `challenge`, `review`.
	Action string `json:"action"`
	// `shadow`: it is evaluated and counted, and decides nothing. `off`: neither. Now one of `active`, `off`,
	// `shadow`.
	Mode string `json:"mode"`
	// For people.
	Note string `json:"note"`
	// Whole hours: those that the window touches.
	Counts RuleCounts `json:"counts"`
}

// RulesAnswer is part of a response.
type RulesAnswer struct {
	// `live` is production, `test` staging and development.
	Environment string `json:"environment"`
	// Grows by one at each save; 0 = the initial ruleset.
	Revision int64 `json:"revision"`
	// In their order: the first active one that matches decides.
	Rules []RuleRow `json:"rules"`
	// What may not be meant: see previews.
	Warnings []string `json:"warnings,omitzero"`
}

// RulesBody is part of a request.
type RulesBody struct {
	// The revision that was read.
	Revision int64 `json:"revision"`
	// All rules, in their order: the first that matches decides.
	Rules []RuleFields `json:"rules"`
}

// RulesPreview is part of a response.
type RulesPreview struct {
	// Events that were looked at.
	Events int64 `json:"events"`
	// In the order in which they were sent.
	Rules []PreviewedRule `json:"rules"`
	// Action -> events as they were decided; `none` = by no rule.
	Before map[string]int64 `json:"before"`
	// The same by these rules.
	After map[string]int64 `json:"after"`
	// In words: rules that match every event or read labels, literals that no event can have.
	Warnings []string `json:"warnings,omitzero"`
}

// SaveWeightsBody is part of a request.
type SaveWeightsBody struct {
	// Score from which a visitor is suspect.
	SuspectThreshold Optional[int64] `json:"suspect_threshold,omitzero"`
	// Signal name to weight. Default: `{}`.
	Weights map[string]int64 `json:"weights,omitzero"`
	// Which half of the VPN signals counts.
	VPNWeightsMode Optional[string] `json:"vpn_weights_mode,omitzero"`
	// Which half of the residential-proxy signals counts.
	ResidentialProxyWeightsMode Optional[string] `json:"residential_proxy_weights_mode,omitzero"`
	// The stored revision that the change was made upon; left out = whatever it is.
	Revision Optional[int64] `json:"revision,omitzero"`
}

// SDK is part of a request.
type SDK struct {
	// `web`, `ios`, `android`, or a bridge such as `react-native-ios`; `web` when left out.
	Platform Optional[string] `json:"platform,omitzero"`
	// Version of the SDK.
	Version Optional[string] `json:"version,omitzero"`
}

// SDKKeyBody is part of a response.
type SDKKeyBody struct {
	// Its id.
	ID string `json:"id"`
	// A name for people.
	Name string `json:"name"`
	// Environment of the key. Now one of `development`, `production`, `staging`.
	Environment string `json:"environment"`
	// Region of the key.
	Region string `json:"region"`
	// Start of the secret.
	Prefix string `json:"prefix"`
	// Last four characters of the secret.
	Last4 string `json:"last4"`
	// `active` until it is revoked, also when it has expired. Now one of `active`, `revoked`.
	Status string `json:"status"`
	// When it was last used, to the minute.
	LastUsedAt *string `json:"last_used_at"`
	// When it stops working.
	ExpiresAt *string `json:"expires_at"`
	// When it was made.
	CreatedAt string `json:"created_at"`
	// When it was revoked.
	RevokedAt *string `json:"revoked_at"`
	// `public` for SDKs, `secret` for servers.
	Kind string `json:"kind"`
	// Public keys only. Now one of `android`, `ios`, `web`.
	Platforms []string `json:"platforms,omitzero"`
	// Public keys only.
	AllowedOrigins []string `json:"allowed_origins,omitzero"`
	// The member who did it; left out where a management key did.
	CreatedBy *string `json:"created_by,omitzero"`
	// The member who revoked it.
	RevokedBy *string `json:"revoked_by,omitzero"`
}

// SDKKeysBody is part of a response.
type SDKKeysBody struct {
	// Oldest first, revoked included.
	Keys []SDKKeyBody `json:"keys"`
	// Of the next page; left out on the last one, and where no page was asked for.
	NextCursor *string `json:"next_cursor,omitzero"`
}

// SeenAddress is part of a response.
type SeenAddress struct {
	// The address.
	IPAddress string `json:"ip_address"`
	// ISO 3166-1 alpha-2.
	CountryCode *string `json:"country_code,omitzero"`
	// When it was seen first.
	FirstSeenAt string `json:"first_seen_at"`
	// When it was seen last.
	LastSeenAt string `json:"last_seen_at"`
}

// SeenCountry is part of a response.
type SeenCountry struct {
	// ISO 3166-1 alpha-2.
	CountryCode string `json:"country_code"`
	// When it was seen first.
	FirstSeenAt string `json:"first_seen_at"`
	// When it was seen last.
	LastSeenAt string `json:"last_seen_at"`
}

// SeenVisitorAnswer is part of a response.
type SeenVisitorAnswer struct {
	// When it was seen first, to the second.
	FirstSeenAt string `json:"first_seen_at"`
	// When it was seen last.
	LastSeenAt string `json:"last_seen_at"`
	// The newest 100, the one seen last first.
	Addresses []SeenAddress `json:"addresses"`
	// The newest 100, the one seen last first.
	Countries []SeenCountry `json:"countries"`
	// Its labeled events of the last 400 days.
	Labels LabelCounts `json:"labels"`
	// Notes about it.
	NotesCount int64 `json:"notes_count"`
	// While counts are rebuilt after an upgrade: `velocity` leaves out earlier events. Else absent.
	CountedSince *string `json:"counted_since,omitzero"`
	// Stable id of the visitor, within the organization.
	VisitorID string `json:"visitor_id"`
	// Of the visitor, now.
	Velocity VisitorVelocity `json:"velocity"`
	// The newest 100 accounts that it acted for, the one seen last first.
	Accounts []AccountOfVisitor `json:"accounts"`
}

// SeenVisitorRow is part of a response.
type SeenVisitorRow struct {
	// Stable id of the visitor, within the organization.
	VisitorID string `json:"visitor_id"`
	// When it was seen first, to the second.
	FirstSeenAt string `json:"first_seen_at"`
	// When it was seen last.
	LastSeenAt string `json:"last_seen_at"`
	// The highest suspect level of its events in the last 24 hours; left out where none was scored. Now one of `low`,
	// `medium`, `high`.
	Level *string `json:"level,omitzero"`
	// Of the visitor, now.
	Velocity VisitorVelocity `json:"velocity"`
}

// SeenVisitorsAnswer is part of a response.
type SeenVisitorsAnswer struct {
	// The one that was seen last first.
	Visitors []SeenVisitorRow `json:"visitors"`
	// Of the next page, which may be empty; left out on the last one.
	NextCursor *string `json:"next_cursor,omitzero"`
	// While counts are rebuilt after an upgrade: `velocity` leaves out earlier events. Else absent.
	CountedSince *string `json:"counted_since,omitzero"`
}

// SettingsBody is part of a response.
type SettingsBody struct {
	// Whether responses and signed verdicts for public keys have the decision of the rules.
	DecisionInResponse bool `json:"decision_in_response"`
	// Of the signals of the group `account`.
	AccountThresholds AccountThresholdsBody `json:"account_thresholds"`
	// Identifications that it may send in a second; 0 = any number. Its operator sets it: `svc org rate-limit`.
	RateLimitPerS int64 `json:"rate_limit_per_s"`
	// For how many days its events are readable. The operator's setting of the service.
	EventRetentionDays int64 `json:"event_retention_days"`
}

// ShadowBody is part of a response.
type ShadowBody struct {
	// Id of the rule.
	RuleID string `json:"rule_id"`
	// Its name then.
	Rule string `json:"rule"`
	// What it would have decided.
	Action string `json:"action"`
}

// SignalBody is part of a response.
type SignalBody struct {
	// Permanent name of the signal.
	Name string `json:"name"`
	// The group that the signal belongs to. Now one of `bot`, `tampering`, `tor`, `vpn`, `proxy`, `residential_proxy`,
	// `ip_reputation`, `environment`, `integrity`, `location`, `privacy`, `velocity`, `replay`, `rarity`, `account`.
	Group string `json:"group"`
	// What it means.
	Description string `json:"description"`
	// Platforms on which it exists. Now one of `android`, `ios`, `web`.
	Platforms []string `json:"platforms"`
	// Platform to default weight.
	DefaultWeights map[string]int64 `json:"default_weights"`
	// Of the VPN and residential-proxy families: the mode in which the signal fires. Now one of `confidence`,
	// `method`.
	Mode *string `json:"mode,omitzero"`
	// Version of the catalog that introduced it.
	Since string `json:"since"`
}

// SignalsBody is part of a response.
type SignalsBody struct {
	// Every signal.
	Signals []SignalBody `json:"signals"`
	// The largest weight that may be given.
	MaxWeight int64 `json:"max_weight"`
}

// SuggestedWeightBody is part of a response.
type SuggestedWeightBody struct {
	// Name of the signal.
	Signal string `json:"signal"`
	// Its weight in force.
	Before int64 `json:"before"`
	// The suggested one.
	After int64 `json:"after"`
	// Labeled events in which it fired: at least 10.
	Events int64 `json:"events"`
	// Of these, fraud.
	Fraud int64 `json:"fraud"`
}

// SuggestionBody is part of a response.
type SuggestionBody struct {
	// Platform whose weights they are.
	Platform string `json:"platform"`
	// Events labeled as fraud.
	Fraud int64 `json:"fraud"`
	// Events labeled as legitimate.
	Legitimate int64 `json:"legitimate"`
	// The threshold in force, which keeps its meaning.
	SuspectThreshold int64 `json:"suspect_threshold"`
	// Events of each label without which nothing is suggested.
	Needed *int64 `json:"needed,omitzero"`
	// Whether every label was looked at; `false` = older ones were left out. `svc weights suggest` takes all.
	IsComplete *bool `json:"is_complete,omitzero"`
	// By the weights in force; left out while there are too few labels.
	Before *QualityBody `json:"before,omitzero"`
	// By the suggested weights; left out then, too.
	After *QualityBody `json:"after,omitzero"`
	// Signals that fired in at least 10 labeled events. All others keep theirs.
	Weights []SuggestedWeightBody `json:"weights"`
}

// SupplementAnswer is part of a response.
type SupplementAnswer struct {
	// UUIDv7 of the request; it sorts by time.
	RequestID string `json:"request_id"`
	// The same was accepted before, and nothing changed.
	Duplicate *bool `json:"duplicate,omitzero"`
}

// SupplementBody is part of a request.
type SupplementBody struct {
	// The `deferred_token` of the identification.
	Token string `json:"token"`
	// The SDK that collected the report.
	SDK SDK `json:"sdk"`
	// The deferred report that an SDK collected. What is in it is not a public contract.
	Signals map[string]any `json:"signals"`
}

// TriggerBody is part of a response.
type TriggerBody struct {
	// The signal. Names are permanent. Now one of `automation`, `headless`, `bot_user_agent`, `spoofed_crawler`,
	// `ai_agent`, `search_crawler`, `anti_detect_browser`, `browser_tampering`, `os_mismatch`, `engine_mismatch`,
	// `gpu_mismatch`, `developer_tools`, `app_tampering`, `forged_report`, `proof_failed`, `tor`, `vpn_public`,
	// `vpn_timezone_mismatch`, `vpn_os_mismatch`, `vpn_auxiliary_mobile`, `vpn_relay`, `vpn_low`, `vpn_medium`,
	// `vpn_high`, `public_proxy`, `hosting`, `residential_proxy_listed`, `residential_proxy_behavior`,
	// `residential_proxy_low`, `residential_proxy_medium`, `residential_proxy_high`, `ip_attack_source`,
	// `ip_email_spam`, `virtual_machine`, `emulator`, `simulator`, `cloned_app`, `rooted`, `jailbroken`, `frida`,
	// `hooked`, `debugger`, `developer_options`, `unofficial_store`, `mitm_attack`, `attestation_failed`,
	// `attestation_missing`, `factory_reset`, `clock_tampered`, `location_spoofing`, `incognito`, `privacy_settings`,
	// `high_activity`, `velocity_ip`, `velocity_country`, `storage_renewed`, `new_visitor_burst`, `token_conflict`,
	// `network_new_for_visitor`, `replayed`, `repeated_report`, `repeated_rare_report`, `key_shared`, `rare_device`,
	// `unseen_rendering`, `multi_account`, `account_testing`, `account_sharing`, `account_new_device`.
	Signal string `json:"signal"`
	// The group that the signal belongs to. Now one of `bot`, `tampering`, `tor`, `vpn`, `proxy`, `residential_proxy`,
	// `ip_reputation`, `environment`, `integrity`, `location`, `privacy`, `velocity`, `replay`, `rarity`, `account`.
	Group string `json:"group"`
	// What the signal added to the score.
	Weight int64 `json:"weight"`
	// How well founded it is; it does not change the weight. Now one of `high`, `low`, `medium`.
	Confidence string `json:"confidence"`
}

// UnreadableEventBody is part of a response.
type UnreadableEventBody struct {
	// UUIDv7 of the request; it sorts by time.
	RequestID string `json:"request_id"`
	// `unreadable`: the event is corrupt in the store, and its other fields are missing. The operator of the service
	// can take it out.
	Error string `json:"error"`
}

// UpdateEventBody is part of a request.
type UpdateEventBody struct {
	// The account; `null` removes it.
	AccountID Optional[string] `json:"account_id,omitzero"`
	// The action; `null` removes it.
	Action Optional[string] `json:"action,omitzero"`
	// The tag; `null` removes it.
	Tag Optional[string] `json:"tag,omitzero"`
	// What the event turned out to be, for 400 days; `null` removes it, and the reason with it.
	Label Optional[string] `json:"label,omitzero"`
	// Why it has that label; only with a label.
	LabelReason Optional[string] `json:"label_reason,omitzero"`
}

// UpdateListBody is part of a request.
type UpdateListBody struct {
	// Unique in the organization: `[a-z][a-z0-9_]{0,47}`. Rules name the list by it.
	Name Optional[string] `json:"name,omitzero"`
}

// UpdateMemberBody is part of a request.
type UpdateMemberBody struct {
	// For people.
	Name Optional[string] `json:"name,omitzero"`
	// What the member may do.
	Role Optional[string] `json:"role,omitzero"`
	// `suspended`: may not sign in, and its sessions end.
	Status Optional[string] `json:"status,omitzero"`
}

// UpdateSettingsBody is part of a request.
type UpdateSettingsBody struct {
	// Whether responses and signed verdicts for public keys have the decision of the rules.
	DecisionInResponse Optional[bool] `json:"decision_in_response,omitzero"`
	// Of the signals of the group `account`.
	AccountThresholds Optional[NewAccountThresholds] `json:"account_thresholds,omitzero"`
}

// UpdateWebhookBody is part of a request.
type UpdateWebhookBody struct {
	// Where deliveries go: `https`, without user info or fragment, port 443 or one above 1023, and every address of
	// its host public.
	URL Optional[string] `json:"url,omitzero"`
	// `live`: production traffic; `test`: staging and development.
	Environment Optional[string] `json:"environment,omitzero"`
	// The whole new list.
	Events []string `json:"events,omitzero"`
	// A note for people.
	Description Optional[string] `json:"description,omitzero"`
	// `true` holds deliveries back, `false` lets them go on.
	Paused Optional[bool] `json:"paused,omitzero"`
	// `json` is the signed envelope. `slack`, `discord` and `teams` (an Adaptive Card) are messages for people,
	// unsigned, and one for an identification, whichever events it causes.
	Format Optional[string] `json:"format,omitzero"`
	// `null` removes it.
	Filter Optional[string] `json:"filter,omitzero"`
}

// VelocityBody is part of a response.
type VelocityBody struct {
	// Of the visitor.
	Visitor VisitorVelocity `json:"visitor"`
	// Of the address.
	Address AddressVelocity `json:"address"`
	// Of the account; left out without one.
	Account *AccountVelocity `json:"account,omitzero"`
}

// VerdictKeysBody is part of a response.
type VerdictKeysBody struct {
	// The key in force first, then the next one, then the previous one until it expires.
	Keys []JwkBody `json:"keys"`
}

// VisitorOfAccount is part of a response.
type VisitorOfAccount struct {
	// Stable id of the visitor, within the organization.
	VisitorID string `json:"visitor_id"`
	// `visitor_confidence` of its last event for the account.
	Confidence int64 `json:"confidence"`
	// When it was seen first.
	FirstSeenAt string `json:"first_seen_at"`
	// When it was seen last.
	LastSeenAt string `json:"last_seen_at"`
}

// VisitorVelocity is part of a response.
type VisitorVelocity struct {
	// Events of the visitor.
	Events map[string]int64 `json:"events"`
	// Accounts that it acted for; each sign-up without an account is one.
	Accounts map[string]int64 `json:"accounts"`
	// Addresses that it came from; of IPv6, the /64.
	Addresses map[string]int64 `json:"addresses"`
	// Countries of these addresses.
	Countries map[string]int64 `json:"countries"`
}

// WebhookBody is part of a response.
type WebhookBody struct {
	// Id of the endpoint.
	ID string `json:"id"`
	// Where deliveries go: `https`, without user info or fragment, port 443 or one above 1023, and every address of
	// its host public.
	URL string `json:"url"`
	// A note for people.
	Description string `json:"description"`
	// `live`: production traffic; `test`: staging and development.
	Environment string `json:"environment"`
	// Types of events that it subscribes to. Now one of `billing.status_changed`, `identification.completed`,
	// `identification.refused`, `review.closed`, `review.opened`, `usage.daily_settled`, `visitor.suspect`,
	// `webhook.test`.
	Events []string `json:"events"`
	// `failing` after five failed attempts in a row over at least ten minutes, a delivery that failed for good, or a
	// `410`. It is never switched off: the first `2xx` makes it `active` again. Now one of `active`, `failing`,
	// `paused`.
	Status string `json:"status"`
	// When the first of its failed attempts in a row began, whatever its status; left out where the last attempt
	// succeeded. After five of them an endpoint for which more than 100 deliveries wait is tried after a twelfth of
	// the time since then, between 5 seconds and 5 minutes; the first success sends all that wait.
	FailingSince *string `json:"failing_since,omitzero"`
	// `json` is the signed envelope. `slack`, `discord` and `teams` (an Adaptive Card) are messages for people,
	// unsigned, and one for an identification, whichever events it causes.
	Format string `json:"format"`
	// Condition in CEL, as of a rule. Events of identifications and reviews are sent only where it is true; all others
	// whatever it says.
	Filter *string `json:"filter,omitzero"`
	// Identifications of the last 24 hours that were held back because the evaluation of the filter failed; with a
	// filter alone. Whole hours: those that the window touches.
	FilterErrors24h *int64 `json:"filter_errors_24h,omitzero"`
	// Last four characters of the signing secret; empty for a chat format.
	SecretLast4 string `json:"secret_last4"`
	// During a rotation: when the previous secret stops signing.
	PreviousSecretExpiresAt *string `json:"previous_secret_expires_at,omitzero"`
	// Attempts in the last 24 hours that succeeded.
	Delivered24h int64 `json:"delivered_24h"`
	// Attempts in the last 24 hours that failed.
	Failed24h int64 `json:"failed_24h"`
	// When it was last sent to, whatever came of it.
	LastDeliveryAt *string `json:"last_delivery_at,omitzero"`
	// When it was made.
	CreatedAt string `json:"created_at"`
}

// WebhookDeliveriesBody is part of a response.
type WebhookDeliveriesBody struct {
	// Newest first.
	Deliveries []WebhookDeliveryBody `json:"deliveries"`
	// Of the next page, which may be empty; left out on the last one.
	NextCursor *string `json:"next_cursor,omitzero"`
}

// WebhookDeliveryBody is part of a response.
type WebhookDeliveryBody struct {
	// UUIDv7 of the attempt; it sorts by time.
	ID string `json:"id"`
	// Id of the endpoint.
	EndpointID string `json:"endpoint_id"`
	// As it was when this was sent.
	EndpointURL string `json:"endpoint_url"`
	// The same on every attempt, and on a redelivery.
	EventID string `json:"event_id"`
	// Type of the event. Now one of `billing.status_changed`, `identification.completed`, `identification.refused`,
	// `review.closed`, `review.opened`, `usage.daily_settled`, `visitor.suspect`, `webhook.test`.
	Event string `json:"event"`
	// Environment of the endpoint when the event happened. Now one of `live`, `test`.
	Environment string `json:"environment"`
	// `delivered`; `retrying`: failed, and another attempt will follow; `failed`: failed, and none will.
	Status string `json:"status"`
	// The receiver's status. Left out without one.
	ResponseCode *int64 `json:"response_code,omitzero"`
	// How long the attempt took, in milliseconds.
	DurationMs int64 `json:"duration_ms"`
	// Which attempt of its delivery it was, from 1.
	Attempt int64 `json:"attempt"`
	// Why it failed; left out on success. Now one of `blocked_address`, `connect_error`, `connection_reset`,
	// `dns_error`, `http_status`, `paused`, `redirect`, `removed`, `response_too_large`, `timeout`, `tls_error`.
	Error *string `json:"error,omitzero"`
	// When the attempt began.
	OccurredAt string `json:"occurred_at"`
}

// WebhooksBody is part of a response.
type WebhooksBody struct {
	// Newest first.
	Endpoints []WebhookBody `json:"endpoints"`
}

// IdentifyHeaders is of Identify. What is zero is left out.
type IdentifyHeaders struct {
	// Makes a retry safe: a request whose key was used in the last 24 hours is a duplicate and costs nothing. Its
	// scope is the organization with all its environments: use random keys, or keys unique across environments.
	IdempotencyKey string
	// `full`: a duplicate within a minute of its original, by the same key and from the same origin, gets the
	// original's whole response and `duplicate: true`, if it comes from the same address or has the same `signals`.
	// For a retry whose first response was lost or late.
	Replay string
	// Platform of the SDK, where the body does not say.
	SDKPlatform string
	// From a proxy key (required) or a secret key: the visitor's IPv4 or IPv6 address. With any other key it is
	// ignored, and so are the other `x-svc-visitor-` headers.
	VisitorIP string
	// The site that the visitor is at.
	VisitorOrigin string
	// The visitor's user agent.
	VisitorUserAgent string
	// The visitor's `accept-language`, `sec-ch-ua...` and `sec-fetch-...` headers as a JSON object of texts. Without
	// them `forged_report` stays silent.
	VisitorHeaders string
	// From a proxy key: the visitor's public key, whose origins, platforms and weights then apply.
	PublicKey string
}

// IssueAttestationChallengeHeaders is of IssueAttestationChallenge. What is zero is left out.
type IssueAttestationChallengeHeaders struct {
	// Platform of the SDK, where the body does not say.
	SDKPlatform string
}

// SupplementEventHeaders is of SupplementEvent. What is zero is left out.
type SupplementEventHeaders struct {
	// Platform of the SDK, where the body does not say.
	SDKPlatform string
	// From a proxy key (required) or a secret key: the visitor's IPv4 or IPv6 address. With any other key it is
	// ignored, and so are the other `x-svc-visitor-` headers.
	VisitorIP string
	// The site that the visitor is at.
	VisitorOrigin string
	// The visitor's user agent.
	VisitorUserAgent string
	// The visitor's `accept-language`, `sec-ch-ua...` and `sec-fetch-...` headers as a JSON object of texts. Without
	// them `forged_report` stays silent.
	VisitorHeaders string
	// From a proxy key: the visitor's public key, whose origins, platforms and weights then apply.
	PublicKey string
}

// ListEventsQuery is of ListEvents. What is zero is left out.
type ListEventsQuery struct {
	// Only events of this visitor.
	Visitor string
	// Only events of this suspect level.
	Level string
	// Only events with this tag.
	Tag string
	// Only events from this IPv4 or IPv6 address.
	IPAddress string
	// Only events from this country: two letters.
	Country string
	// Only events in which this signal fired.
	Signal string
	// Only events of this kind of visitor.
	Kind string
	// Only events of this account.
	AccountID string
	// Only events with this action.
	Action string
	// Only events from this autonomous system.
	ASN string
	// Only events with this decision.
	Decision string
	// Only events with this label.
	Label string
	// Only events that the rule with this id decided, also where it was deleted since.
	Rule string
	// With `rule`: only events that the rule matched in shadow mode instead.
	Shadow bool
	// Only events in which any signal of this group fired.
	Group string
	// Start of the window, inclusive; 24 hours before its end when left out.
	From string
	// End of the window, exclusive; now when left out.
	To string
	// The first page when it and `cursor` are left out.
	Page int64
	// `next_cursor` of the page before; the first page when left out.
	Cursor string
	// How many per page, at most.
	Limit int64
	// `oldest` reads the feed; `newest` when left out.
	Order string
	// With `order=oldest`: `next_cursor` of the page before; from the oldest when left out.
	After string
}

// ListChangesQuery is of ListChanges. What is zero is left out.
type ListChangesQuery struct {
	// `next_cursor` of the page before; from the oldest that is kept when left out.
	After string
	// How many per page, at most.
	Limit int64
}

// ListAccountsQuery is of ListAccounts. What is zero is left out.
type ListAccountsQuery struct {
	// Only those seen from this country in 30 days: two letters.
	Country string
	// Only those whose events of the last 24 hours have this as their highest suspect level.
	Level string
	// Only those whose id begins with this.
	Q string
	// `next_cursor` of the page before; the first page when left out.
	Cursor string
	// How many per page, at most.
	Limit int64
	// The least number of visitors in 30 days.
	MinVisitors int64
}

// ListVisitorsQuery is of ListVisitors. What is zero is left out.
type ListVisitorsQuery struct {
	// Only those seen from this country in 30 days: two letters.
	Country string
	// Only those whose events of the last 24 hours have this as their highest suspect level.
	Level string
	// Only those whose id begins with this.
	Q string
	// `next_cursor` of the page before; the first page when left out.
	Cursor string
	// How many per page, at most.
	Limit int64
	// The least number of accounts in 30 days, sign-ups without one included.
	MinAccounts int64
}

// ListProxyKeysQuery is of ListProxyKeys. What is zero is left out.
type ListProxyKeysQuery struct {
	// How many per page, at most.
	Limit int64
	// `next_cursor` of the page before; the first page when left out.
	Cursor string
}

// ListSDKKeysQuery is of ListSDKKeys. What is zero is left out.
type ListSDKKeysQuery struct {
	// How many per page, at most.
	Limit int64
	// `next_cursor` of the page before; the first page when left out.
	Cursor string
}

// CountBrowserKeysQuery is of CountBrowserKeys. What is zero is left out.
type CountBrowserKeysQuery struct {
	// Start of the window; all keys when left out.
	From string
	// End of the window, exclusive; now when left out, which is best.
	To string
}

// ListWebhookDeliveriesQuery is of ListWebhookDeliveries. What is zero is left out.
type ListWebhookDeliveriesQuery struct {
	// Only attempts of these endpoints.
	Environment string
	// Only attempts to the endpoint of this id.
	EndpointID string
	// How many per page, at most.
	Limit int64
	// `next_cursor` of the page before; the first page when left out.
	Cursor string
}

// GetRulesQuery is of GetRules. What is zero is left out.
type GetRulesQuery struct {
	// `live` is production, `test` staging and development.
	Environment string
}

// SaveRulesQuery is of SaveRules. What is zero is left out.
type SaveRulesQuery struct {
	// `live` is production, `test` staging and development.
	Environment string
}

// PreviewRulesQuery is of PreviewRules. What is zero is left out.
type PreviewRulesQuery struct {
	// `live` is production, `test` staging and development.
	Environment string
}

// ListRuleProposalsQuery is of ListRuleProposals. What is zero is left out.
type ListRuleProposalsQuery struct {
	// `live` is production, `test` staging and development.
	Environment string
}

// ProposeRulesQuery is of ProposeRules. What is zero is left out.
type ProposeRulesQuery struct {
	// `live` is production, `test` staging and development.
	Environment string
}

// DismissRuleProposalQuery is of DismissRuleProposal. What is zero is left out.
type DismissRuleProposalQuery struct {
	// `live` is production, `test` staging and development.
	Environment string
}

// GetWeightsSuggestionQuery is of GetWeightsSuggestion. What is zero is left out.
type GetWeightsSuggestionQuery struct {
	// `live` is production, `test` staging and development.
	Environment string
}

// ListListEntriesQuery is of ListListEntries. What is zero is left out.
type ListListEntriesQuery struct {
	// Beginning of the value.
	Q string
	// How many per page, at most.
	Limit int64
	// `next_cursor` of the page before; the first page when left out.
	Cursor string
}

// GetPerformanceQuery is of GetPerformance. What is zero is left out.
type GetPerformanceQuery struct {
	// `live` is production, `test` staging and development.
	Environment string
	// Start of the window; 30 days before its end when left out.
	From string
	// End of the window, exclusive; now when left out.
	To string
}

// ListReviewsQuery is of ListReviews. What is zero is left out.
type ListReviewsQuery struct {
	// Only reviews of this state.
	State string
	// Only those that the member with this id takes care of, or with `none` nobody does.
	Assignee string
	// How many per page, at most.
	Limit int64
	// `next_cursor` of the page before; the first page when left out.
	Cursor string
}
