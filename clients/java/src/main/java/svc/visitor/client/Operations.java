// Generated from docs/openapi.json: make reference
package svc.visitor.client;

import svc.visitor.client.Types.*;

/**
 * Every operation but those of the console. Each throws {@link ApiException} where the service refuses, and {@link
 * UnreachableException} where it does not respond.
 */
public abstract class Operations {
  Operations() {}

  /** The decoded body of the response; {@code null} without one. */
  abstract java.util.Map<String, Object> send(Call call);

  /**
   * Identify a visitor.
   *
   * <p>The response is sent once everything that it changes is stored. Retry with the same {@code Idempotency-Key}:
   * what was stored is not identified or charged again. A body may be compressed ({@code Content-Encoding: gzip}), up
   * to 1 MiB after decompression. Proxy keys go into {@code x-api-key} as the others do.
   *
   * <p>Of a duplicate, the request id and {@code duplicate} may be all that is set.
   */
  public IdentifyAnswer identify(IdentifyBody body, IdentifyHeaders headers) {
    return new IdentifyAnswer(send(new Call("POST", "/identify").body(body).headers(headers).idempotent().repeatable()));
  }

  /** Identify a visitor. */
  public IdentifyAnswer identify(IdentifyBody body) {
    return identify(body, new IdentifyHeaders());
  }

  /**
   * Issue an attestation challenge.
   *
   * <p>For an app that proves its device: the challenge goes into the next report, within five minutes, once.
   */
  public ChallengeAnswer issueAttestationChallenge(IssueAttestationChallengeHeaders headers) {
    return new ChallengeAnswer(send(new Call("POST", "/attestation/challenge").headers(headers)));
  }

  /** Issue an attestation challenge. */
  public ChallengeAnswer issueAttestationChallenge() {
    return issueAttestationChallenge(new IssueAttestationChallengeHeaders());
  }

  /**
   * Send the deferred report of an identification.
   *
   * <p>What takes long to collect may follow within 24 hours, from the same key and origin. It is kept with the event
   * and changes nothing else. The same report again is taken as a duplicate. A secret or proxy key that identified
   * sends it with the same forwarded origin, and a proxy key with {@code x-svc-visitor-ip} again. An app, which has
   * no origin, names its platform again in {@code sdk.platform} or {@code x-svc-sdk-platform}.
   */
  public SupplementAnswer supplementEvent(String requestId, SupplementBody body, SupplementEventHeaders headers) {
    return new SupplementAnswer(send(new Call("POST", "/events/{}/supplement", requestId).body(body).headers(headers).repeatable()));
  }

  /** Send the deferred report of an identification. */
  public SupplementAnswer supplementEvent(String requestId, SupplementBody body) {
    return supplementEvent(requestId, body, new SupplementEventHeaders());
  }

  /**
   * List events.
   *
   * <p>Newest first, of the organization and environment of the key, of at most 30 days at once, as far back as
   * events are kept: 30 days, unless the operator says more. Without {@code from} the window begins 24 hours before
   * its end. Each row has the verdict of identify, with the signals by name under {@code signals} and their groups
   * under {@code triggers}. Filters may be combined. {@code next_cursor} leads to the next page, in the same window
   * and with the same filters, and is left out on the last one; {@code page} counts pages instead, at most 10,000
   * events deep. A page of several filters that are rarely met together may be short, or empty, and still have a
   * {@code next_cursor}: a request looks at no more than 20,000 events. {@code rule} lists what a rule decided, with
   * {@code shadow=true} what it matched in shadow mode. With {@code order=oldest} the list is a feed: each event
   * once, oldest first, from the oldest that is kept or from {@code from}, and then behind {@code after}. No event
   * comes behind a {@code next_cursor}, of which each page has one: go on with it, and wait a second where {@code
   * has_more} is false. An event comes about two seconds after its arrival; one that was stored later comes when it
   * is, after younger ones. {@code to}, {@code page} and {@code cursor} are not for a feed, nor are filters on what
   * an event may get later: {@code account_id}, {@code action}, {@code tag}, {@code label} and {@code rule} are
   * {@code not_with_order}.
   */
  public EventsAnswer listEvents(ListEventsQuery query) {
    return new EventsAnswer(send(new Call("GET", "/events").query(query).repeatable()));
  }

  /** List events. */
  public EventsAnswer listEvents() {
    return listEvents(new ListEventsQuery());
  }

  /**
   * Read one event.
   *
   * <p>With the archived submission under {@code document}, and the deferred report when one arrived. The document
   * also says why the verdict is what it is: {@code evidence} of each signal, {@code linkage} (how the visitor was
   * found, how sure that is), {@code changes} since the visitor's last report, and the result of its {@code
   * attestation}. Its contents are not a public contract.
   */
  public EventDetailBody getEvent(String requestId) {
    return new EventDetailBody(send(new Call("GET", "/events/{}", requestId).repeatable()));
  }

