// The operations of the service, one method each. Generated from docs/openapi.json: make reference

import { type Call, segment } from "./call.js";
import type {
  AccountAnswer,
  AccountsAnswer,
  AddEntriesBody,
  AddedBody,
  AssignReviewBody,
  BrowserKeysBody,
  ChallengeAnswer,
  ChangesAnswer,
  CloseReviewBody,
  CountBrowserKeysQuery,
  CreateListBody,
  CreateWebhookBody,
  DismissRuleProposalQuery,
  DuplicateAnswer,
  EntriesBody,
  EventDetailBody,
  EventsAnswer,
  GetPerformanceQuery,
  GetRulesQuery,
  GetWeightsSuggestionQuery,
  HealthBody,
  IdentifyAnswer,
  IdentifyBody,
  IdentifyHeaders,
  InviteMemberBody,
  InvitedMemberBody,
  IssueAttestationChallengeHeaders,
  IssueProxyKeyBody,
  IssueSdkKeyBody,
  IssuedProxyKeyBody,
  IssuedSdkKeyBody,
  IssuedWebhookBody,
  LabelAnswer,
  LabelBody,
  ListAccountsQuery,
  ListBody,
  ListChangesQuery,
  ListEventsQuery,
  ListListEntriesQuery,
  ListProxyKeysQuery,
  ListReviewsQuery,
  ListRuleProposalsQuery,
  ListSdkKeysQuery,
  ListVisitorsQuery,
  ListWebhookDeliveriesQuery,
  ListsBody,
  ManagementKeyBody,
  MemberBody,
  MembersBody,
  NewNoteBody,
  NewProposalBody,
  NoteBody,
  NotesBody,
  OpenReviewBody,
  PerformanceBody,
  PreviewBody,
  PreviewRulesQuery,
  ProposalBody,
  ProposalsBody,
  ProposeRulesQuery,
  ProxyKeyBody,
  ProxyKeysBody,
  QueuedDeliveryBody,
  ReadinessBody,
  RedeliverWebhookBody,
  RemoveEntriesBody,
  ReplaceOriginsBody,
  ReviewAnswer,
  ReviewsBody,
  RevokeBrowserKeysBody,
  RiskWeightsBody,
  RotateVerdictKeyBody,
  RotateWebhookSecretBody,
  RulesAnswer,
  RulesBody,
  RulesPreview,
  SaveRulesQuery,
  SaveWeightsBody,
  SdkKeyBody,
  SdkKeysBody,
  SeenVisitorAnswer,
  SeenVisitorsAnswer,
  SettingsBody,
  SignalsBody,
  SuggestionBody,
  SupplementAnswer,
  SupplementBody,
  SupplementEventHeaders,
  UpdateEventBody,
  UpdateListBody,
  UpdateMemberBody,
  UpdateSettingsBody,
  UpdateWebhookBody,
  VerdictKeysBody,
  WebhookBody,
  WebhookDeliveriesBody,
  WebhooksBody,
} from "./types.js";

/**
 * Every operation but those of the console. Each rejects with `ApiError` where the service refuses, and with
 * `UnreachableError` where it does not respond.
 */
export abstract class Operations {
  protected abstract send<Answer>(call: Call): Promise<Answer>;

  /**
   * Identify a visitor.
   *
   * The response is sent once everything that it changes is stored. Retry with the same `Idempotency-Key`: what was
   * stored is not identified or charged again. A body may be compressed (`Content-Encoding: gzip`), up to 1 MiB
   * after decompression. Proxy keys go into `x-api-key` as the others do.
   */
  identify(body: IdentifyBody, headers: IdentifyHeaders = {}): Promise<IdentifyAnswer | DuplicateAnswer> {
    return this.send<IdentifyAnswer | DuplicateAnswer>({
      method: "POST",
      path: "/identify",
      body,
      headers: {
        "Idempotency-Key": headers.idempotencyKey ?? crypto.randomUUID(),
        "x-svc-replay": headers.replay ?? "full",
        "x-svc-sdk-platform": headers.sdkPlatform,
        "x-svc-visitor-ip": headers.visitorIp,
        "x-svc-visitor-origin": headers.visitorOrigin,
        "x-svc-visitor-user-agent": headers.visitorUserAgent,
        "x-svc-visitor-headers": headers.visitorHeaders,
        "x-svc-public-key": headers.publicKey,
      },
      isRepeatable: true,
    });
  }

  /**
   * Issue an attestation challenge.
   *
   * For an app that proves its device: the challenge goes into the next report, within five minutes, once.
   */
  issueAttestationChallenge(headers: IssueAttestationChallengeHeaders = {}): Promise<ChallengeAnswer> {
    return this.send<ChallengeAnswer>({
      method: "POST",
      path: "/attestation/challenge",
      headers: { "x-svc-sdk-platform": headers.sdkPlatform },
    });
  }

