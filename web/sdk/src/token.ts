/** The visitor's token: 128 random bits, kept where the page's own origin keeps things, and nowhere else. */

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
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A UUIDv7 (RFC 9562): with the time in front, the service keeps what arrives together in one place. */
export function timeOrderedId(): string {
  const time = Date.now().toString(16).padStart(12, "0").slice(-12);
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

const places = (name: string): Place[] => [cookie(name), local(name)];

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

/**
 * The token of this browser, made now where there is none. It is new only if it was made and could be read back; where
 * nothing can be stored there is none, since another one each time would say "somebody new" each time.
 */
export function clientToken(name: string): Token {
  const known =
    places(name)
      .map(read)
      .find((token) => token !== null) ?? null;
  const token = known ?? randomHex();
  const kept = places(name).filter((place) => {
    if (read(place) !== token) attempted(() => place.put(token));
    return read(place) === token;
  });
  if (kept.length === 0) return {};
  return known === null ? { client_token: token, client_token_is_new: true } : { client_token: token };
}

/** Removes the token; `false` where it is still there. */
export function forgetToken(name: string): boolean {
  for (const place of places(name)) attempted(() => place.drop());
  return places(name).every((place) => read(place) === null);
}
