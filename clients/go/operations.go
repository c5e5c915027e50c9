// Code generated from docs/openapi.json by make reference. DO NOT EDIT.

package svc

import (
	"cmp"
	"context"
	"net/http"
)

// Identify: identify a visitor.
//
// The response is sent once everything that it changes is stored. Retry with the same `Idempotency-Key`: what was
// stored is not identified or charged again. A body may be compressed (`Content-Encoding: gzip`), up to 1 MiB
// after decompression. Proxy keys go into `x-api-key` as the others do.
//
// Of a duplicate, the request id and Duplicate may be all that is set.
func (c *Client) Identify(ctx context.Context, body IdentifyBody, headers IdentifyHeaders) (*IdentifyAnswer, error) {
	var into IdentifyAnswer
	if err := c.Send(ctx, Call{
		Method:       http.MethodPost,
		Path:         "/identify",
		Body:         body,
		Headers:      given("Idempotency-Key", orNewKey(headers.IdempotencyKey), "x-svc-replay", cmp.Or(headers.Replay, "full"), "x-svc-sdk-platform", headers.SDKPlatform, "x-svc-visitor-ip", headers.VisitorIP, "x-svc-visitor-origin", headers.VisitorOrigin, "x-svc-visitor-user-agent", headers.VisitorUserAgent, "x-svc-visitor-headers", headers.VisitorHeaders, "x-svc-public-key", headers.PublicKey),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// IssueAttestationChallenge: issue an attestation challenge.
//
// For an app that proves its device: the challenge goes into the next report, within five minutes, once.
func (c *Client) IssueAttestationChallenge(ctx context.Context, headers IssueAttestationChallengeHeaders) (*ChallengeAnswer, error) {
	var into ChallengeAnswer
	if err := c.Send(ctx, Call{
		Method:  http.MethodPost,
		Path:    "/attestation/challenge",
		Headers: given("x-svc-sdk-platform", headers.SDKPlatform),
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// SupplementEvent: send the deferred report of an identification.
//
// What takes long to collect may follow within 24 hours, from the same key and origin. It is kept with the event
// and changes nothing else. The same report again is taken as a duplicate. A secret or proxy key that identified
// sends it with the same forwarded origin, and a proxy key with `x-svc-visitor-ip` again. An app, which has no
// origin, names its platform again in `sdk.platform` or `x-svc-sdk-platform`.
func (c *Client) SupplementEvent(ctx context.Context, requestID string, body SupplementBody, headers SupplementEventHeaders) (*SupplementAnswer, error) {
	var into SupplementAnswer
	if err := c.Send(ctx, Call{
		Method:       http.MethodPost,
		Path:         "/events/{}/supplement",
		Segments:     []string{requestID},
		Body:         body,
		Headers:      given("x-svc-sdk-platform", headers.SDKPlatform, "x-svc-visitor-ip", headers.VisitorIP, "x-svc-visitor-origin", headers.VisitorOrigin, "x-svc-visitor-user-agent", headers.VisitorUserAgent, "x-svc-visitor-headers", headers.VisitorHeaders, "x-svc-public-key", headers.PublicKey),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ListEvents: list events.
//
// Newest first, of the organization and environment of the key, of at most 30 days at once, as far back as events
// are kept: 30 days, unless the operator says more. Without `from` the window begins 24 hours before its end. Each
// row has the verdict of identify, with the signals by name under `signals` and their groups under `triggers`.
// Filters may be combined. `next_cursor` leads to the next page, in the same window and with the same filters, and
// is left out on the last one; `page` counts pages instead, at most 10,000 events deep. A page of several filters
// that are rarely met together may be short, or empty, and still have a `next_cursor`: a request looks at no more
// than 20,000 events. `rule` lists what a rule decided, with `shadow=true` what it matched in shadow mode. With
// `order=oldest` the list is a feed: each event once, oldest first, from the oldest that is kept or from `from`,
// and then behind `after`. No event comes behind a `next_cursor`, of which each page has one: go on with it, and
// wait a second where `has_more` is false. An event comes about two seconds after its arrival; one that was stored
// later comes when it is, after younger ones. `to`, `page` and `cursor` are not for a feed, nor are filters on
// what an event may get later: `account_id`, `action`, `tag`, `label` and `rule` are `not_with_order`.
func (c *Client) ListEvents(ctx context.Context, query ListEventsQuery) (*EventsAnswer, error) {
	var into EventsAnswer
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/events",
		Query:        given("visitor", query.Visitor, "level", query.Level, "tag", query.Tag, "ip_address", query.IPAddress, "country", query.Country, "signal", query.Signal, "kind", query.Kind, "account_id", query.AccountID, "action", query.Action, "asn", query.ASN, "decision", query.Decision, "label", query.Label, "rule", query.Rule, "shadow", query.Shadow, "group", query.Group, "from", query.From, "to", query.To, "page", query.Page, "cursor", query.Cursor, "limit", query.Limit, "order", query.Order, "after", query.After),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// GetEvent: read one event.
//
// With the archived submission under `document`, and the deferred report when one arrived. The document also says
// why the verdict is what it is: `evidence` of each signal, `linkage` (how the visitor was found, how sure that
// is), `changes` since the visitor's last report, and the result of its `attestation`. Its contents are not a
// public contract.
func (c *Client) GetEvent(ctx context.Context, requestID string) (*EventDetailBody, error) {
	var into EventDetailBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/events/{}",
		Segments:     []string{requestID},
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// UpdateEvent: set the account, the action, the tag or the label of an event.
//
// For what is known only afterwards, such as the account that a sign-up makes, or a chargeback. Fields that are
// left out stay, `null` removes one; the last writer wins. The event keeps its visitor, velocity, signals, score
// and price, and no webhook is sent; the counts of the account and the visitor follow. A label may be set for 400
// days: of an event that is not readable any more the label alone, which is then the response.
func (c *Client) UpdateEvent(ctx context.Context, requestID string, body UpdateEventBody) (*EventDetailBody, error) {
	var into EventDetailBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPatch,
		Path:     "/events/{}",
		Segments: []string{requestID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ListChanges: list changes of events.
//
// For a copy that follows the store: each event once as `event.created`, `event.updated` when its account, action,
// tag or label was set or removed, and `event.erased` when its visitor was erased; of the organization and
// environment of the key, in the order in which they were stored, each once. `event` is the event as it is when
// the page is read, and is left out once it is erased. Nothing comes behind a `next_cursor`, of which each page
// has one: go on with it as `after`, and wait a second where `has_more` is false. A change comes about two seconds
// after it was made, and is kept for as long as events are, from when it was made: start a new copy if its cursor
// is older: it has missed changes, erasures too. That events grow too old is no change. Cursors are not those of
// `GET /events`.
func (c *Client) ListChanges(ctx context.Context, query ListChangesQuery) (*ChangesAnswer, error) {
	var into ChangesAnswer
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/changes",
		Query:        given("after", query.After, "limit", query.Limit),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ListAccounts: list accounts.
//
// The one that was seen last first, as far back as events are kept. Those of production are apart; those of
// staging and development are together, by the environment of the key. Filters may be combined. A page with
// filters that few fit may be short, or empty, and still have a `next_cursor`: a request looks at no more than
// 5,000 events.
func (c *Client) ListAccounts(ctx context.Context, query ListAccountsQuery) (*AccountsAnswer, error) {
	var into AccountsAnswer
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/accounts",
		Query:        given("country", query.Country, "level", query.Level, "q", query.Q, "cursor", query.Cursor, "limit", query.Limit, "min_visitors", query.MinVisitors),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// GetAccount: read one account.
//
// Those of production are apart; those of staging and development are together, by the environment of the key.
// What it was seen with comes from its newest 2,000 events.
func (c *Client) GetAccount(ctx context.Context, accountID string) (*AccountAnswer, error) {
	var into AccountAnswer
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/accounts/{}",
		Segments:     []string{accountID},
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ListVisitors: list visitors.
//
// The one that was seen last first, as far back as events are kept. Those of production are apart; those of
// staging and development are together, by the environment of the key. Filters may be combined. A page with
// filters that few fit may be short, or empty, and still have a `next_cursor`: a request looks at no more than
// 5,000 events. Visitors that are not identifiable, and new ones of a report that was sent before, are left out.
func (c *Client) ListVisitors(ctx context.Context, query ListVisitorsQuery) (*SeenVisitorsAnswer, error) {
	var into SeenVisitorsAnswer
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/visitors",
		Query:        given("country", query.Country, "level", query.Level, "q", query.Q, "cursor", query.Cursor, "limit", query.Limit, "min_accounts", query.MinAccounts),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// GetVisitor: read one visitor.
//
// Those of production are apart; those of staging and development are together, by the environment of the key.
// What it was seen with comes from its newest 2,000 events.
func (c *Client) GetVisitor(ctx context.Context, visitorID string) (*SeenVisitorAnswer, error) {
	var into SeenVisitorAnswer
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/visitors/{}",
		Segments:     []string{visitorID},
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// GetVerdictKeys: read the public keys of signed verdicts.
//
// A JWK set, open to all. Keep it for an hour, and read it again for a `kid` that is not in it.
func (c *Client) GetVerdictKeys(ctx context.Context, organizationID string) (*VerdictKeysBody, error) {
	var into VerdictKeysBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/organizations/{}/verdict-keys",
		Segments:     []string{organizationID},
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// GetManagementKey: describe the management key.
//
// Which organization it acts on, and in which role.
func (c *Client) GetManagementKey(ctx context.Context) (*ManagementKeyBody, error) {
	var into ManagementKeyBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/key",
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ListProxyKeys: list proxy keys.
//
// Oldest first, revoked ones included for 400 days. All of them, or a page where `limit` or `cursor` is given. A
// key that has expired stays `active` until it is revoked. Needs the role `admin`.
func (c *Client) ListProxyKeys(ctx context.Context, organizationID string, query ListProxyKeysQuery) (*ProxyKeysBody, error) {
	var into ProxyKeysBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/proxy-credentials",
		Segments:     []string{organizationID},
		Query:        given("limit", query.Limit, "cursor", query.Cursor),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// IssueProxyKey: issue a proxy key.
//
// The secret is shown this once. At most 200 keys of all kinds that are neither revoked nor expired may be in an
// organization. Needs the role `admin`.
func (c *Client) IssueProxyKey(ctx context.Context, organizationID string, body IssueProxyKeyBody) (*IssuedProxyKeyBody, error) {
	var into IssuedProxyKeyBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/proxy-credentials",
		Segments: []string{organizationID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// RevokeProxyKey: revoke a proxy key.
//
// For good. It is refused from the next request on, and stays listed. Needs the role `admin`.
func (c *Client) RevokeProxyKey(ctx context.Context, organizationID string, proxyCredentialID string) (*ProxyKeyBody, error) {
	var into ProxyKeyBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/proxy-credentials/{}/revoke",
		Segments: []string{organizationID, proxyCredentialID},
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ListSDKKeys: list SDK keys.
//
// Oldest first, revoked ones included for 400 days. All of them, or a page where `limit` or `cursor` is given. A
// key that has expired stays `active` until it is revoked.
func (c *Client) ListSDKKeys(ctx context.Context, organizationID string, query ListSDKKeysQuery) (*SDKKeysBody, error) {
	var into SDKKeysBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/sdk-keys",
		Segments:     []string{organizationID},
		Query:        given("limit", query.Limit, "cursor", query.Cursor),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// IssueSDKKey: issue an SDK key.
//
// The secret is shown this once. At most 200 keys of all kinds that are neither revoked nor expired may be in an
// organization. Needs the role `admin` or `developer`.
func (c *Client) IssueSDKKey(ctx context.Context, organizationID string, body IssueSDKKeyBody) (*IssuedSDKKeyBody, error) {
	var into IssuedSDKKeyBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/sdk-keys",
		Segments: []string{organizationID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// RevokeSDKKey: revoke an SDK key.
//
// For good. It is refused from the next request on, and stays listed. Needs the role `admin` or `developer`.
func (c *Client) RevokeSDKKey(ctx context.Context, organizationID string, keyID string) (*SDKKeyBody, error) {
	var into SDKKeyBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/sdk-keys/{}/revoke",
		Segments: []string{organizationID, keyID},
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ReplaceSDKKeyOrigins: replace the allowed origins of an SDK key.
//
// An origin is `scheme://host[:port]`; `https://*.example.com` is any host below it, and not the host itself.
// Below a public suffix, such as `https://*.co.uk`, are the sites of strangers: never allow one. Needs the role
// `admin` or `developer`.
func (c *Client) ReplaceSDKKeyOrigins(ctx context.Context, organizationID string, keyID string, body ReplaceOriginsBody) (*SDKKeyBody, error) {
	var into SDKKeyBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPut,
		Path:     "/management/organizations/{}/sdk-keys/{}/allowed-origins",
		Segments: []string{organizationID, keyID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// RotateVerdictKey: rotate the key of signed verdicts.
//
// The next key, which is published already, signs from the next request on. Verdicts by the previous one are
// accepted for this many hours, `0` = no longer. Needs the role `admin`.
func (c *Client) RotateVerdictKey(ctx context.Context, organizationID string, body RotateVerdictKeyBody) (*VerdictKeysBody, error) {
	var into VerdictKeysBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/verdict-keys/rotate",
		Segments: []string{organizationID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// CountBrowserKeys: count the keys of browsers.
//
// Those that first signed in a window of time and are not revoked. All visitors are looked through. Needs the role
// `admin`.
func (c *Client) CountBrowserKeys(ctx context.Context, organizationID string, query CountBrowserKeysQuery) (*BrowserKeysBody, error) {
	var into BrowserKeysBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/browser-keys",
		Segments:     []string{organizationID},
		Query:        given("from", query.From, "to", query.To),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// RevokeBrowserKeys: revoke the keys of browsers.
//
// After a script that was not yours ran on your pages: it may have planted a key, which proves as the visitor's
// own does, from anywhere. Keys that first signed in the window prove nothing from the next request on; the web
// SDK renews them, and their visitors stay, unproven for a visit. A planted key counts from when it first signed,
// which may be on a later visit: leave out `to`. May be repeated. Needs the role `admin`.
func (c *Client) RevokeBrowserKeys(ctx context.Context, organizationID string, body RevokeBrowserKeysBody) (*BrowserKeysBody, error) {
	var into BrowserKeysBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/browser-keys/revoke",
		Segments: []string{organizationID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ListWebhooks: list webhook endpoints.
//
// Newest first, without secrets.
func (c *Client) ListWebhooks(ctx context.Context, organizationID string) (*WebhooksBody, error) {
	var into WebhooksBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/webhooks",
		Segments:     []string{organizationID},
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// CreateWebhook: register a webhook endpoint.
//
// At most ten per organization. The signing secret is shown this once. The URL must be `https`, and every address
// of its host public and none of this service's own; it is judged again at every attempt, and redirects are not
// followed. Ports are 443 and those above 1023, unless the operator allows others. `live` endpoints get events of
// production traffic, `test` ones all others; `billing.status_changed` needs `live`. A `filter` that cannot be
// used is `invalid_condition`, and one that could cost too much `too_expensive`; `message` says why. Needs the
// role `admin` or `developer`.
func (c *Client) CreateWebhook(ctx context.Context, organizationID string, body CreateWebhookBody) (*IssuedWebhookBody, error) {
	var into IssuedWebhookBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/webhooks",
		Segments: []string{organizationID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// UpdateWebhook: change a webhook endpoint.
//
// Send only what changes. While it is paused nothing new is queued for it, and what was queued waits until it is
// resumed. A changed URL, or `paused: false`, gives a failing endpoint a new start. What waits goes out in the
// format that the endpoint has then; after a change to `json`, a rotation shows a secret. Needs the role `admin`
// or `developer`.
func (c *Client) UpdateWebhook(ctx context.Context, organizationID string, webhookID string, body UpdateWebhookBody) (*WebhookBody, error) {
	var into WebhookBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPatch,
		Path:     "/management/organizations/{}/webhooks/{}",
		Segments: []string{organizationID, webhookID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// DeleteWebhook: delete a webhook endpoint.
//
// Deliveries to it stop at once. Needs the role `admin` or `developer`.
func (c *Client) DeleteWebhook(ctx context.Context, organizationID string, webhookID string) error {
	return c.Send(ctx, Call{
		Method:   http.MethodDelete,
		Path:     "/management/organizations/{}/webhooks/{}",
		Segments: []string{organizationID, webhookID},
	}, nil)
}

// RotateWebhookSecret: rotate the signing secret of a webhook endpoint.
//
// The new secret is shown this once. The previous one signs along for this many hours, `0` = not at all; an older
// one no more. A chat format has no secret. Needs the role `admin` or `developer`.
func (c *Client) RotateWebhookSecret(ctx context.Context, organizationID string, webhookID string, body RotateWebhookSecretBody) (*IssuedWebhookBody, error) {
	var into IssuedWebhookBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/webhooks/{}/rotate-secret",
		Segments: []string{organizationID, webhookID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// TestWebhook: send a test event.
//
// One `webhook.test`, whether or not the endpoint subscribes to it. It is tried once, and its failure does not
// make the endpoint `failing`. Needs the role `admin` or `developer`.
func (c *Client) TestWebhook(ctx context.Context, organizationID string, webhookID string) (*QueuedDeliveryBody, error) {
	var into QueuedDeliveryBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/webhooks/{}/test",
		Segments: []string{organizationID, webhookID},
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// RedeliverWebhook: deliver an event again.
//
// An event that was sent to this endpoint in the last 30 days, accepted or not, with the same `id`. It is tried
// once, and its failure does not make the endpoint `failing`. Needs the role `admin` or `developer`.
func (c *Client) RedeliverWebhook(ctx context.Context, organizationID string, webhookID string, body RedeliverWebhookBody) (*QueuedDeliveryBody, error) {
	var into QueuedDeliveryBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/webhooks/{}/redeliver",
		Segments: []string{organizationID, webhookID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ListWebhookDeliveries: list delivery attempts.
//
// Of the last 30 days, newest first. The last page has no `next_cursor`. With `endpoint_id`, a page may be short
// or empty and have one.
func (c *Client) ListWebhookDeliveries(ctx context.Context, organizationID string, query ListWebhookDeliveriesQuery) (*WebhookDeliveriesBody, error) {
	var into WebhookDeliveriesBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/webhook-deliveries",
		Segments:     []string{organizationID},
		Query:        given("environment", query.Environment, "endpoint_id", query.EndpointID, "limit", query.Limit, "cursor", query.Cursor),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// GetRules: read the rules.
func (c *Client) GetRules(ctx context.Context, organizationID string, query GetRulesQuery) (*RulesAnswer, error) {
	var into RulesAnswer
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/rules",
		Segments:     []string{organizationID},
		Query:        given("environment", query.Environment),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// SaveRules: save the rules.
//
// The whole ruleset, in force from the next request on: a rule that is not sent is gone, also one that the
// organization started with. Send the `revision` that you read: another one is `409 revision_conflict`. A
// condition that cannot be used is `invalid_condition`; `message` has line and column. Only admins change active
// rules and their order, and use more than 80 % of what a ruleset may have. Where the rules could cost more than 2
// ms of CPU an event, the first that goes beyond is `too_expensive`. Needs the role `admin`, `developer` or
// `analyst`.
func (c *Client) SaveRules(ctx context.Context, organizationID string, body RulesBody, query SaveRulesQuery) (*RulesAnswer, error) {
	var into RulesAnswer
	if err := c.Send(ctx, Call{
		Method:   http.MethodPut,
		Path:     "/management/organizations/{}/rules",
		Segments: []string{organizationID},
		Body:     body,
		Query:    given("environment", query.Environment),
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// PreviewRules: try rules on the newest events.
//
// On the newest 10,000 events of that kind of environment, with their stored velocity, without what was set later,
// and with lists and labels as they are now. Refused as saving the rules would be.
func (c *Client) PreviewRules(ctx context.Context, organizationID string, body PreviewBody, query PreviewRulesQuery) (*RulesPreview, error) {
	var into RulesPreview
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/rules/preview",
		Segments: []string{organizationID},
		Body:     body,
		Query:    given("environment", query.Environment),
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ListRuleProposals: list proposals of rules.
//
// What waits for an admin. A proposal is kept for 90 days.
func (c *Client) ListRuleProposals(ctx context.Context, organizationID string, query ListRuleProposalsQuery) (*ProposalsBody, error) {
	var into ProposalsBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/rule-proposals",
		Segments:     []string{organizationID},
		Query:        given("environment", query.Environment),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ProposeRules: propose rules to an admin.
//
// Nothing is in force. Refused as saving the rules would be; at most 20 wait. Needs the role `admin`, `developer`
// or `analyst`.
func (c *Client) ProposeRules(ctx context.Context, organizationID string, body NewProposalBody, query ProposeRulesQuery) (*ProposalBody, error) {
	var into ProposalBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/rule-proposals",
		Segments: []string{organizationID},
		Body:     body,
		Query:    given("environment", query.Environment),
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// DismissRuleProposal: dismiss a proposal of rules.
//
// By an admin, or by its author. Needs the role `admin`, `developer` or `analyst`.
func (c *Client) DismissRuleProposal(ctx context.Context, organizationID string, proposalID string, query DismissRuleProposalQuery) error {
	return c.Send(ctx, Call{
		Method:   http.MethodDelete,
		Path:     "/management/organizations/{}/rule-proposals/{}",
		Segments: []string{organizationID, proposalID},
		Query:    given("environment", query.Environment),
	}, nil)
}

// GetOrganizationRiskWeights: read the organization's risk weights.
func (c *Client) GetOrganizationRiskWeights(ctx context.Context, organizationID string) (*RiskWeightsBody, error) {
	var into RiskWeightsBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/risk-weights",
		Segments:     []string{organizationID},
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// SaveOrganizationRiskWeights: save the organization's risk weights for a platform.
//
// What is not named keeps its value in force. Send the `revision` that you read to make sure that nobody has saved
// since: another one is `409 revision_conflict`. Needs the role `admin`.
func (c *Client) SaveOrganizationRiskWeights(ctx context.Context, organizationID string, platform string, body SaveWeightsBody) (*RiskWeightsBody, error) {
	var into RiskWeightsBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPut,
		Path:     "/management/organizations/{}/risk-weights/{}",
		Segments: []string{organizationID, platform},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// RestoreOrganizationRiskWeights: restore the organization's risk weights for a platform.
//
// Back to the defaults. Needs the role `admin`.
func (c *Client) RestoreOrganizationRiskWeights(ctx context.Context, organizationID string, platform string) (*RiskWeightsBody, error) {
	var into RiskWeightsBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodDelete,
		Path:     "/management/organizations/{}/risk-weights/{}",
		Segments: []string{organizationID, platform},
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// GetSDKKeyRiskWeights: read the risk weights of an SDK key.
func (c *Client) GetSDKKeyRiskWeights(ctx context.Context, organizationID string, keyID string) (*RiskWeightsBody, error) {
	var into RiskWeightsBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/sdk-keys/{}/risk-weights",
		Segments:     []string{organizationID, keyID},
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// SaveSDKKeyRiskWeights: save the risk weights of an SDK key for a platform.
//
// What is not named keeps its value in force. Send the `revision` that you read to make sure that nobody has saved
// since: another one is `409 revision_conflict`. Needs the role `admin`.
func (c *Client) SaveSDKKeyRiskWeights(ctx context.Context, organizationID string, keyID string, platform string, body SaveWeightsBody) (*RiskWeightsBody, error) {
	var into RiskWeightsBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPut,
		Path:     "/management/organizations/{}/sdk-keys/{}/risk-weights/{}",
		Segments: []string{organizationID, keyID, platform},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// RestoreSDKKeyRiskWeights: restore the risk weights of an SDK key for a platform.
//
// Back to those of the organization. Needs the role `admin`.
func (c *Client) RestoreSDKKeyRiskWeights(ctx context.Context, organizationID string, keyID string, platform string) (*RiskWeightsBody, error) {
	var into RiskWeightsBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodDelete,
		Path:     "/management/organizations/{}/sdk-keys/{}/risk-weights/{}",
		Segments: []string{organizationID, keyID, platform},
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ListRiskSignals: list the signals that can fire.
func (c *Client) ListRiskSignals(ctx context.Context, organizationID string) (*SignalsBody, error) {
	var into SignalsBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/risk-signals",
		Segments:     []string{organizationID},
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// GetWeightsSuggestion: read which weights labels suggest.
//
// From the organization's own labeled events of the platform, at least 50 of each label: the stored ones, and
// those among about the newest million that are deleted. Nothing is changed. With fewer there are no weights in
// the response.
func (c *Client) GetWeightsSuggestion(ctx context.Context, organizationID string, platform string, query GetWeightsSuggestionQuery) (*SuggestionBody, error) {
	var into SuggestionBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/risk-weights/{}/suggestion",
		Segments:     []string{organizationID, platform},
		Query:        given("environment", query.Environment),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ListLists: list lists.
//
// Every organization has six from the start: `blocked_visitors`, `blocked_accounts`, `blocked_addresses`,
// `trusted_visitors`, `trusted_accounts` and `trusted_addresses`.
func (c *Client) ListLists(ctx context.Context, organizationID string) (*ListsBody, error) {
	var into ListsBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/lists",
		Segments:     []string{organizationID},
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// CreateList: make a list.
//
// At most 100 per organization, the six built-in lists included. Needs the role `admin` or `developer`.
func (c *Client) CreateList(ctx context.Context, organizationID string, body CreateListBody) (*ListBody, error) {
	var into ListBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/lists",
		Segments: []string{organizationID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// GetList: read a list.
//
// Without its entries, which are listed apart.
func (c *Client) GetList(ctx context.Context, organizationID string, listID string) (*ListBody, error) {
	var into ListBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/lists/{}",
		Segments:     []string{organizationID, listID},
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// UpdateList: rename a list.
//
// A built-in list, and one that a rule uses, keeps its name. Needs the role `admin` or `developer`.
func (c *Client) UpdateList(ctx context.Context, organizationID string, listID string, body UpdateListBody) (*ListBody, error) {
	var into ListBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPatch,
		Path:     "/management/organizations/{}/lists/{}",
		Segments: []string{organizationID, listID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// DeleteList: delete a list.
//
// With its entries. A built-in list, and one that a rule uses, cannot be deleted. Needs the role `admin` or
// `developer`.
func (c *Client) DeleteList(ctx context.Context, organizationID string, listID string) error {
	return c.Send(ctx, Call{
		Method:   http.MethodDelete,
		Path:     "/management/organizations/{}/lists/{}",
		Segments: []string{organizationID, listID},
	}, nil)
}

// ListListEntries: list the entries of a list.
//
// In the order of their values, without those that have expired. A page may be short and have a `next_cursor`.
func (c *Client) ListListEntries(ctx context.Context, organizationID string, listID string, query ListListEntriesQuery) (*EntriesBody, error) {
	var into EntriesBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/lists/{}/entries",
		Segments:     []string{organizationID, listID},
		Query:        given("q", query.Q, "limit", query.Limit, "cursor", query.Cursor),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// AddListEntries: add entries to a list.
//
// All of them or, where one is refused, none. Values are stored in one spelling: networks without host bits,
// lower-case origins, upper-case countries, AS numbers as digits. At most 100,000 entries that have not expired
// may be in the lists of an organization. What is added counts from the next request on. Needs the role `admin`,
// `developer` or `analyst`.
func (c *Client) AddListEntries(ctx context.Context, organizationID string, listID string, body AddEntriesBody) (*AddedBody, error) {
	var into AddedBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/lists/{}/entries",
		Segments: []string{organizationID, listID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// RemoveListEntries: remove entries from a list.
//
// By their values. From the next request on they are in it no more. Needs the role `admin`, `developer` or
// `analyst`.
func (c *Client) RemoveListEntries(ctx context.Context, organizationID string, listID string, body RemoveEntriesBody) error {
	return c.Send(ctx, Call{
		Method:   http.MethodDelete,
		Path:     "/management/organizations/{}/lists/{}/entries",
		Segments: []string{organizationID, listID},
		Body:     body,
	}, nil)
}

// LabelEvent: label an event.
//
// What it turned out to be, of an event of any environment, for 400 days from its arrival. Servers with a secret
// key use `updateEvent`. Needs the role `admin`, `developer` or `analyst`.
func (c *Client) LabelEvent(ctx context.Context, organizationID string, requestID string, body LabelBody) (*LabelAnswer, error) {
	var into LabelAnswer
	if err := c.Send(ctx, Call{
		Method:   http.MethodPut,
		Path:     "/management/organizations/{}/events/{}/label",
		Segments: []string{organizationID, requestID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// GetPerformance: read how signals, rules and levels did.
//
// By the labels of events: of those in which a signal fired, how many are fraud (precision), and how much of all
// fraud that is (recall). Of the whole UTC days that the window touches, at most 400. An event without a label is
// never counted as legitimate.
func (c *Client) GetPerformance(ctx context.Context, organizationID string, query GetPerformanceQuery) (*PerformanceBody, error) {
	var into PerformanceBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/performance",
		Segments:     []string{organizationID},
		Query:        given("environment", query.Environment, "from", query.From, "to", query.To),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ListReviews: list reviews.
//
// The one that was opened last first, for 400 days. A page with an assignee who has few may be short, or empty,
// and have a `next_cursor`.
func (c *Client) ListReviews(ctx context.Context, organizationID string, query ListReviewsQuery) (*ReviewsBody, error) {
	var into ReviewsBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/reviews",
		Segments:     []string{organizationID},
		Query:        given("state", query.State, "assignee", query.Assignee, "limit", query.Limit, "cursor", query.Cursor),
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// OpenReview: open a review.
//
// Of an event of any environment. A rule that decides `review` does the same. Of a visitor and account one is open
// at a time: where there is one, it is the response, with `200`. Needs the role `admin`, `developer` or `analyst`.
func (c *Client) OpenReview(ctx context.Context, organizationID string, body OpenReviewBody) (*ReviewAnswer, error) {
	var into ReviewAnswer
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/reviews",
		Segments: []string{organizationID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// GetReview: read a review.
func (c *Client) GetReview(ctx context.Context, organizationID string, reviewID string) (*ReviewAnswer, error) {
	var into ReviewAnswer
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/reviews/{}",
		Segments:     []string{organizationID, reviewID},
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// AssignReview: assign a review.
//
// To a member, or to nobody. Needs the role `admin`, `developer` or `analyst`.
func (c *Client) AssignReview(ctx context.Context, organizationID string, reviewID string, body AssignReviewBody) (*ReviewAnswer, error) {
	var into ReviewAnswer
	if err := c.Send(ctx, Call{
		Method:   http.MethodPatch,
		Path:     "/management/organizations/{}/reviews/{}",
		Segments: []string{organizationID, reviewID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// CloseReview: close a review.
//
// The label goes to the event of the review, and to no other. Needs the role `admin`, `developer` or `analyst`.
func (c *Client) CloseReview(ctx context.Context, organizationID string, reviewID string, body CloseReviewBody) (*ReviewAnswer, error) {
	var into ReviewAnswer
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/reviews/{}/close",
		Segments: []string{organizationID, reviewID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ReopenReview: open a closed review again.
//
// Its label stays, on its event too, until it is closed the next time. `review.opened` is sent again. Not where
// another one of its visitor and account is open. Needs the role `admin`, `developer` or `analyst`.
func (c *Client) ReopenReview(ctx context.Context, organizationID string, reviewID string) (*ReviewAnswer, error) {
	var into ReviewAnswer
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/reviews/{}/reopen",
		Segments: []string{organizationID, reviewID},
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ListVisitorNotes: list notes about a visitor.
func (c *Client) ListVisitorNotes(ctx context.Context, organizationID string, visitorID string) (*NotesBody, error) {
	var into NotesBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/visitors/{}/notes",
		Segments:     []string{organizationID, visitorID},
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// CreateVisitorNote: write a note about a visitor.
//
// At most 100. Notes are kept for 400 days; the erasure of their subject deletes them. Needs the role `admin`,
// `developer` or `analyst`.
func (c *Client) CreateVisitorNote(ctx context.Context, organizationID string, visitorID string, body NewNoteBody) (*NoteBody, error) {
	var into NoteBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/visitors/{}/notes",
		Segments: []string{organizationID, visitorID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// DeleteVisitorNote: delete a note about a visitor.
//
// Needs the role `admin`, `developer` or `analyst`.
func (c *Client) DeleteVisitorNote(ctx context.Context, organizationID string, visitorID string, noteID string) error {
	return c.Send(ctx, Call{
		Method:   http.MethodDelete,
		Path:     "/management/organizations/{}/visitors/{}/notes/{}",
		Segments: []string{organizationID, visitorID, noteID},
	}, nil)
}

// ListAccountNotes: list notes about an account.
func (c *Client) ListAccountNotes(ctx context.Context, organizationID string, accountID string) (*NotesBody, error) {
	var into NotesBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/accounts/{}/notes",
		Segments:     []string{organizationID, accountID},
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// CreateAccountNote: write a note about an account.
//
// At most 100. Notes are kept for 400 days; the erasure of their subject deletes them. Needs the role `admin`,
// `developer` or `analyst`.
func (c *Client) CreateAccountNote(ctx context.Context, organizationID string, accountID string, body NewNoteBody) (*NoteBody, error) {
	var into NoteBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/accounts/{}/notes",
		Segments: []string{organizationID, accountID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// DeleteAccountNote: delete a note about an account.
//
// Needs the role `admin`, `developer` or `analyst`.
func (c *Client) DeleteAccountNote(ctx context.Context, organizationID string, accountID string, noteID string) error {
	return c.Send(ctx, Call{
		Method:   http.MethodDelete,
		Path:     "/management/organizations/{}/accounts/{}/notes/{}",
		Segments: []string{organizationID, accountID, noteID},
	}, nil)
}

// GetSettings: read the settings of the organization.
func (c *Client) GetSettings(ctx context.Context, organizationID string) (*SettingsBody, error) {
	var into SettingsBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/settings",
		Segments:     []string{organizationID},
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// UpdateSettings: change settings of the organization.
//
// What is left out stays; what the operator sets is not changed here. In force from the next request on, on every
// worker and node. Needs the role `admin`.
func (c *Client) UpdateSettings(ctx context.Context, organizationID string, body UpdateSettingsBody) (*SettingsBody, error) {
	var into SettingsBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPatch,
		Path:     "/management/organizations/{}/settings",
		Segments: []string{organizationID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// ListMembers: list members.
//
// Oldest first, those that are invited or suspended among them. Needs the role `admin`.
func (c *Client) ListMembers(ctx context.Context, organizationID string) (*MembersBody, error) {
	var into MembersBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/management/organizations/{}/members",
		Segments:     []string{organizationID},
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// InviteMember: invite a member.
//
// The response has a link by which the member chooses a password and comes in. It works once, within seven days.
// The service sends no mail: hand the link over. At most 500 members per organization. Needs the role `admin`.
func (c *Client) InviteMember(ctx context.Context, organizationID string, body InviteMemberBody) (*InvitedMemberBody, error) {
	var into InvitedMemberBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/members",
		Segments: []string{organizationID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// InviteMemberAgain: invite a member again.
//
// Another link, which takes the place of the former one: for a member without link, password or the device with
// the one-time codes. The member chooses a new password with it, then signs in without a code, and all its other
// sessions end. Needs the role `admin`.
func (c *Client) InviteMemberAgain(ctx context.Context, organizationID string, memberID string) (*InvitedMemberBody, error) {
	var into InvitedMemberBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPost,
		Path:     "/management/organizations/{}/members/{}/invitation",
		Segments: []string{organizationID, memberID},
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// UpdateMember: change a member.
//
// Name, role or status; in force from its next request on. No act of a member may leave the organization without
// an active admin (`409 last_admin`). Needs the role `admin`.
func (c *Client) UpdateMember(ctx context.Context, organizationID string, memberID string, body UpdateMemberBody) (*MemberBody, error) {
	var into MemberBody
	if err := c.Send(ctx, Call{
		Method:   http.MethodPatch,
		Path:     "/management/organizations/{}/members/{}",
		Segments: []string{organizationID, memberID},
		Body:     body,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// RemoveMember: remove a member.
//
// Its sessions end at once. What it did stays attributed to its id. No act of a member may leave the organization
// without an active admin (`409 last_admin`). Needs the role `admin`.
func (c *Client) RemoveMember(ctx context.Context, organizationID string, memberID string) error {
	return c.Send(ctx, Call{
		Method:   http.MethodDelete,
		Path:     "/management/organizations/{}/members/{}",
		Segments: []string{organizationID, memberID},
	}, nil)
}

// EraseVisitor: erase a visitor.
//
// With its events, their submissions and deferred reports, for good. Events that cannot be read stay until the
// operator takes them out; rules, webhooks and names of lists stay as they are, whatever they name. Needs the role
// `admin`.
func (c *Client) EraseVisitor(ctx context.Context, organizationID string, visitorID string) error {
	return c.Send(ctx, Call{
		Method:   http.MethodDelete,
		Path:     "/management/organizations/{}/visitors/{}",
		Segments: []string{organizationID, visitorID},
	}, nil)
}

// EraseAccount: erase an account.
//
// Its id leaves events, counts, lists, notes and queued webhooks, for good. The events stay; so do rules,
// webhooks, names of lists and events that cannot be read, whatever they name. Needs the role `admin`.
func (c *Client) EraseAccount(ctx context.Context, organizationID string, accountID string) error {
	return c.Send(ctx, Call{
		Method:   http.MethodDelete,
		Path:     "/management/organizations/{}/accounts/{}",
		Segments: []string{organizationID, accountID},
	}, nil)
}

// GetHealth: is the process up?.
func (c *Client) GetHealth(ctx context.Context) (*HealthBody, error) {
	var into HealthBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/healthz",
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// GetReadiness: can it serve?.
func (c *Client) GetReadiness(ctx context.Context) (*ReadinessBody, error) {
	var into ReadinessBody
	if err := c.Send(ctx, Call{
		Method:       http.MethodGet,
		Path:         "/readyz",
		IsRepeatable: true,
	}, &into); err != nil {
		return nil, err
	}
	return &into, nil
}