  /**
   * Send the deferred report of an identification.
   *
   * What takes long to collect may follow within 24 hours, from the same key and origin. It is kept with the event
   * and changes nothing else. The same report again is taken as a duplicate. A secret or proxy key that identified
   * sends it with the same forwarded origin, and a proxy key with `x-svc-visitor-ip` again. An app, which has no
   * origin, names its platform again in `sdk.platform` or `x-svc-sdk-platform`.
   */
  supplementEvent(
    requestId: string,
    body: SupplementBody,
    headers: SupplementEventHeaders = {},
  ): Promise<SupplementAnswer> {
    return this.send<SupplementAnswer>({
      method: "POST",
      path: `/events/${segment(requestId)}/supplement`,
      body,
      headers: {
        "x-svc-sdk-platform": headers.sdkPlatform,
        "x-svc-visitor-ip": headers.visitorIp,
        "x-svc-visitor-origin": headers.visitorOrigin,
        "x-svc-visitor-user-agent": headers.visitorUserAgent,
        "x-svc-visitor-headers": headers.visitorHeaders,
        "x-svc-public-key": headers.publicKey,
      },
      isRepeatable: true,
    });
  }

  /**
   * List events.
   *
   * Newest first, of the organization and environment of the key, of at most 30 days at once, as far back as events
   * are kept: 30 days, unless the operator says more. Without `from` the window begins 24 hours before its end. Each
   * row has the verdict of identify, with the signals by name under `signals` and their groups under `triggers`.
   * Filters may be combined. `next_cursor` leads to the next page, in the same window and with the same filters, and
   * is left out on the last one; `page` counts pages instead, at most 10,000 events deep. A page of several filters
   * that are rarely met together may be short, or empty, and still have a `next_cursor`: a request looks at no more
   * than 20,000 events. `rule` lists what a rule decided, with `shadow=true` what it matched in shadow mode. With
   * `order=oldest` the list is a feed: each event once, oldest first, from the oldest that is kept or from `from`,
   * and then behind `after`. No event comes behind a `next_cursor`, of which each page has one: go on with it, and
   * wait a second where `has_more` is false. An event comes about two seconds after its arrival; one that was stored
   * later comes when it is, after younger ones. `to`, `page` and `cursor` are not for a feed, nor are filters on
   * what an event may get later: `account_id`, `action`, `tag`, `label` and `rule` are `not_with_order`.
   */
  listEvents(query: ListEventsQuery = {}): Promise<EventsAnswer> {
    return this.send<EventsAnswer>({ method: "GET", path: "/events", query: { ...query }, isRepeatable: true });
  }

  /**
   * Read one event.
   *
   * With the archived submission under `document`, and the deferred report when one arrived. The document also says
   * why the verdict is what it is: `evidence` of each signal, `linkage` (how the visitor was found, how sure that
   * is), `changes` since the visitor's last report, and the result of its `attestation`. Its contents are not a
   * public contract.
   */
  getEvent(requestId: string): Promise<EventDetailBody> {
    return this.send<EventDetailBody>({ method: "GET", path: `/events/${segment(requestId)}`, isRepeatable: true });
  }

  /**
   * Set the account, the action, the tag or the label of an event.
   *
   * For what is known only afterwards, such as the account that a sign-up makes, or a chargeback. Fields that are
   * left out stay, `null` removes one; the last writer wins. The event keeps its visitor, velocity, signals, score
   * and price, and no webhook is sent; the counts of the account and the visitor follow. A label may be set for 400
   * days: of an event that is not readable any more the label alone, which is then the response.
   */
  updateEvent(requestId: string, body: UpdateEventBody): Promise<EventDetailBody | LabelAnswer> {
    return this.send<EventDetailBody | LabelAnswer>({ method: "PATCH", path: `/events/${segment(requestId)}`, body });
  }

  /**
   * List changes of events.
   *
   * For a copy that follows the store: each event once as `event.created`, `event.updated` when its account, action,
   * tag or label was set or removed, and `event.erased` when its visitor was erased; of the organization and
   * environment of the key, in the order in which they were stored, each once. `event` is the event as it is when
   * the page is read, and is left out once it is erased. Nothing comes behind a `next_cursor`, of which each page
   * has one: go on with it as `after`, and wait a second where `has_more` is false. A change comes about two seconds
   * after it was made, and is kept for as long as events are, from when it was made: start a new copy if its cursor
   * is older: it has missed changes, erasures too. That events grow too old is no change. Cursors are not those of
   * `GET /events`.
   */
  listChanges(query: ListChangesQuery = {}): Promise<ChangesAnswer> {
    return this.send<ChangesAnswer>({ method: "GET", path: "/changes", query: { ...query }, isRepeatable: true });
  }

  /**
   * List accounts.
   *
   * The one that was seen last first, as far back as events are kept. Those of production are apart; those of
   * staging and development are together, by the environment of the key. Filters may be combined. A page with
   * filters that few fit may be short, or empty, and still have a `next_cursor`: a request looks at no more than
   * 5,000 events.
   */
  listAccounts(query: ListAccountsQuery = {}): Promise<AccountsAnswer> {
    return this.send<AccountsAnswer>({ method: "GET", path: "/accounts", query: { ...query }, isRepeatable: true });
  }

