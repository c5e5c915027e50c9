/** svc for React Native: passes options and calls to the native SDK, and has no logic of its own. */
import { type Identification, SvcError } from "./api.js";
import native from "./NativeSvcVisitor.js";

export { type Decision, type Identification, type Level, SvcError, type Trigger } from "./api.js";

/** Options of {@link configure}; the guides of the native SDKs say what they mean. */
export interface SvcOptions {
  /** A public key for the platform, `svc_pk_...`. */
  apiKey: string;
  /** Where the service is, or several addresses, tried in order. */
  endpoint: string | readonly string[];
  timeoutMs?: number;
  collectMs?: number;
  storage?: boolean;
  deviceId?: boolean;
  minimal?: boolean;
  attestation?: "off" | "when_possible";
  deferred?: boolean;
  verdict?: boolean;
  pins?: readonly string[];
  expectedSigners?: readonly string[];
  expectedInstallers?: readonly string[];
  checks?: readonly string[];
  /** Writes to the system's log how calls go, without keys and ids. */
  debugLog?: boolean;
}

/** `null` is as one that is left out: somebody who is logged out has no account. */
export interface IdentifyOptions {
  accountId?: string | null;
  action?: string | null;
  tag?: string | null;
  timeoutMs?: number | null;
  /** Ends the call: it rejects with `aborted`. */
  signal?: AbortSignal | null;
}

/** As much of a location as is read, in the form of the usual packages for locations. */
export interface LocationLike {
  mocked?: boolean | null;
}

interface Told {
  svc_error?: {
    code: string;
    message: string;
    status: number;
    retryable: boolean;
    retry_after_ms: number;
    request_id: string | null;
  };
}

function thrown({ code, message, status, retryable, retry_after_ms, request_id }: NonNullable<Told["svc_error"]>): SvcError {
  const details = { status, retryable, retryAfterMs: retry_after_ms, ...(request_id ? { requestId: request_id } : {}) };
  return new SvcError(code, message, details);
}

let calls = 0;

/** Once, when the app starts. Throws {@link SvcError} `invalid_options`, also for an option that does not exist. */
export function configure(options: SvcOptions): void {
  const told = native().configure(JSON.stringify(options));
  if (told !== "") throw thrown((JSON.parse(told) as Required<Told>).svc_error);
}

/** Sends one report; the response is the API's. Rejects with {@link SvcError} only. */
export async function identify(options: IdentifyOptions = {}): Promise<Identification> {
  const { signal, ...about } = options;
  if (signal?.aborted) throw new SvcError("aborted", "The call was canceled.");
  const id = `${++calls}`;
  const cancel = () => native().cancel(id);
  signal?.addEventListener("abort", cancel);
  try {
    const told = JSON.parse(await native().identify(JSON.stringify({ ...about, id }))) as Identification & Told;
    if (told.svc_error) throw thrown(told.svc_error);
    return told;
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
}

/** A location that the app has, for the flag `location_spoofing`: only `mocked` is read, never where it is. */
export function setLocation(location: LocationLike | null): void {
  native().setLocationMocked(typeof location?.mocked === "boolean" ? `${location.mocked}` : "");
}

/** For withdrawn consent: ends calls with `aborted`, deletes what is stored, and stores nothing from then on. */
export function forget(): Promise<void> {
  return native().forget();
}
