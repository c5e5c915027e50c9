/** The visitor's token: 128 random bits, kept where the page's own origin keeps things, and nowhere else. */
import { now } from "./json.js";

/** The part of a report that is about the token. */
export interface Token {
  client_token?: string;
  client_token_is_new?: true;
}

interface Place {
  get(): string | null;
  put(token: string): void;
  drop(): void;
}

const IS_TOKEN = /^[0-9a-f]{32}$/;
const COOKIE_SECONDS = 400 * 24 * 3600; // as long as browsers keep one

/** 128 random bits in hex. `crypto.randomUUID` would do, but does not exist on plain http. */
export function randomHex(): string {
  let text = "";
  for (const byte of crypto.getRandomValues(new Uint8Array(16))) text += (byte + 256).toString(16).slice(1);
  return text;
}

/** A UUIDv7 (RFC 9562): with the time in front, the service keeps what arrives together in one place. */
export function timeOrderedId(): string {
  const time = now().toString(16).padStart(12, "0").slice(-12);
  const random = randomHex();
  const variant = "89ab"[Number.parseInt(random[3] ?? "0", 16) % 4] ?? "8";
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`;
}

function cookie(name: string): Place {
  const write = (value: string, seconds: number): void => {
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `${name}=${value}; Path=/; Max-Age=${seconds}; SameSite=Lax${secure}`;
  };
  return {
    get: () =>
      document.cookie
        .split("; ")
        .find((pair) => pair.startsWith(`${name}=`))
        ?.slice(name.length + 1) ?? null,
    put: (token) => write(token, COOKIE_SECONDS),
    drop: () => write("", -1),
  };
}

function local(name: string): Place {
  return {
    get: () => localStorage.getItem(name),
    put: (token) => localStorage.setItem(name, token),
    drop: () => localStorage.removeItem(name),
  };
}

/** In the order in which they are believed: other hosts of the site can write cookies, and other ports share them. */
const places = (name: string): Place[] => [local(name), cookie(name)];

/** Browsers refuse storage by throwing, or silently. */
function attempted<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}

function read(place: Place): string | null {
  const found = attempted(() => place.get());
  return found !== null && IS_TOKEN.test(found) ? found : null;
}

/** The token that is stored, and the one that a key may be given to: a cookie alone may be another origin's. */
export function storedToken(name: string): { known: string | null; sure: string | null } {
  const [inStorage = null, inCookie = null] = places(name).map(read);
  const known = inStorage ?? inCookie;
  const isRefused = attempted(() => localStorage.getItem(name) ?? "") === null;
  return { known, sure: isRefused ? known : inStorage };
}

/** Writes the token where it is not yet; `false` where it can be read back nowhere. */
export function keepToken(name: string, token: string): boolean {
  const kept = places(name).filter((place) => {
    if (read(place) !== token) attempted(() => place.put(token));
    return read(place) === token;
  });
  return kept.length > 0;
}

/**
 * The token of this browser, made now where there is none. It is new only if it was made and could be read back; where
 * nothing can be stored there is none, since another one each time would say "somebody new" each time.
 */
export function clientToken(name: string, made = randomHex()): Token {
  const { known } = storedToken(name);
  if (!keepToken(name, known ?? made)) return {};
  return known === null ? { client_token: made, client_token_is_new: true } : { client_token: known };
}

/** Whether the token in localStorage has a key, as far as was noted beside it. */
const note = (name: string): Place => local(`${name}_key`);
export const isNoted = (name: string): boolean => attempted(() => note(name).get()) !== null;
export const noteKey = (name: string): void => void attempted(() => note(name).put("1"));

/** Removes the token; `false` where it is still there. */
export function forgetToken(name: string): boolean {
  for (const place of [...places(name), note(name)]) attempted(() => place.drop());
  return places(name).every((place) => read(place) === null);
}