  /**
   * Read one account.
   *
   * Those of production are apart; those of staging and development are together, by the environment of the key.
   * What it was seen with comes from its newest 2,000 events.
   */
  getAccount(accountId: string): Promise<AccountAnswer> {
    return this.send<AccountAnswer>({ method: "GET", path: `/accounts/${segment(accountId)}`, isRepeatable: true });
  }

  /**
   * List visitors.
   *
   * The one that was seen last first, as far back as events are kept. Those of production are apart; those of
   * staging and development are together, by the environment of the key. Filters may be combined. A page with
   * filters that few fit may be short, or empty, and still have a `next_cursor`: a request looks at no more than
   * 5,000 events. Visitors that are not identifiable, and new ones of a report that was sent before, are left out.
   */
  listVisitors(query: ListVisitorsQuery = {}): Promise<SeenVisitorsAnswer> {
    return this.send<SeenVisitorsAnswer>({ method: "GET", path: "/visitors", query: { ...query }, isRepeatable: true });
  }

  /**
   * Read one visitor.
   *
   * Those of production are apart; those of staging and development are together, by the environment of the key.
   * What it was seen with comes from its newest 2,000 events.
   */
  getVisitor(visitorId: string): Promise<SeenVisitorAnswer> {
    return this.send<SeenVisitorAnswer>({ method: "GET", path: `/visitors/${segment(visitorId)}`, isRepeatable: true });
  }

  /**
   * Read the public keys of signed verdicts.
   *
   * A JWK set, open to all. Keep it for an hour, and read it again for a `kid` that is not in it.
   */
  getVerdictKeys(organizationId: string): Promise<VerdictKeysBody> {
    return this.send<VerdictKeysBody>({
      method: "GET",
      path: `/organizations/${segment(organizationId)}/verdict-keys`,
      isRepeatable: true,
    });
  }

  /**
   * Describe the management key.
   *
   * Which organization it acts on, and in which role.
   */
  getManagementKey(): Promise<ManagementKeyBody> {
    return this.send<ManagementKeyBody>({ method: "GET", path: "/management/key", isRepeatable: true });
  }

