/** Requests of the console. Every error is an `ApiError` whose message says what to do next. */
import type { Key } from "./wire.js";

export interface Detail {
  field: string;
  issue: string;
}

export class ApiError extends Error {
  constructor(
    message: string,
    readonly status = 0,
    readonly code = "",
    readonly details: Detail[] = [],
    readonly retryAfter = 0,
    readonly requestId = "",
  ) {
    super(message);
  }
}

type Sent = Record<string, string | number | undefined>;

interface Options {
  query?: Sent;
  body?: unknown;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

const CUT = "The response was cut off on its way.";
const UNREACHABLE = "The service cannot be reached. Check the connection and that it is running, then try again.";
const ERASING = "The connection was lost, and the erasure goes on. Erase again to see it end.";
const UNKNOWN = "The connection was lost, and it may be done: look before you try again.";
/** Seconds without an answer, after which the line is taken for dead: browsers wait for minutes. */
const LONGEST = 60;

async function failure(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => null)) as {
    error?: { code: string; message: string; details?: Detail[] };
    request_id?: string;
  } | null;
  const { code = "", message = `The service responded with status ${response.status}. Try again.`, details = [] } = body?.error ?? {};
  const wait = Number(response.headers.get("retry-after") ?? 0);
  // Nobody sees the headers here.
  const told = message.replace("for the seconds in Retry-After", `${wait} s`);
  return new ApiError(told, response.status, code, details, wait, body?.request_id);
}

/** What is at `/console` itself. */
const SIGNING_IN = ["session", "invitations", "invitations/read", "sign-in"];

const MAX_TRIES = 5;
const LONGEST_WAIT = 5;
export const pass = (seconds: number) => new Promise((done) => setTimeout(done, 1000 * seconds));

const writes = (method: string, path: string): boolean => method !== "GET" && !SIGNING_IN.includes(path) && !/(^|\/)(preview|check|examples|standing)$/.test(path);

/** An erasure of many events takes minutes, and has no other answer than its end. */
const erases = (method: string, path: string): boolean => method === "DELETE" && /\/(visitors|accounts)\/[^/]+$/.test(path);

/** Without an answer it is not known whether something was written. */
const without = (method: string, path: string): string => (erases(method, path) ? ERASING : writes(method, path) ? UNKNOWN : UNREACHABLE);

/** What comes within this time, in seconds; without it, an error with this text. */
export const within = <T>(answer: Promise<T>, text: string, time = LONGEST): Promise<T> =>
  Promise.race([answer, pass(time).then((): never => { throw new ApiError(text); })]);

export class Api {
  /** Of the session; management routes name it. */
  organization = "";
  /** How many sessions have begun: a late 401 of an earlier one does not end this one. */
  sessions = 0;
  /** Hears of every refusal for the role, which may have been changed since the session began. */
  onRole = () => {};

  /** `onEnded` hears of every 401 but those of signing in. */
  constructor(private readonly onEnded: (reason: string) => void, private readonly wait = pass) {}

  /** Send one request below `/console/api`, or to one of `SIGNING_IN`; throws `ApiError` for every status but 2xx. */
  async request(method: string, path: string, { query, body, signal, headers }: Options = {}): Promise<Response> {
    // A browser takes dots for folders: the address of a screen would choose what is asked for, or deleted.
    if (/(^|\/)\.\.?(\/|$)/.test(path)) throw new ApiError("There is nothing at this address.");
    const search = new URLSearchParams(), of = this.sessions;
    for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined && value !== "") search.set(name, String(value));
    const response = await fetch(`console/${SIGNING_IN.includes(path) ? path : `api/${path}`}${search.size > 0 ? `?${search}` : ""}`, {
      method,
      headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
      cache: "no-store",
    }).catch((error: unknown) => {
      throw signal?.aborted ? error : new ApiError(without(method, path));
    });
    if (response.ok) return response;
    const error = await failure(response);
    // Of one that was given up the body is not read, and another has said why the session ended.
    if (error.status === 401 && !SIGNING_IN.includes(path) && !signal?.aborted && of === this.sessions) this.onEnded(error.message);
    if (error.code === "insufficient_role") this.onRole();
    throw error;
  }

  /** As `request`, but a request beyond a limit, of which nothing is left, is sent again where its wait is short: colleagues share a limit. */
  private async patiently(method: string, path: string, options?: Options): Promise<Response> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.request(method, path, options);
      } catch (error) {
        const isBrief = error instanceof ApiError && error.status === 429 && error.retryAfter <= LONGEST_WAIT && !SIGNING_IN.includes(path);
        if (!isBrief || tries === MAX_TRIES) throw error;
        await this.wait(Math.max(1, error.retryAfter));
      }
    }
  }

  call<T>(method: string, path: string, options?: Options): Promise<T> {
    const answered = this.patiently(method, path, options).then((response) =>
      response.status === 204 ? (undefined as T) : response.json().catch((error: unknown) => {
        throw options?.signal?.aborted ? error : new ApiError(`${CUT} ${writes(method, path) ? "It is done: load the page again." : "Try again."}`);
      }));
    return erases(method, path) ? answered : within(answered, without(method, path));
  }

  get<T>(path: string, query?: Sent, signal?: AbortSignal): Promise<T> {
    return this.call("GET", path, { ...(query && { query }), ...(signal && { signal }) });
  }

  /** A management route of the organization: `manage("POST", "webhooks", body)`. */
  manage<T>(method: string, path: string, body?: unknown, query?: Sent): Promise<T> {
    return this.call(method, `management/organizations/${this.organization}/${path}`, { body, ...(query && { query }) });
  }
}

/** The SDK keys of the organization, oldest first; public ones with their whole text, as far as it is known. */
export async function sdkKeys(api: Api): Promise<Key[]> {
  const [{ keys }, whole] = await Promise.all([api.manage<{ keys: Key[] }>("GET", "sdk-keys"), api.get<{ keys: Record<string, string> }>("public-keys")]);
  return keys.map((key) => { const text = whole.keys[key.id]; return text === undefined ? key : { ...key, public_key: text }; });
}