  /**
   * Set the account, the action, the tag or the label of an event.
   *
   * <p>For what is known only afterwards, such as the account that a sign-up makes, or a chargeback. Fields that are
   * left out stay, {@code null} removes one; the last writer wins. The event keeps its visitor, velocity, signals,
   * score and price, and no webhook is sent; the counts of the account and the visitor follow. A label may be set for
   * 400 days: of an event that is not readable any more the label alone, which is then the response.
   */
  public EventDetailBody updateEvent(String requestId, UpdateEventBody body) {
    return new EventDetailBody(send(new Call("PATCH", "/events/{}", requestId).body(body)));
  }

  /**
   * List changes of events.
   *
   * <p>For a copy that follows the store: each event once as {@code event.created}, {@code event.updated} when its
   * account, action, tag or label was set or removed, and {@code event.erased} when its visitor was erased; of the
   * organization and environment of the key, in the order in which they were stored, each once. {@code event} is the
   * event as it is when the page is read, and is left out once it is erased. Nothing comes behind a {@code
   * next_cursor}, of which each page has one: go on with it as {@code after}, and wait a second where {@code
   * has_more} is false. A change comes about two seconds after it was made, and is kept for as long as events are,
   * from when it was made: start a new copy if its cursor is older: it has missed changes, erasures too. That events
   * grow too old is no change. Cursors are not those of {@code GET /events}.
   */
  public ChangesAnswer listChanges(ListChangesQuery query) {
    return new ChangesAnswer(send(new Call("GET", "/changes").query(query).repeatable()));
  }

  /** List changes of events. */
  public ChangesAnswer listChanges() {
    return listChanges(new ListChangesQuery());
  }

  /**
   * List accounts.
   *
   * <p>The one that was seen last first, as far back as events are kept. Those of production are apart; those of
   * staging and development are together, by the environment of the key. Filters may be combined. A page with filters
   * that few fit may be short, or empty, and still have a {@code next_cursor}: a request looks at no more than 5,000
   * events.
   */
  public AccountsAnswer listAccounts(ListAccountsQuery query) {
    return new AccountsAnswer(send(new Call("GET", "/accounts").query(query).repeatable()));
  }

  /** List accounts. */
  public AccountsAnswer listAccounts() {
    return listAccounts(new ListAccountsQuery());
  }

  /**
   * Read one account.
   *
   * <p>Those of production are apart; those of staging and development are together, by the environment of the key.
   * What it was seen with comes from its newest 2,000 events.
   */
  public AccountAnswer getAccount(String accountId) {
    return new AccountAnswer(send(new Call("GET", "/accounts/{}", accountId).repeatable()));
  }

  /**
   * List visitors.
   *
   * <p>The one that was seen last first, as far back as events are kept. Those of production are apart; those of
   * staging and development are together, by the environment of the key. Filters may be combined. A page with filters
   * that few fit may be short, or empty, and still have a {@code next_cursor}: a request looks at no more than 5,000
   * events. Visitors that are not identifiable, and new ones of a report that was sent before, are left out.
   */
  public SeenVisitorsAnswer listVisitors(ListVisitorsQuery query) {
    return new SeenVisitorsAnswer(send(new Call("GET", "/visitors").query(query).repeatable()));
  }

  /** List visitors. */
  public SeenVisitorsAnswer listVisitors() {
    return listVisitors(new ListVisitorsQuery());
  }

  /**
   * Read one visitor.
   *
   * <p>Those of production are apart; those of staging and development are together, by the environment of the key.
   * What it was seen with comes from its newest 2,000 events.
   */
  public SeenVisitorAnswer getVisitor(String visitorId) {
    return new SeenVisitorAnswer(send(new Call("GET", "/visitors/{}", visitorId).repeatable()));
  }

  /**
   * Read the public keys of signed verdicts.
   *
   * <p>A JWK set, open to all. Keep it for an hour, and read it again for a {@code kid} that is not in it.
   */
  public VerdictKeysBody getVerdictKeys(String organizationId) {
    return new VerdictKeysBody(send(new Call("GET", "/organizations/{}/verdict-keys", organizationId).repeatable()));
  }

  /**
   * Describe the management key.
   *
   * <p>Which organization it acts on, and in which role.
   */
  public ManagementKeyBody getManagementKey() {
    return new ManagementKeyBody(send(new Call("GET", "/management/key").repeatable()));
  }

  /**
   * List proxy keys.
   *
   * <p>Oldest first, revoked ones included for 400 days. All of them, or a page where {@code limit} or {@code cursor}
   * is given. A key that has expired stays {@code active} until it is revoked. Needs the role {@code admin}.
   */
  public ProxyKeysBody listProxyKeys(String organizationId, ListProxyKeysQuery query) {
    return new ProxyKeysBody(send(new Call("GET", "/management/organizations/{}/proxy-credentials", organizationId).query(query).repeatable()));
  }

  /** List proxy keys. */
  public ProxyKeysBody listProxyKeys(String organizationId) {
    return listProxyKeys(organizationId, new ListProxyKeysQuery());
  }

