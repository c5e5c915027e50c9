/** What both versions of the agent share: options and results by the names of the web SDK, and what went wrong. */
import { type CacheOptions, type Identification, load, type SvcClient } from "@svc/web";

import type { Code } from "./codes.js";

/** What went wrong: `problem` is the error of the web SDK, where it is one. */
export class Fault extends Error {
  readonly code: Code;
  /** The service's id of the request that it refused. */
  readonly requestId: string | null;
  readonly problem: unknown;

  constructor(code: Code, message: string, problem?: unknown) {
    super(message);
    this.code = code;
    this.requestId = (problem as { requestId?: string } | undefined)?.requestId ?? null;
    this.problem = problem;
  }
}

/** Code of an `SvcError` -> code of agent v4. Any other is `failed`. */
const CODES: Record<string, Code> = {
  not_a_browser: "script_load_fail",
  unsupported_browser: "script_load_fail",
  invalid_options: "request_cannot_be_parsed",
  network: "network_connection",
  offline: "network_connection",
  blocked_by_policy: "csp_block",
  timeout: "client_timeout",
  aborted: "network_abort",
  bad_response: "bad_response_format",
  unauthorized: "public_api_key_not_found",
  billing_blocked: "subscription_not_active",
  no_credit: "subscription_not_active",
  rate_limited: "too_many_requests",
  validation_error: "request_cannot_be_parsed",
  payload_too_large: "payload_too_large",
};

const faultOf = (problem: unknown): Fault => {
  if (problem instanceof Fault) return problem;
  const { code, message } = problem as { code?: string; message?: string };
  return new Fault(CODES[code ?? ""] ?? "failed", message ?? String(problem), problem);
};

/** A client of the web SDK. Throws {@link Fault} alone. `endpoints`: what is no address stands for a default of theirs. */
export function loaded(apiKey: unknown, endpoints: readonly unknown[], cache: CacheOptions | false): SvcClient {
  if (apiKey === undefined || apiKey === "") throw new Fault("api_key_missing", "`apiKey` is missing: a public key, svc_pk_...");
  if (typeof apiKey !== "string" || !/^\s*svc_pk_[!-~]*\s*$/.test(apiKey)) {
    throw new Fault("api_key_invalid", "`apiKey` is not a public key of svc, svc_pk_...");
  }
  const addresses = endpoints.filter((one): one is string => typeof one === "string");
  try {
    return load({ apiKey, endpoint: addresses.length > 0 ? addresses : undefined, cache });
  } catch (problem) {
    const fault = faultOf(problem);
    // Key and cache were checked before: of what is passed on, the addresses are left.
    throw fault.code === "request_cannot_be_parsed" ? new Fault("invalid_endpoint", fault.message, problem) : fault;
  }
}

/** What `get` takes in both versions. */
export interface Asked {
  linkedId?: unknown;
  tag?: unknown;
  action?: string | undefined;
  timeout?: number | undefined;
}

/** Rejects with {@link Fault} alone. */
export async function identified(client: SvcClient, { linkedId, tag, action, timeout }: Asked): Promise<Identification> {
  try {
    const accountId = textOf(linkedId) || undefined;
    return await client.identify({ accountId, action, tag: textOf(tag), timeoutMs: timeout });
  } catch (problem) {
    throw faultOf(problem);
  }
}

/** Why there is no `collect`. */
export const nothingToCollect = (): Fault => new Fault("failed", "collect() has no equivalent: call get().");

/** The service takes texts: numbers and booleans as they are written, objects as JSON. */
function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(value);
  } catch (problem) {
    throw new Fault("request_cannot_be_parsed", "`tag` cannot be written as JSON.", problem);
  }
}
