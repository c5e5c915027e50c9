import { type LoadOptions, type SvcClient, SvcError } from "./api.js";
import { asSvcError, Client, forgetStored } from "./client.js";
import { checked, checkedStorage } from "./options.js";

export * from "./api.js";

/** Version of this SDK. */
export const VERSION: string = SDK_VERSION;

/** Where this script came from: read while it runs, since later there is no telling. */
const script: string | undefined = running() || import.meta.url;

/**
 * By the getter that documents inherit: markup can put an image of the name `currentScript` in front of it, and MooTools
 * puts something else in the place of `Document`.
 */
function running(): string | undefined {
  if (typeof document === "undefined" || typeof HTMLScriptElement === "undefined") return undefined;
  const element: unknown = Reflect.get(Object.getPrototypeOf(document) as object, "currentScript", document);
  return element instanceof HTMLScriptElement ? element.src : undefined;
}

/** Global functions without which nothing can be sent. Old browsers lack some, and pages have variables named `URL` or `Map`. */
const NEEDED = ["fetch", "AbortController", "TextEncoder", "URL", "Map"] as const;

/**
 * Starts collecting the report at once, and returns the client that sends it. Nothing is read or stored before.
 * Throws {@link SvcError} with code `invalid_options`, `unsupported_browser` in a browser that is too old, or
 * `not_a_browser` on a server; importing is safe there.
 */
export function load(options: LoadOptions): SvcClient {
  if (typeof window === "undefined" || typeof document === "undefined") {
    throw new SvcError(
      "not_a_browser",
      "load() needs a browser: call it in an effect or an event handler, not while rendering on a server.",
    );
  }
  const missing: string[] = NEEDED.filter((name) => typeof (window as unknown as Record<string, unknown>)[name] !== "function");
  if (!window.crypto) missing.push("crypto");
  if (missing.length > 0) {
    throw new SvcError(
      "unsupported_browser",
      `This browser has no ${missing.join(", ")}: it is too old to be identified, or a script of the page has a global variable of ` +
        "that name. Go on without, and decide on your server.",
    );
  }
  try {
    return new Client(checked(options, script));
  } catch (problem) {
    throw asSvcError(problem);
  }
}

/**
 * Removes the token, its key and the cached responses of earlier visits without loading anything: for consent that is withdrawn
 * where no client was loaded; `forget()` of a client does it otherwise. Takes the options of `load` that say what is stored.
 * Rejects with {@link SvcError} code `storage` where the browser keeps the token, and `invalid_options`.
 */
export async function forget(options: Partial<LoadOptions> = {}): Promise<void> {
  const given = { apiKey: "", ...options };
  if (typeof document !== "undefined") await forgetStored({ apiKey: given.apiKey, ...checkedStorage(given) });
}