  /**
   * Issue a proxy key.
   *
   * <p>The secret is shown this once. At most 200 keys of all kinds that are neither revoked nor expired may be in an
   * organization. Needs the role {@code admin}.
   */
  public IssuedProxyKeyBody issueProxyKey(String organizationId, IssueProxyKeyBody body) {
    return new IssuedProxyKeyBody(send(new Call("POST", "/management/organizations/{}/proxy-credentials", organizationId).body(body)));
  }

  /**
   * Revoke a proxy key.
   *
   * <p>For good. It is refused from the next request on, and stays listed. Needs the role {@code admin}.
   */
  public ProxyKeyBody revokeProxyKey(String organizationId, String proxyCredentialId) {
    return new ProxyKeyBody(send(new Call("POST", "/management/organizations/{}/proxy-credentials/{}/revoke", organizationId, proxyCredentialId)));
  }

  /**
   * List SDK keys.
   *
   * <p>Oldest first, revoked ones included for 400 days. All of them, or a page where {@code limit} or {@code cursor}
   * is given. A key that has expired stays {@code active} until it is revoked.
   */
  public SdkKeysBody listSdkKeys(String organizationId, ListSdkKeysQuery query) {
    return new SdkKeysBody(send(new Call("GET", "/management/organizations/{}/sdk-keys", organizationId).query(query).repeatable()));
  }

  /** List SDK keys. */
  public SdkKeysBody listSdkKeys(String organizationId) {
    return listSdkKeys(organizationId, new ListSdkKeysQuery());
  }

  /**
   * Issue an SDK key.
   *
   * <p>The secret is shown this once. At most 200 keys of all kinds that are neither revoked nor expired may be in an
   * organization. Needs the role {@code admin} or {@code developer}.
   */
  public IssuedSdkKeyBody issueSdkKey(String organizationId, IssueSdkKeyBody body) {
    return new IssuedSdkKeyBody(send(new Call("POST", "/management/organizations/{}/sdk-keys", organizationId).body(body)));
  }

  /**
   * Revoke an SDK key.
   *
   * <p>For good. It is refused from the next request on, and stays listed. Needs the role {@code admin} or {@code
   * developer}.
   */
  public SdkKeyBody revokeSdkKey(String organizationId, String keyId) {
    return new SdkKeyBody(send(new Call("POST", "/management/organizations/{}/sdk-keys/{}/revoke", organizationId, keyId)));
  }

  /**
   * Replace the allowed origins of an SDK key.
   *
   * <p>An origin is {@code scheme://host[:port]}; {@code https://*.example.com} is any host below it, and not the
   * host itself. Below a public suffix, such as {@code https://*.co.uk}, are the sites of strangers: never allow one.
   * Needs the role {@code admin} or {@code developer}.
   */
  public SdkKeyBody replaceSdkKeyOrigins(String organizationId, String keyId, ReplaceOriginsBody body) {
    return new SdkKeyBody(send(new Call("PUT", "/management/organizations/{}/sdk-keys/{}/allowed-origins", organizationId, keyId).body(body)));
  }

  /**
   * Rotate the key of signed verdicts.
   *
   * <p>The next key, which is published already, signs from the next request on. Verdicts by the previous one are
   * accepted for this many hours, {@code 0} = no longer. Needs the role {@code admin}.
   */
  public VerdictKeysBody rotateVerdictKey(String organizationId, RotateVerdictKeyBody body) {
    return new VerdictKeysBody(send(new Call("POST", "/management/organizations/{}/verdict-keys/rotate", organizationId).body(body)));
  }

  /** Rotate the key of signed verdicts. */
  public VerdictKeysBody rotateVerdictKey(String organizationId) {
    return rotateVerdictKey(organizationId, new RotateVerdictKeyBody());
  }

  /**
   * Count the keys of browsers.
   *
   * <p>Those that first signed in a window of time and are not revoked. All visitors are looked through. Needs the
   * role {@code admin}.
   */
  public BrowserKeysBody countBrowserKeys(String organizationId, CountBrowserKeysQuery query) {
    return new BrowserKeysBody(send(new Call("GET", "/management/organizations/{}/browser-keys", organizationId).query(query).repeatable()));
  }

  /** Count the keys of browsers. */
  public BrowserKeysBody countBrowserKeys(String organizationId) {
    return countBrowserKeys(organizationId, new CountBrowserKeysQuery());
  }

  /**
   * Revoke the keys of browsers.
   *
   * <p>After a script that was not yours ran on your pages: it may have planted a key, which proves as the visitor's
   * own does, from anywhere. Keys that first signed in the window prove nothing from the next request on; the web SDK
   * renews them, and their visitors stay, unproven for a visit. A planted key counts from when it first signed, which
   * may be on a later visit: leave out {@code to}. May be repeated. Needs the role {@code admin}.
   */
  public BrowserKeysBody revokeBrowserKeys(String organizationId, RevokeBrowserKeysBody body) {
    return new BrowserKeysBody(send(new Call("POST", "/management/organizations/{}/browser-keys/revoke", organizationId).body(body)));
  }

