// Client of an svc service, for servers: identifications read and checked, webhooks verified, the management API.

export type { Action, Checked, CheckedVerdict, Decision, Problem, Verdict } from "./checks.js";
export { decide } from "./checks.js";
export { Client, type Options } from "./client.js";
export { ApiError, SvcError, UnreachableError, WebhookError } from "./errors.js";
export { visitorHeaders, type RequestHeaders } from "./forwarding.js";
export type { Retries } from "./retries.js";
export type * from "./types.js";
export type { ExpectedVerdict } from "./verdicts.js";
export { verifyWebhook, type WebhookEvent, type WebhookHeaders } from "./webhooks.js";
