import type { DetailBody } from "./types.js";

/** Of an error: the names of its classes. Each form of this package finds the same symbol. */
const KINDS = Symbol.for("@svc/client: kinds of an error");

/**
 * Any error of this library. `instanceof` also holds for one of the other form of the package: a process may have both,
 * ES modules and CommonJS.
 */
export class SvcError extends Error {
  override name = "SvcError";

  constructor(message?: string, options?: ErrorOptions) {
    super(message, options);
    const made = new.target;
    const value = Object.keys(CLASSES).filter((name) => made === CLASSES[name] || made.prototype instanceof CLASSES[name]!);
    Object.defineProperty(this, KINDS, { value });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    if (Function.prototype[Symbol.hasInstance].call(this, value)) return true;
    const name = Object.keys(CLASSES).find((one) => CLASSES[one] === this); // none of a class of the caller's own
    const kinds = (value as { [KINDS]?: string[] } | null | undefined)?.[KINDS];
    return name !== undefined && kinds !== undefined && kinds.includes(name);
  }
}

/** The service refused a request, or failed. */
export class ApiError extends SvcError {
  override name = "ApiError";
  readonly status: number;
  /** Such as `rate_limited`; `unexpected_response` where the response is not of this service. */
  readonly code: string;
  /** Each fault in the request; the message names them. */
  readonly details: readonly DetailBody[];
  /** Quote it to the operator. */
  readonly requestId: string | undefined;
  /** For how long the service asks to wait, in seconds. */
  readonly retryAfterS: number | undefined;

  constructor(
    status: number,
    code: string,
    message: string,
    more: { details?: readonly DetailBody[]; requestId?: string | undefined; retryAfterS?: number | undefined } = {},
  ) {
    const faults = more.details?.map((detail) => `${detail?.field || detail?.location}: ${detail?.issue}`).join(", ");
    super(`${status} ${code}: ${message}${faults ? ` (${faults})` : ""}`);
    this.status = status;
    this.code = code;
    this.details = more.details ?? [];
    this.requestId = more.requestId;
    this.retryAfterS = more.retryAfterS;
  }
}

/** The error for a response of a proxy, or of something else at this address. */
export function unexpected(status: number, more: { requestId?: string | undefined; retryAfterS?: number | undefined } = {}): ApiError {
  return new ApiError(status, "unexpected_response", "The response is not one of this service.", more);
}

/** No response arrived: the connection failed or took too long. What was asked for may have been done. */
export class UnreachableError extends SvcError {
  override name = "UnreachableError";
  /** `false` where there was no connection, so that nothing can have been done. */
  readonly wasSent: boolean;

  constructor(message: string, wasSent: boolean, cause: unknown) {
    super(message, { cause });
    this.wasSent = wasSent;
  }
}

/** A delivery that is not authentic, or no webhook of this version. Answer `401`, and do nothing else with it. */
export class WebhookError extends SvcError {
  override name = "WebhookError";
}

const CLASSES: Record<string, Function> = { SvcError, ApiError, UnreachableError, WebhookError };