  /**
   * List webhook endpoints.
   *
   * <p>Newest first, without secrets.
   */
  public WebhooksBody listWebhooks(String organizationId) {
    return new WebhooksBody(send(new Call("GET", "/management/organizations/{}/webhooks", organizationId).repeatable()));
  }

  /**
   * Register a webhook endpoint.
   *
   * <p>At most ten per organization. The signing secret is shown this once. The URL must be {@code https}, and every
   * address of its host public and none of this service's own; it is judged again at every attempt, and redirects are
   * not followed. Ports are 443 and those above 1023, unless the operator allows others. {@code live} endpoints get
   * events of production traffic, {@code test} ones all others; {@code billing.status_changed} needs {@code live}. A
   * {@code filter} that cannot be used is {@code invalid_condition}, and one that could cost too much {@code
   * too_expensive}; {@code message} says why. Needs the role {@code admin} or {@code developer}.
   */
  public IssuedWebhookBody createWebhook(String organizationId, CreateWebhookBody body) {
    return new IssuedWebhookBody(send(new Call("POST", "/management/organizations/{}/webhooks", organizationId).body(body)));
  }

  /**
   * Change a webhook endpoint.
   *
   * <p>Send only what changes. While it is paused nothing new is queued for it, and what was queued waits until it is
   * resumed. A changed URL, or {@code paused: false}, gives a failing endpoint a new start. What waits goes out in
   * the format that the endpoint has then; after a change to {@code json}, a rotation shows a secret. Needs the role
   * {@code admin} or {@code developer}.
   */
  public WebhookBody updateWebhook(String organizationId, String webhookId, UpdateWebhookBody body) {
    return new WebhookBody(send(new Call("PATCH", "/management/organizations/{}/webhooks/{}", organizationId, webhookId).body(body)));
  }

  /**
   * Delete a webhook endpoint.
   *
   * <p>Deliveries to it stop at once. Needs the role {@code admin} or {@code developer}.
   */
  public void deleteWebhook(String organizationId, String webhookId) {
    send(new Call("DELETE", "/management/organizations/{}/webhooks/{}", organizationId, webhookId));
  }

  /**
   * Rotate the signing secret of a webhook endpoint.
   *
   * <p>The new secret is shown this once. The previous one signs along for this many hours, {@code 0} = not at all;
   * an older one no more. A chat format has no secret. Needs the role {@code admin} or {@code developer}.
   */
  public IssuedWebhookBody rotateWebhookSecret(String organizationId, String webhookId, RotateWebhookSecretBody body) {
    return new IssuedWebhookBody(send(new Call("POST", "/management/organizations/{}/webhooks/{}/rotate-secret", organizationId, webhookId).body(body)));
  }

  /** Rotate the signing secret of a webhook endpoint. */
  public IssuedWebhookBody rotateWebhookSecret(String organizationId, String webhookId) {
    return rotateWebhookSecret(organizationId, webhookId, new RotateWebhookSecretBody());
  }

  /**
   * Send a test event.
   *
   * <p>One {@code webhook.test}, whether or not the endpoint subscribes to it. It is tried once, and its failure does
   * not make the endpoint {@code failing}. Needs the role {@code admin} or {@code developer}.
   */
  public QueuedDeliveryBody testWebhook(String organizationId, String webhookId) {
    return new QueuedDeliveryBody(send(new Call("POST", "/management/organizations/{}/webhooks/{}/test", organizationId, webhookId)));
  }

  /**
   * Deliver an event again.
   *
   * <p>An event that was sent to this endpoint in the last 30 days, accepted or not, with the same {@code id}. It is
   * tried once, and its failure does not make the endpoint {@code failing}. Needs the role {@code admin} or {@code
   * developer}.
   */
  public QueuedDeliveryBody redeliverWebhook(String organizationId, String webhookId, RedeliverWebhookBody body) {
    return new QueuedDeliveryBody(send(new Call("POST", "/management/organizations/{}/webhooks/{}/redeliver", organizationId, webhookId).body(body)));
  }

  /**
   * List delivery attempts.
   *
   * <p>Of the last 30 days, newest first. The last page has no {@code next_cursor}. With {@code endpoint_id}, a page
   * may be short or empty and have one.
   */
  public WebhookDeliveriesBody listWebhookDeliveries(String organizationId, ListWebhookDeliveriesQuery query) {
    return new WebhookDeliveriesBody(send(new Call("GET", "/management/organizations/{}/webhook-deliveries", organizationId).query(query).repeatable()));
  }

  /** List delivery attempts. */
  public WebhookDeliveriesBody listWebhookDeliveries(String organizationId) {
    return listWebhookDeliveries(organizationId, new ListWebhookDeliveriesQuery());
  }

  /** Read the rules. */
  public RulesAnswer getRules(String organizationId, GetRulesQuery query) {
    return new RulesAnswer(send(new Call("GET", "/management/organizations/{}/rules", organizationId).query(query).repeatable()));
  }

  /** Read the rules. */
  public RulesAnswer getRules(String organizationId) {
    return getRules(organizationId, new GetRulesQuery());
  }