  /**
   * List proxy keys.
   *
   * Oldest first, revoked ones included for 400 days. All of them, or a page where `limit` or `cursor` is given. A
   * key that has expired stays `active` until it is revoked. Needs the role `admin`.
   */
  listProxyKeys(organizationId: string, query: ListProxyKeysQuery = {}): Promise<ProxyKeysBody> {
    return this.send<ProxyKeysBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/proxy-credentials`,
      query: { ...query },
      isRepeatable: true,
    });
  }

  /**
   * Issue a proxy key.
   *
   * The secret is shown this once. At most 200 keys of all kinds that are neither revoked nor expired may be in an
   * organization. Needs the role `admin`.
   */
  issueProxyKey(organizationId: string, body: IssueProxyKeyBody): Promise<IssuedProxyKeyBody> {
    return this.send<IssuedProxyKeyBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/proxy-credentials`,
      body,
    });
  }

  /**
   * Revoke a proxy key.
   *
   * For good. It is refused from the next request on, and stays listed. Needs the role `admin`.
   */
  revokeProxyKey(organizationId: string, proxyCredentialId: string): Promise<ProxyKeyBody> {
    return this.send<ProxyKeyBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/proxy-credentials/${segment(proxyCredentialId)}/revoke`,
    });
  }

  /**
   * List SDK keys.
   *
   * Oldest first, revoked ones included for 400 days. All of them, or a page where `limit` or `cursor` is given. A
   * key that has expired stays `active` until it is revoked.
   */
  listSdkKeys(organizationId: string, query: ListSdkKeysQuery = {}): Promise<SdkKeysBody> {
    return this.send<SdkKeysBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/sdk-keys`,
      query: { ...query },
      isRepeatable: true,
    });
  }

  /**
   * Issue an SDK key.
   *
   * The secret is shown this once. At most 200 keys of all kinds that are neither revoked nor expired may be in an
   * organization. Needs the role `admin` or `developer`.
   */
  issueSdkKey(organizationId: string, body: IssueSdkKeyBody): Promise<IssuedSdkKeyBody> {
    return this.send<IssuedSdkKeyBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/sdk-keys`,
      body,
    });
  }

  /**
   * Revoke an SDK key.
   *
   * For good. It is refused from the next request on, and stays listed. Needs the role `admin` or `developer`.
   */
  revokeSdkKey(organizationId: string, keyId: string): Promise<SdkKeyBody> {
    return this.send<SdkKeyBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/sdk-keys/${segment(keyId)}/revoke`,
    });
  }

  /**
   * Replace the allowed origins of an SDK key.
   *
   * An origin is `scheme://host[:port]`; `https://*.example.com` is any host below it, and not the host itself.
   * Below a public suffix, such as `https://*.co.uk`, are the sites of strangers: never allow one. Needs the role
   * `admin` or `developer`.
   */
  replaceSdkKeyOrigins(organizationId: string, keyId: string, body: ReplaceOriginsBody): Promise<SdkKeyBody> {
    return this.send<SdkKeyBody>({
      method: "PUT",
      path: `/management/organizations/${segment(organizationId)}/sdk-keys/${segment(keyId)}/allowed-origins`,
      body,
    });
  }

  /**
   * Rotate the key of signed verdicts.
   *
   * The next key, which is published already, signs from the next request on. Verdicts by the previous one are
   * accepted for this many hours, `0` = no longer. Needs the role `admin`.
   */
  rotateVerdictKey(organizationId: string, body: RotateVerdictKeyBody = {}): Promise<VerdictKeysBody> {
    return this.send<VerdictKeysBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/verdict-keys/rotate`,
      body,
    });
  }

  /**
   * Count the keys of browsers.
   *
   * Those that first signed in a window of time and are not revoked. All visitors are looked through. Needs the role
   * `admin`.
   */
  countBrowserKeys(organizationId: string, query: CountBrowserKeysQuery = {}): Promise<BrowserKeysBody> {
    return this.send<BrowserKeysBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/browser-keys`,
      query: { ...query },
      isRepeatable: true,
    });
  }

  /**
   * Revoke the keys of browsers.
   *
   * After a script that was not yours ran on your pages: it may have planted a key, which proves as the visitor's
   * own does, from anywhere. Keys that first signed in the window prove nothing from the next request on; the web
   * SDK renews them, and their visitors stay, unproven for a visit. A planted key counts from when it first signed,
   * which may be on a later visit: leave out `to`. May be repeated. Needs the role `admin`.
   */
  revokeBrowserKeys(organizationId: string, body: RevokeBrowserKeysBody): Promise<BrowserKeysBody> {
    return this.send<BrowserKeysBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/browser-keys/revoke`,
      body,
    });
  }

  /**
   * List webhook endpoints.
   *
   * Newest first, without secrets.
   */
  listWebhooks(organizationId: string): Promise<WebhooksBody> {
    return this.send<WebhooksBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/webhooks`,
      isRepeatable: true,
    });
  }

  /**
   * Register a webhook endpoint.
   *
   * At most ten per organization. The signing secret is shown this once. The URL must be `https`, and every address
   * of its host public and none of this service's own; it is judged again at every attempt, and redirects are not
   * followed. Ports are 443 and those above 1023, unless the operator allows others. `live` endpoints get events of
   * production traffic, `test` ones all others; `billing.status_changed` needs `live`. A `filter` that cannot be
   * used is `invalid_condition`, and one that could cost too much `too_expensive`; `message` says why. Needs the
   * role `admin` or `developer`.
   */
  createWebhook(organizationId: string, body: CreateWebhookBody): Promise<IssuedWebhookBody> {
    return this.send<IssuedWebhookBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/webhooks`,
      body,
    });
  }

  /**
   * Change a webhook endpoint.
   *
   * Send only what changes. While it is paused nothing new is queued for it, and what was queued waits until it is
   * resumed. A changed URL, or `paused: false`, gives a failing endpoint a new start. What waits goes out in the
   * format that the endpoint has then; after a change to `json`, a rotation shows a secret. Needs the role `admin`
   * or `developer`.
   */
  updateWebhook(organizationId: string, webhookId: string, body: UpdateWebhookBody): Promise<WebhookBody> {
    return this.send<WebhookBody>({
      method: "PATCH",
      path: `/management/organizations/${segment(organizationId)}/webhooks/${segment(webhookId)}`,
      body,
    });
  }

  /**
   * Delete a webhook endpoint.
   *
   * Deliveries to it stop at once. Needs the role `admin` or `developer`.
   */
  deleteWebhook(organizationId: string, webhookId: string): Promise<void> {
    return this.send<void>({
      method: "DELETE",
      path: `/management/organizations/${segment(organizationId)}/webhooks/${segment(webhookId)}`,
    });
  }

  /**
   * Rotate the signing secret of a webhook endpoint.
   *
   * The new secret is shown this once. The previous one signs along for this many hours, `0` = not at all; an older
   * one no more. A chat format has no secret. Needs the role `admin` or `developer`.
   */
  rotateWebhookSecret(
    organizationId: string,
    webhookId: string,
    body: RotateWebhookSecretBody = {},
  ): Promise<IssuedWebhookBody> {
    return this.send<IssuedWebhookBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/webhooks/${segment(webhookId)}/rotate-secret`,
      body,
    });
  }

  /**
   * Send a test event.
   *
   * One `webhook.test`, whether or not the endpoint subscribes to it. It is tried once, and its failure does not
   * make the endpoint `failing`. Needs the role `admin` or `developer`.
   */
  testWebhook(organizationId: string, webhookId: string): Promise<QueuedDeliveryBody> {
    return this.send<QueuedDeliveryBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/webhooks/${segment(webhookId)}/test`,
    });
  }

  /**
   * Deliver an event again.
   *
   * An event that was sent to this endpoint in the last 30 days, accepted or not, with the same `id`. It is tried
   * once, and its failure does not make the endpoint `failing`. Needs the role `admin` or `developer`.
   */
  redeliverWebhook(organizationId: string, webhookId: string, body: RedeliverWebhookBody): Promise<QueuedDeliveryBody> {
    return this.send<QueuedDeliveryBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/webhooks/${segment(webhookId)}/redeliver`,
      body,
    });
  }

  /**
   * List delivery attempts.
   *
   * Of the last 30 days, newest first. The last page has no `next_cursor`. With `endpoint_id`, a page may be short
   * or empty and have one.
   */
  listWebhookDeliveries(
    organizationId: string,
    query: ListWebhookDeliveriesQuery = {},
  ): Promise<WebhookDeliveriesBody> {
    return this.send<WebhookDeliveriesBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/webhook-deliveries`,
      query: { ...query },
      isRepeatable: true,
    });
  }

  /** Read the rules. */
  getRules(organizationId: string, query: GetRulesQuery = {}): Promise<RulesAnswer> {
    return this.send<RulesAnswer>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/rules`,
      query: { ...query },
      isRepeatable: true,
    });
  }

  /**
   * Save the rules.
   *
   * The whole ruleset, in force from the next request on: a rule that is not sent is gone, also one that the
   * organization started with. Send the `revision` that you read: another one is `409 revision_conflict`. A
   * condition that cannot be used is `invalid_condition`; `message` has line and column. Only admins change active
   * rules and their order, and use more than 80 % of what a ruleset may have. Where the rules could cost more than 2
   * ms of CPU an event, the first that goes beyond is `too_expensive`. Needs the role `admin`, `developer` or
   * `analyst`.
   */
  saveRules(organizationId: string, body: RulesBody, query: SaveRulesQuery = {}): Promise<RulesAnswer> {
    return this.send<RulesAnswer>({
      method: "PUT",
      path: `/management/organizations/${segment(organizationId)}/rules`,
      body,
      query: { ...query },
    });
  }

  /**
   * Try rules on the newest events.
   *
   * On the newest 10,000 events of that kind of environment, with their stored velocity, without what was set later,
   * and with lists and labels as they are now. Refused as saving the rules would be.
   */
  previewRules(organizationId: string, body: PreviewBody, query: PreviewRulesQuery = {}): Promise<RulesPreview> {
    return this.send<RulesPreview>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/rules/preview`,
      body,
      query: { ...query },
    });
  }

  /**
   * List proposals of rules.
   *
   * What waits for an admin. A proposal is kept for 90 days.
   */
  listRuleProposals(organizationId: string, query: ListRuleProposalsQuery = {}): Promise<ProposalsBody> {
    return this.send<ProposalsBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/rule-proposals`,
      query: { ...query },
      isRepeatable: true,
    });
  }

  /**
   * Propose rules to an admin.
   *
   * Nothing is in force. Refused as saving the rules would be; at most 20 wait. Needs the role `admin`, `developer`
   * or `analyst`.
   */
  proposeRules(organizationId: string, body: NewProposalBody, query: ProposeRulesQuery = {}): Promise<ProposalBody> {
    return this.send<ProposalBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/rule-proposals`,
      body,
      query: { ...query },
    });
  }

  /**
   * Dismiss a proposal of rules.
   *
   * By an admin, or by its author. Needs the role `admin`, `developer` or `analyst`.
   */
  dismissRuleProposal(organizationId: string, proposalId: string, query: DismissRuleProposalQuery = {}): Promise<void> {
    return this.send<void>({
      method: "DELETE",
      path: `/management/organizations/${segment(organizationId)}/rule-proposals/${segment(proposalId)}`,
      query: { ...query },
    });
  }

  /** Read the organization's risk weights. */
  getOrganizationRiskWeights(organizationId: string): Promise<RiskWeightsBody> {
    return this.send<RiskWeightsBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/risk-weights`,
      isRepeatable: true,
    });
  }

  /**
   * Save the organization's risk weights for a platform.
   *
   * What is not named keeps its value in force. Send the `revision` that you read to make sure that nobody has saved
   * since: another one is `409 revision_conflict`. Needs the role `admin`.
   */
  saveOrganizationRiskWeights(
    organizationId: string,
    platform: "web" | "android" | "ios",
    body: SaveWeightsBody,
  ): Promise<RiskWeightsBody> {
    return this.send<RiskWeightsBody>({
      method: "PUT",
      path: `/management/organizations/${segment(organizationId)}/risk-weights/${segment(platform)}`,
      body,
    });
  }

  /**
   * Restore the organization's risk weights for a platform.
   *
   * Back to the defaults. Needs the role `admin`.
   */
  restoreOrganizationRiskWeights(
    organizationId: string,
    platform: "web" | "android" | "ios",
  ): Promise<RiskWeightsBody> {
    return this.send<RiskWeightsBody>({
      method: "DELETE",
      path: `/management/organizations/${segment(organizationId)}/risk-weights/${segment(platform)}`,
    });
  }

  /** Read the risk weights of an SDK key. */
  getSdkKeyRiskWeights(organizationId: string, keyId: string): Promise<RiskWeightsBody> {
    return this.send<RiskWeightsBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/sdk-keys/${segment(keyId)}/risk-weights`,
      isRepeatable: true,
    });
  }

  /**
   * Save the risk weights of an SDK key for a platform.
   *
   * What is not named keeps its value in force. Send the `revision` that you read to make sure that nobody has saved
   * since: another one is `409 revision_conflict`. Needs the role `admin`.
   */
  saveSdkKeyRiskWeights(
    organizationId: string,
    keyId: string,
    platform: "web" | "android" | "ios",
    body: SaveWeightsBody,
  ): Promise<RiskWeightsBody> {
    return this.send<RiskWeightsBody>({
      method: "PUT",
      path: `/management/organizations/${segment(organizationId)}/sdk-keys/${segment(keyId)}/risk-weights/${segment(platform)}`,
      body,
    });
  }

  /**
   * Restore the risk weights of an SDK key for a platform.
   *
   * Back to those of the organization. Needs the role `admin`.
   */
  restoreSdkKeyRiskWeights(
    organizationId: string,
    keyId: string,
    platform: "web" | "android" | "ios",
  ): Promise<RiskWeightsBody> {
    return this.send<RiskWeightsBody>({
      method: "DELETE",
      path: `/management/organizations/${segment(organizationId)}/sdk-keys/${segment(keyId)}/risk-weights/${segment(platform)}`,
    });
  }

  /** List the signals that can fire. */
  listRiskSignals(organizationId: string): Promise<SignalsBody> {
    return this.send<SignalsBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/risk-signals`,
      isRepeatable: true,
    });
  }

  /**
   * Read which weights labels suggest.
   *
   * From the organization's own labeled events of the platform, at least 50 of each label: the stored ones, and
   * those among about the newest million that are deleted. Nothing is changed. With fewer there are no weights in
   * the response.
   */
  getWeightsSuggestion(
    organizationId: string,
    platform: "web" | "android" | "ios",
    query: GetWeightsSuggestionQuery = {},
  ): Promise<SuggestionBody> {
    return this.send<SuggestionBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/risk-weights/${segment(platform)}/suggestion`,
      query: { ...query },
      isRepeatable: true,
    });
  }

  /**
   * List lists.
   *
   * Every organization has six from the start: `blocked_visitors`, `blocked_accounts`, `blocked_addresses`,
   * `trusted_visitors`, `trusted_accounts` and `trusted_addresses`.
   */
  listLists(organizationId: string): Promise<ListsBody> {
    return this.send<ListsBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/lists`,
      isRepeatable: true,
    });
  }

  /**
   * Make a list.
   *
   * At most 100 per organization, the six built-in lists included. Needs the role `admin` or `developer`.
   */
  createList(organizationId: string, body: CreateListBody): Promise<ListBody> {
    return this.send<ListBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/lists`,
      body,
    });
  }

  /**
   * Read a list.
   *
   * Without its entries, which are listed apart.
   */
  getList(organizationId: string, listId: string): Promise<ListBody> {
    return this.send<ListBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/lists/${segment(listId)}`,
      isRepeatable: true,
    });
  }

  /**
   * Rename a list.
   *
   * A built-in list, and one that a rule uses, keeps its name. Needs the role `admin` or `developer`.
   */
  updateList(organizationId: string, listId: string, body: UpdateListBody): Promise<ListBody> {
    return this.send<ListBody>({
      method: "PATCH",
      path: `/management/organizations/${segment(organizationId)}/lists/${segment(listId)}`,
      body,
    });
  }

  /**
   * Delete a list.
   *
   * With its entries. A built-in list, and one that a rule uses, cannot be deleted. Needs the role `admin` or
   * `developer`.
   */
  deleteList(organizationId: string, listId: string): Promise<void> {
    return this.send<void>({
      method: "DELETE",
      path: `/management/organizations/${segment(organizationId)}/lists/${segment(listId)}`,
    });
  }

  /**
   * List the entries of a list.
   *
   * In the order of their values, without those that have expired. A page may be short and have a `next_cursor`.
   */
  listListEntries(organizationId: string, listId: string, query: ListListEntriesQuery = {}): Promise<EntriesBody> {
    return this.send<EntriesBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/lists/${segment(listId)}/entries`,
      query: { ...query },
      isRepeatable: true,
    });
  }

  /**
   * Add entries to a list.
   *
   * All of them or, where one is refused, none. Values are stored in one spelling: networks without host bits,
   * lower-case origins, upper-case countries, AS numbers as digits. At most 100,000 entries that have not expired
   * may be in the lists of an organization. What is added counts from the next request on. Needs the role `admin`,
   * `developer` or `analyst`.
   */
  addListEntries(organizationId: string, listId: string, body: AddEntriesBody): Promise<AddedBody> {
    return this.send<AddedBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/lists/${segment(listId)}/entries`,
      body,
    });
  }

  /**
   * Remove entries from a list.
   *
   * By their values. From the next request on they are in it no more. Needs the role `admin`, `developer` or
   * `analyst`.
   */
  removeListEntries(organizationId: string, listId: string, body: RemoveEntriesBody): Promise<void> {
    return this.send<void>({
      method: "DELETE",
      path: `/management/organizations/${segment(organizationId)}/lists/${segment(listId)}/entries`,
      body,
    });
  }

  /**
   * Label an event.
   *
   * What it turned out to be, of an event of any environment, for 400 days from its arrival. Servers with a secret
   * key use `updateEvent`. Needs the role `admin`, `developer` or `analyst`.
   */
  labelEvent(organizationId: string, requestId: string, body: LabelBody): Promise<LabelAnswer> {
    return this.send<LabelAnswer>({
      method: "PUT",
      path: `/management/organizations/${segment(organizationId)}/events/${segment(requestId)}/label`,
      body,
    });
  }

  /**
   * Read how signals, rules and levels did.
   *
   * By the labels of events: of those in which a signal fired, how many are fraud (precision), and how much of all
   * fraud that is (recall). Of the whole UTC days that the window touches, at most 400. An event without a label is
   * never counted as legitimate.
   */
  getPerformance(organizationId: string, query: GetPerformanceQuery = {}): Promise<PerformanceBody> {
    return this.send<PerformanceBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/performance`,
      query: { ...query },
      isRepeatable: true,
    });
  }

  /**
   * List reviews.
   *
   * The one that was opened last first, for 400 days. A page with an assignee who has few may be short, or empty,
   * and have a `next_cursor`.
   */
  listReviews(organizationId: string, query: ListReviewsQuery = {}): Promise<ReviewsBody> {
    return this.send<ReviewsBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/reviews`,
      query: { ...query },
      isRepeatable: true,
    });
  }

  /**
   * Open a review.
   *
   * Of an event of any environment. A rule that decides `review` does the same. Of a visitor and account one is open
   * at a time: where there is one, it is the response, with `200`. Needs the role `admin`, `developer` or `analyst`.
   */
  openReview(organizationId: string, body: OpenReviewBody): Promise<ReviewAnswer> {
    return this.send<ReviewAnswer>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/reviews`,
      body,
    });
  }

  /** Read a review. */
  getReview(organizationId: string, reviewId: string): Promise<ReviewAnswer> {
    return this.send<ReviewAnswer>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/reviews/${segment(reviewId)}`,
      isRepeatable: true,
    });
  }

  /**
   * Assign a review.
   *
   * To a member, or to nobody. Needs the role `admin`, `developer` or `analyst`.
   */
  assignReview(organizationId: string, reviewId: string, body: AssignReviewBody): Promise<ReviewAnswer> {
    return this.send<ReviewAnswer>({
      method: "PATCH",
      path: `/management/organizations/${segment(organizationId)}/reviews/${segment(reviewId)}`,
      body,
    });
  }

  /**
   * Close a review.
   *
   * The label goes to the event of the review, and to no other. Needs the role `admin`, `developer` or `analyst`.
   */
  closeReview(organizationId: string, reviewId: string, body: CloseReviewBody): Promise<ReviewAnswer> {
    return this.send<ReviewAnswer>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/reviews/${segment(reviewId)}/close`,
      body,
    });
  }

  /**
   * Open a closed review again.
   *
   * Its label stays, on its event too, until it is closed the next time. `review.opened` is sent again. Not where
   * another one of its visitor and account is open. Needs the role `admin`, `developer` or `analyst`.
   */
  reopenReview(organizationId: string, reviewId: string): Promise<ReviewAnswer> {
    return this.send<ReviewAnswer>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/reviews/${segment(reviewId)}/reopen`,
    });
  }

  /** List notes about a visitor. */
  listVisitorNotes(organizationId: string, visitorId: string): Promise<NotesBody> {
    return this.send<NotesBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/visitors/${segment(visitorId)}/notes`,
      isRepeatable: true,
    });
  }

  /**
   * Write a note about a visitor.
   *
   * At most 100. Notes are kept for 400 days; the erasure of their subject deletes them. Needs the role `admin`,
   * `developer` or `analyst`.
   */
  createVisitorNote(organizationId: string, visitorId: string, body: NewNoteBody): Promise<NoteBody> {
    return this.send<NoteBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/visitors/${segment(visitorId)}/notes`,
      body,
    });
  }

  /**
   * Delete a note about a visitor.
   *
   * Needs the role `admin`, `developer` or `analyst`.
   */
  deleteVisitorNote(organizationId: string, visitorId: string, noteId: string): Promise<void> {
    return this.send<void>({
      method: "DELETE",
      path: `/management/organizations/${segment(organizationId)}/visitors/${segment(visitorId)}/notes/${segment(noteId)}`,
    });
  }

  /** List notes about an account. */
  listAccountNotes(organizationId: string, accountId: string): Promise<NotesBody> {
    return this.send<NotesBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/accounts/${segment(accountId)}/notes`,
      isRepeatable: true,
    });
  }

  /**
   * Write a note about an account.
   *
   * At most 100. Notes are kept for 400 days; the erasure of their subject deletes them. Needs the role `admin`,
   * `developer` or `analyst`.
   */
  createAccountNote(organizationId: string, accountId: string, body: NewNoteBody): Promise<NoteBody> {
    return this.send<NoteBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/accounts/${segment(accountId)}/notes`,
      body,
    });
  }

  /**
   * Delete a note about an account.
   *
   * Needs the role `admin`, `developer` or `analyst`.
   */
  deleteAccountNote(organizationId: string, accountId: string, noteId: string): Promise<void> {
    return this.send<void>({
      method: "DELETE",
      path: `/management/organizations/${segment(organizationId)}/accounts/${segment(accountId)}/notes/${segment(noteId)}`,
    });
  }

  /** Read the settings of the organization. */
  getSettings(organizationId: string): Promise<SettingsBody> {
    return this.send<SettingsBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/settings`,
      isRepeatable: true,
    });
  }

  /**
   * Change settings of the organization.
   *
   * What is left out stays; what the operator sets is not changed here. In force from the next request on, on every
   * worker and node. Needs the role `admin`.
   */
  updateSettings(organizationId: string, body: UpdateSettingsBody): Promise<SettingsBody> {
    return this.send<SettingsBody>({
      method: "PATCH",
      path: `/management/organizations/${segment(organizationId)}/settings`,
      body,
    });
  }

  /**
   * List members.
   *
   * Oldest first, those that are invited or suspended among them. Needs the role `admin`.
   */
  listMembers(organizationId: string): Promise<MembersBody> {
    return this.send<MembersBody>({
      method: "GET",
      path: `/management/organizations/${segment(organizationId)}/members`,
      isRepeatable: true,
    });
  }

  /**
   * Invite a member.
   *
   * The response has a link by which the member chooses a password and comes in. It works once, within seven days.
   * The service sends no mail: hand the link over. At most 500 members per organization. Needs the role `admin`.
   */
  inviteMember(organizationId: string, body: InviteMemberBody): Promise<InvitedMemberBody> {
    return this.send<InvitedMemberBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/members`,
      body,
    });
  }

  /**
   * Invite a member again.
   *
   * Another link, which takes the place of the former one: for a member without link, password or the device with
   * the one-time codes. The member chooses a new password with it, then signs in without a code, and all its other
   * sessions end. Needs the role `admin`.
   */
  inviteMemberAgain(organizationId: string, memberId: string): Promise<InvitedMemberBody> {
    return this.send<InvitedMemberBody>({
      method: "POST",
      path: `/management/organizations/${segment(organizationId)}/members/${segment(memberId)}/invitation`,
    });
  }

  /**
   * Change a member.
   *
   * Name, role or status; in force from its next request on. No act of a member may leave the organization without
   * an active admin (`409 last_admin`). Needs the role `admin`.
   */
  updateMember(organizationId: string, memberId: string, body: UpdateMemberBody): Promise<MemberBody> {
    return this.send<MemberBody>({
      method: "PATCH",
      path: `/management/organizations/${segment(organizationId)}/members/${segment(memberId)}`,
      body,
    });
  }

  /**
   * Remove a member.
   *
   * Its sessions end at once. What it did stays attributed to its id. No act of a member may leave the organization
   * without an active admin (`409 last_admin`). Needs the role `admin`.
   */
  removeMember(organizationId: string, memberId: string): Promise<void> {
    return this.send<void>({
      method: "DELETE",
      path: `/management/organizations/${segment(organizationId)}/members/${segment(memberId)}`,
    });
  }

  /**
   * Erase a visitor.
   *
   * With its events, their submissions and deferred reports, for good. Events that cannot be read stay until the
   * operator takes them out; rules, webhooks and names of lists stay as they are, whatever they name. Needs the role
   * `admin`.
   */
  eraseVisitor(organizationId: string, visitorId: string): Promise<void> {
    return this.send<void>({
      method: "DELETE",
      path: `/management/organizations/${segment(organizationId)}/visitors/${segment(visitorId)}`,
    });
  }

  /**
   * Erase an account.
   *
   * Its id leaves events, counts, lists, notes and queued webhooks, for good. The events stay; so do rules,
   * webhooks, names of lists and events that cannot be read, whatever they name. Needs the role `admin`.
   */
  eraseAccount(organizationId: string, accountId: string): Promise<void> {
    return this.send<void>({
      method: "DELETE",
      path: `/management/organizations/${segment(organizationId)}/accounts/${segment(accountId)}`,
    });
  }

  /** Is the process up?. */
  getHealth(): Promise<HealthBody> {
    return this.send<HealthBody>({ method: "GET", path: "/healthz", isRepeatable: true });
  }

  /** Can it serve?. */
  getReadiness(): Promise<ReadinessBody> {
    return this.send<ReadinessBody>({ method: "GET", path: "/readyz", isRepeatable: true });
  }
}