  /**
   * Save the rules.
   *
   * <p>The whole ruleset, in force from the next request on: a rule that is not sent is gone, also one that the
   * organization started with. Send the {@code revision} that you read: another one is {@code 409 revision_conflict}.
   * A condition that cannot be used is {@code invalid_condition}; {@code message} has line and column. Only admins
   * change active rules and their order, and use more than 80 % of what a ruleset may have. Where the rules could
   * cost more than 2 ms of CPU an event, the first that goes beyond is {@code too_expensive}. Needs the role {@code
   * admin}, {@code developer} or {@code analyst}.
   */
  public RulesAnswer saveRules(String organizationId, RulesBody body, SaveRulesQuery query) {
    return new RulesAnswer(send(new Call("PUT", "/management/organizations/{}/rules", organizationId).body(body).query(query)));
  }

  /** Save the rules. */
  public RulesAnswer saveRules(String organizationId, RulesBody body) {
    return saveRules(organizationId, body, new SaveRulesQuery());
  }

  /**
   * Try rules on the newest events.
   *
   * <p>On the newest 10,000 events of that kind of environment, with their stored velocity, without what was set
   * later, and with lists and labels as they are now. Refused as saving the rules would be.
   */
  public RulesPreview previewRules(String organizationId, PreviewBody body, PreviewRulesQuery query) {
    return new RulesPreview(send(new Call("POST", "/management/organizations/{}/rules/preview", organizationId).body(body).query(query)));
  }

  /** Try rules on the newest events. */
  public RulesPreview previewRules(String organizationId, PreviewBody body) {
    return previewRules(organizationId, body, new PreviewRulesQuery());
  }

  /**
   * List proposals of rules.
   *
   * <p>What waits for an admin. A proposal is kept for 90 days.
   */
  public ProposalsBody listRuleProposals(String organizationId, ListRuleProposalsQuery query) {
    return new ProposalsBody(send(new Call("GET", "/management/organizations/{}/rule-proposals", organizationId).query(query).repeatable()));
  }

  /** List proposals of rules. */
  public ProposalsBody listRuleProposals(String organizationId) {
    return listRuleProposals(organizationId, new ListRuleProposalsQuery());
  }

  /**
   * Propose rules to an admin.
   *
   * <p>Nothing is in force. Refused as saving the rules would be; at most 20 wait. Needs the role {@code admin},
   * {@code developer} or {@code analyst}.
   */
  public ProposalBody proposeRules(String organizationId, NewProposalBody body, ProposeRulesQuery query) {
    return new ProposalBody(send(new Call("POST", "/management/organizations/{}/rule-proposals", organizationId).body(body).query(query)));
  }

  /** Propose rules to an admin. */
  public ProposalBody proposeRules(String organizationId, NewProposalBody body) {
    return proposeRules(organizationId, body, new ProposeRulesQuery());
  }

  /**
   * Dismiss a proposal of rules.
   *
   * <p>By an admin, or by its author. Needs the role {@code admin}, {@code developer} or {@code analyst}.
   */
  public void dismissRuleProposal(String organizationId, String proposalId, DismissRuleProposalQuery query) {
    send(new Call("DELETE", "/management/organizations/{}/rule-proposals/{}", organizationId, proposalId).query(query));
  }

  /** Dismiss a proposal of rules. */
  public void dismissRuleProposal(String organizationId, String proposalId) {
    dismissRuleProposal(organizationId, proposalId, new DismissRuleProposalQuery());
  }

  /** Read the organization's risk weights. */
  public RiskWeightsBody getOrganizationRiskWeights(String organizationId) {
    return new RiskWeightsBody(send(new Call("GET", "/management/organizations/{}/risk-weights", organizationId).repeatable()));
  }

  /**
   * Save the organization's risk weights for a platform.
   *
   * <p>What is not named keeps its value in force. Send the {@code revision} that you read to make sure that nobody
   * has saved since: another one is {@code 409 revision_conflict}. Needs the role {@code admin}.
   */
  public RiskWeightsBody saveOrganizationRiskWeights(String organizationId, String platform, SaveWeightsBody body) {
    return new RiskWeightsBody(send(new Call("PUT", "/management/organizations/{}/risk-weights/{}", organizationId, platform).body(body)));
  }

  /**
   * Restore the organization's risk weights for a platform.
   *
   * <p>Back to the defaults. Needs the role {@code admin}.
   */
  public RiskWeightsBody restoreOrganizationRiskWeights(String organizationId, String platform) {
    return new RiskWeightsBody(send(new Call("DELETE", "/management/organizations/{}/risk-weights/{}", organizationId, platform)));
  }

  /** Read the risk weights of an SDK key. */
  public RiskWeightsBody getSdkKeyRiskWeights(String organizationId, String keyId) {
    return new RiskWeightsBody(send(new Call("GET", "/management/organizations/{}/sdk-keys/{}/risk-weights", organizationId, keyId).repeatable()));
  }

  /**
   * Save the risk weights of an SDK key for a platform.
   *
   * <p>What is not named keeps its value in force. Send the {@code revision} that you read to make sure that nobody
   * has saved since: another one is {@code 409 revision_conflict}. Needs the role {@code admin}.
   */
  public RiskWeightsBody saveSdkKeyRiskWeights(String organizationId, String keyId, String platform, SaveWeightsBody body) {
    return new RiskWeightsBody(send(new Call("PUT", "/management/organizations/{}/sdk-keys/{}/risk-weights/{}", organizationId, keyId, platform).body(body)));
  }

  /**
   * Restore the risk weights of an SDK key for a platform.
   *
   * <p>Back to those of the organization. Needs the role {@code admin}.
   */
  public RiskWeightsBody restoreSdkKeyRiskWeights(String organizationId, String keyId, String platform) {
    return new RiskWeightsBody(send(new Call("DELETE", "/management/organizations/{}/sdk-keys/{}/risk-weights/{}", organizationId, keyId, platform)));
  }

  /** List the signals that can fire. */
  public SignalsBody listRiskSignals(String organizationId) {
    return new SignalsBody(send(new Call("GET", "/management/organizations/{}/risk-signals", organizationId).repeatable()));
  }

  /**
   * Read which weights labels suggest.
   *
   * <p>From the organization's own labeled events of the platform, at least 50 of each label: the stored ones, and
   * those among about the newest million that are deleted. Nothing is changed. With fewer there are no weights in the
   * response.
   */
  public SuggestionBody getWeightsSuggestion(String organizationId, String platform, GetWeightsSuggestionQuery query) {
    return new SuggestionBody(send(new Call("GET", "/management/organizations/{}/risk-weights/{}/suggestion", organizationId, platform).query(query).repeatable()));
  }

  /** Read which weights labels suggest. */
  public SuggestionBody getWeightsSuggestion(String organizationId, String platform) {
    return getWeightsSuggestion(organizationId, platform, new GetWeightsSuggestionQuery());
  }

  /**
   * List lists.
   *
   * <p>Every organization has six from the start: {@code blocked_visitors}, {@code blocked_accounts}, {@code
   * blocked_addresses}, {@code trusted_visitors}, {@code trusted_accounts} and {@code trusted_addresses}.
   */
  public ListsBody listLists(String organizationId) {
    return new ListsBody(send(new Call("GET", "/management/organizations/{}/lists", organizationId).repeatable()));
  }

  /**
   * Make a list.
   *
   * <p>At most 100 per organization, the six built-in lists included. Needs the role {@code admin} or {@code
   * developer}.
   */
  public ListBody createList(String organizationId, CreateListBody body) {
    return new ListBody(send(new Call("POST", "/management/organizations/{}/lists", organizationId).body(body)));
  }

  /**
   * Read a list.
   *
   * <p>Without its entries, which are listed apart.
   */
  public ListBody getList(String organizationId, String listId) {
    return new ListBody(send(new Call("GET", "/management/organizations/{}/lists/{}", organizationId, listId).repeatable()));
  }

  /**
   * Rename a list.
   *
   * <p>A built-in list, and one that a rule uses, keeps its name. Needs the role {@code admin} or {@code developer}.
   */
  public ListBody updateList(String organizationId, String listId, UpdateListBody body) {
    return new ListBody(send(new Call("PATCH", "/management/organizations/{}/lists/{}", organizationId, listId).body(body)));
  }

  /**
   * Delete a list.
   *
   * <p>With its entries. A built-in list, and one that a rule uses, cannot be deleted. Needs the role {@code admin}
   * or {@code developer}.
   */
  public void deleteList(String organizationId, String listId) {
    send(new Call("DELETE", "/management/organizations/{}/lists/{}", organizationId, listId));
  }

  /**
   * List the entries of a list.
   *
   * <p>In the order of their values, without those that have expired. A page may be short and have a {@code
   * next_cursor}.
   */
  public EntriesBody listListEntries(String organizationId, String listId, ListListEntriesQuery query) {
    return new EntriesBody(send(new Call("GET", "/management/organizations/{}/lists/{}/entries", organizationId, listId).query(query).repeatable()));
  }

  /** List the entries of a list. */
  public EntriesBody listListEntries(String organizationId, String listId) {
    return listListEntries(organizationId, listId, new ListListEntriesQuery());
  }

  /**
   * Add entries to a list.
   *
   * <p>All of them or, where one is refused, none. Values are stored in one spelling: networks without host bits,
   * lower-case origins, upper-case countries, AS numbers as digits. At most 100,000 entries that have not expired may
   * be in the lists of an organization. What is added counts from the next request on. Needs the role {@code admin},
   * {@code developer} or {@code analyst}.
   */
  public AddedBody addListEntries(String organizationId, String listId, AddEntriesBody body) {
    return new AddedBody(send(new Call("POST", "/management/organizations/{}/lists/{}/entries", organizationId, listId).body(body)));
  }

  /**
   * Remove entries from a list.
   *
   * <p>By their values. From the next request on they are in it no more. Needs the role {@code admin}, {@code
   * developer} or {@code analyst}.
   */
  public void removeListEntries(String organizationId, String listId, RemoveEntriesBody body) {
    send(new Call("DELETE", "/management/organizations/{}/lists/{}/entries", organizationId, listId).body(body));
  }

  /**
   * Label an event.
   *
   * <p>What it turned out to be, of an event of any environment, for 400 days from its arrival. Servers with a secret
   * key use {@code updateEvent}. Needs the role {@code admin}, {@code developer} or {@code analyst}.
   */
  public LabelAnswer labelEvent(String organizationId, String requestId, LabelBody body) {
    return new LabelAnswer(send(new Call("PUT", "/management/organizations/{}/events/{}/label", organizationId, requestId).body(body)));
  }

  /**
   * Read how signals, rules and levels did.
   *
   * <p>By the labels of events: of those in which a signal fired, how many are fraud (precision), and how much of all
   * fraud that is (recall). Of the whole UTC days that the window touches, at most 400. An event without a label is
   * never counted as legitimate.
   */
  public PerformanceBody getPerformance(String organizationId, GetPerformanceQuery query) {
    return new PerformanceBody(send(new Call("GET", "/management/organizations/{}/performance", organizationId).query(query).repeatable()));
  }

  /** Read how signals, rules and levels did. */
  public PerformanceBody getPerformance(String organizationId) {
    return getPerformance(organizationId, new GetPerformanceQuery());
  }

  /**
   * List reviews.
   *
   * <p>The one that was opened last first, for 400 days. A page with an assignee who has few may be short, or empty,
   * and have a {@code next_cursor}.
   */
  public ReviewsBody listReviews(String organizationId, ListReviewsQuery query) {
    return new ReviewsBody(send(new Call("GET", "/management/organizations/{}/reviews", organizationId).query(query).repeatable()));
  }

  /** List reviews. */
  public ReviewsBody listReviews(String organizationId) {
    return listReviews(organizationId, new ListReviewsQuery());
  }

  /**
   * Open a review.
   *
   * <p>Of an event of any environment. A rule that decides {@code review} does the same. Of a visitor and account one
   * is open at a time: where there is one, it is the response, with {@code 200}. Needs the role {@code admin}, {@code
   * developer} or {@code analyst}.
   */
  public ReviewAnswer openReview(String organizationId, OpenReviewBody body) {
    return new ReviewAnswer(send(new Call("POST", "/management/organizations/{}/reviews", organizationId).body(body)));
  }

  /** Read a review. */
  public ReviewAnswer getReview(String organizationId, String reviewId) {
    return new ReviewAnswer(send(new Call("GET", "/management/organizations/{}/reviews/{}", organizationId, reviewId).repeatable()));
  }

  /**
   * Assign a review.
   *
   * <p>To a member, or to nobody. Needs the role {@code admin}, {@code developer} or {@code analyst}.
   */
  public ReviewAnswer assignReview(String organizationId, String reviewId, AssignReviewBody body) {
    return new ReviewAnswer(send(new Call("PATCH", "/management/organizations/{}/reviews/{}", organizationId, reviewId).body(body)));
  }

  /**
   * Close a review.
   *
   * <p>The label goes to the event of the review, and to no other. Needs the role {@code admin}, {@code developer} or
   * {@code analyst}.
   */
  public ReviewAnswer closeReview(String organizationId, String reviewId, CloseReviewBody body) {
    return new ReviewAnswer(send(new Call("POST", "/management/organizations/{}/reviews/{}/close", organizationId, reviewId).body(body)));
  }

  /**
   * Open a closed review again.
   *
   * <p>Its label stays, on its event too, until it is closed the next time. {@code review.opened} is sent again. Not
   * where another one of its visitor and account is open. Needs the role {@code admin}, {@code developer} or {@code
   * analyst}.
   */
  public ReviewAnswer reopenReview(String organizationId, String reviewId) {
    return new ReviewAnswer(send(new Call("POST", "/management/organizations/{}/reviews/{}/reopen", organizationId, reviewId)));
  }

  /** List notes about a visitor. */
  public NotesBody listVisitorNotes(String organizationId, String visitorId) {
    return new NotesBody(send(new Call("GET", "/management/organizations/{}/visitors/{}/notes", organizationId, visitorId).repeatable()));
  }

  /**
   * Write a note about a visitor.
   *
   * <p>At most 100. Notes are kept for 400 days; the erasure of their subject deletes them. Needs the role {@code
   * admin}, {@code developer} or {@code analyst}.
   */
  public NoteBody createVisitorNote(String organizationId, String visitorId, NewNoteBody body) {
    return new NoteBody(send(new Call("POST", "/management/organizations/{}/visitors/{}/notes", organizationId, visitorId).body(body)));
  }

  /**
   * Delete a note about a visitor.
   *
   * <p>Needs the role {@code admin}, {@code developer} or {@code analyst}.
   */
  public void deleteVisitorNote(String organizationId, String visitorId, String noteId) {
    send(new Call("DELETE", "/management/organizations/{}/visitors/{}/notes/{}", organizationId, visitorId, noteId));
  }

  /** List notes about an account. */
  public NotesBody listAccountNotes(String organizationId, String accountId) {
    return new NotesBody(send(new Call("GET", "/management/organizations/{}/accounts/{}/notes", organizationId, accountId).repeatable()));
  }

  /**
   * Write a note about an account.
   *
   * <p>At most 100. Notes are kept for 400 days; the erasure of their subject deletes them. Needs the role {@code
   * admin}, {@code developer} or {@code analyst}.
   */
  public NoteBody createAccountNote(String organizationId, String accountId, NewNoteBody body) {
    return new NoteBody(send(new Call("POST", "/management/organizations/{}/accounts/{}/notes", organizationId, accountId).body(body)));
  }

  /**
   * Delete a note about an account.
   *
   * <p>Needs the role {@code admin}, {@code developer} or {@code analyst}.
   */
  public void deleteAccountNote(String organizationId, String accountId, String noteId) {
    send(new Call("DELETE", "/management/organizations/{}/accounts/{}/notes/{}", organizationId, accountId, noteId));
  }

  /** Read the settings of the organization. */
  public SettingsBody getSettings(String organizationId) {
    return new SettingsBody(send(new Call("GET", "/management/organizations/{}/settings", organizationId).repeatable()));
  }

  /**
   * Change settings of the organization.
   *
   * <p>What is left out stays; what the operator sets is not changed here. In force from the next request on, on
   * every worker and node. Needs the role {@code admin}.
   */
  public SettingsBody updateSettings(String organizationId, UpdateSettingsBody body) {
    return new SettingsBody(send(new Call("PATCH", "/management/organizations/{}/settings", organizationId).body(body)));
  }

  /**
   * List members.
   *
   * <p>Oldest first, those that are invited or suspended among them. Needs the role {@code admin}.
   */
  public MembersBody listMembers(String organizationId) {
    return new MembersBody(send(new Call("GET", "/management/organizations/{}/members", organizationId).repeatable()));
  }

  /**
   * Invite a member.
   *
   * <p>The response has a link by which the member chooses a password and comes in. It works once, within seven days.
   * The service sends no mail: hand the link over. At most 500 members per organization. Needs the role {@code
   * admin}.
   */
  public InvitedMemberBody inviteMember(String organizationId, InviteMemberBody body) {
    return new InvitedMemberBody(send(new Call("POST", "/management/organizations/{}/members", organizationId).body(body)));
  }

  /**
   * Invite a member again.
   *
   * <p>Another link, which takes the place of the former one: for a member without link, password or the device with
   * the one-time codes. The member chooses a new password with it, then signs in without a code, and all its other
   * sessions end. Needs the role {@code admin}.
   */
  public InvitedMemberBody inviteMemberAgain(String organizationId, String memberId) {
    return new InvitedMemberBody(send(new Call("POST", "/management/organizations/{}/members/{}/invitation", organizationId, memberId)));
  }

  /**
   * Change a member.
   *
   * <p>Name, role or status; in force from its next request on. No act of a member may leave the organization without
   * an active admin ({@code 409 last_admin}). Needs the role {@code admin}.
   */
  public MemberBody updateMember(String organizationId, String memberId, UpdateMemberBody body) {
    return new MemberBody(send(new Call("PATCH", "/management/organizations/{}/members/{}", organizationId, memberId).body(body)));
  }

  /**
   * Remove a member.
   *
   * <p>Its sessions end at once. What it did stays attributed to its id. No act of a member may leave the
   * organization without an active admin ({@code 409 last_admin}). Needs the role {@code admin}.
   */
  public void removeMember(String organizationId, String memberId) {
    send(new Call("DELETE", "/management/organizations/{}/members/{}", organizationId, memberId));
  }

  /**
   * Erase a visitor.
   *
   * <p>With its events, their submissions and deferred reports, for good. Events that cannot be read stay until the
   * operator takes them out; rules, webhooks and names of lists stay as they are, whatever they name. Needs the role
   * {@code admin}.
   */
  public void eraseVisitor(String organizationId, String visitorId) {
    send(new Call("DELETE", "/management/organizations/{}/visitors/{}", organizationId, visitorId));
  }

  /**
   * Erase an account.
   *
   * <p>Its id leaves events, counts, lists, notes and queued webhooks, for good. The events stay; so do rules,
   * webhooks, names of lists and events that cannot be read, whatever they name. Needs the role {@code admin}.
   */
  public void eraseAccount(String organizationId, String accountId) {
    send(new Call("DELETE", "/management/organizations/{}/accounts/{}", organizationId, accountId));
  }

  /** Is the process up?. */
  public HealthBody getHealth() {
    return new HealthBody(send(new Call("GET", "/healthz").repeatable()));
  }

  /** Can it serve?. */
  public ReadinessBody getReadiness() {
    return new ReadinessBody(send(new Call("GET", "/readyz").repeatable()));
  }
}
