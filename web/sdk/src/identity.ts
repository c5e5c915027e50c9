/**
 * Who this browser is: its token, and a key that it can sign with and nobody can take out of it. Token and key belong
 * together: they are made together, and who loses the key gets another token.
 *
 * `svc/identify/keys/proof.py` checks the signatures.
 */
import { pause } from "./deadline.js";
import { now, toJson } from "./json.js";
import type { Subject } from "./options.js";
import { clientToken, isNoted, keepToken, noteKey, randomHex, storedToken, timeOrderedId, type Token } from "./token.js";

export interface Identity {
  token: Token;
  /** None on plain HTTP, in browsers that keep none, and where it was not to be had in time. */
  key: Pair | undefined;
  /** What token and key are in the place of, until the service has a report that both keys signed. */
  before?: Pair | undefined;
  tookMs: number;
}

/** A token and its key. */
interface Pair {
  token: string;
  /** The public key: an uncompressed point, in base64url. */
  point: string;
  secret: CryptoKey;
}

/** What is kept in IndexedDB. */
interface Kept extends Pair {
  /** Those that take their place once the service has a report that both keys signed. Older SDKs go on with the former. */
  next?: Pair;
}

/** What removing a key may take. */
const LONGEST_MS = 5000;
const OBJECTS = "keys";
const CURVE = { name: "ECDSA", namedCurve: "P-256" };
const SIGNED = { name: "ECDSA", hash: "SHA-256" };
const CONTEXT = "svc-proof 2";

/**
 * Looks the key up, or makes one. Never rejects, and ends when it is `late`: without a key the visit is unproven, and its
 * token goes alone; but a token that has a key is worthless without, and stays out.
 */
export async function openIdentity(name: string, late: Promise<unknown>, isForgotten: () => boolean): Promise<Identity> {
  const began = performance.now();
  const made = randomHex();
  const proposed = (): string => (!isNoted(name) && storedToken(name).sure) || made;
  const kept = await Promise.race([keptOrMade(name, proposed).catch(() => undefined), late.then(() => undefined)]);
  const tookMs = performance.now() - began;
  if (isForgotten()) return { token: {}, key: undefined, tookMs };
  // As it is now: another tab that was opened at the same time may have stored its token and key meanwhile.
  if (!kept) return { token: isNoted(name) ? {} : clientToken(name, made), key: undefined, tookMs };
  const { next, ...own } = kept;
  const key = next ?? own;
  keepToken(name, key.token);
  noteKey(name);
  const token: Token = { client_token: key.token };
  if (key.token === made || next) token.client_token_is_new = true;
  return { token, key, before: next && own, tookMs };
}

/** Begins again where the database has no store: its upgrade was cut short, or another script made it. */
async function keptOrMade(name: string, token: () => string): Promise<Kept> {
  try {
    return await keptIn(name, token);
  } catch (problem) {
    if ((problem as DOMException).name !== "NotFoundError") throw problem;
    await forgetKey(name);
    return keptIn(name, token);
  }
}

/** `token`: whose key is made where there is none; asked for late, since reports may have gone with it meanwhile. */
async function keptIn(name: string, token: () => string): Promise<Kept> {
  const { subtle } = crypto; // secure contexts have it
  const database = await opened(name, subtle);
  try {
    const known = await inStore(database);
    if (known) return known;
    const made = await madePair(subtle, token());
    return (await inStore(database, (kept) => kept ?? made))!;
  } finally {
    database.close(); // pages with an open one may be kept out of the back/forward cache
  }
}

/**
 * What a response changes: the service has a report that both keys signed, or asks for a new token and key (`isRenewing`). They are
 * stored before they are sent: whatever is lost then, the next report has both again.
 */
export async function settle(
  name: string,
  { key, before }: Identity,
  isRenewing: boolean,
  isForgotten: () => boolean,
): Promise<void> {
  if (!key || !(before || isRenewing)) return;
  const { subtle } = crypto;
  const next = isRenewing && (await madePair(subtle, randomHex()));
  if (isForgotten()) return;
  const database = await opened(name, subtle);
  try {
    const kept = await inStore(database, (known) => {
      const own: Kept | undefined = before && known?.next?.token === key.token ? known.next : known;
      // Of tabs that are asked at the same time, the first does it for all.
      return next && own?.token === key.token && !own.next ? { ...own, next } : own;
    });
    if (kept && !isForgotten()) keepToken(name, (kept.next ?? kept).token);
  } finally {
    database.close();
  }
}

async function madePair(subtle: SubtleCrypto, token: string): Promise<Pair> {
  const { privateKey, publicKey } = await subtle.generateKey(CURVE, false, ["sign", "verify"]);
  return { token, secret: privateKey, point: base64url(await subtle.exportKey("raw", publicKey)) };
}

function opened(name: string, subtle: SubtleCrypto | undefined): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    if (!subtle) throw new Error("no key here");
    const request = indexedDB.open(name);
    request.onupgradeneeded = () => request.result.createObjectStore(OBJECTS);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** What is kept, once it was changed, in one transaction: of tabs that do that at the same time, one comes first. */
function inStore(database: IDBDatabase, change?: (kept?: Kept) => Kept | undefined): Promise<Kept | undefined> {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(OBJECTS, change ? "readwrite" : "readonly");
    const store = transaction.objectStore(OBJECTS);
    const request: IDBRequest<Kept | undefined> = store.get(0);
    let kept: Kept | undefined;
    request.onsuccess = () => {
      kept = change ? change(request.result) : request.result;
      try {
        if (kept !== request.result) store.put(kept, 0);
      } catch {
        transaction.abort(); // some private windows keep no keys
      }
    };
    transaction.oncomplete = () => resolve(kept);
    transaction.onabort = () => reject(transaction.error);
  });
}

/** Removes the key; `false` where the browser refuses or hangs. Where another tab has it open, it goes when that is done. */
export function forgetKey(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    try {
      const request = indexedDB.deleteDatabase(name);
      request.onsuccess = request.onblocked = () => resolve(true);
      request.onerror = () => resolve(false);
      setTimeout(() => resolve(false), LONGEST_MS);
    } catch {
      resolve(true); // none was kept
    }
  });
}

/**
 * The report of this moment as text, signed where there is a key. What is signed is this very text without its last
 * member, after the context, the origin and what the identification is about; so nobody may reserialize it, or send it
 * for another account.
 */
export async function sealed(
  signals: object,
  { token, key, before }: Identity,
  subject: Subject,
  limitMs: number,
): Promise<{ signals: string; isSigned: boolean }> {
  const dated = { ...signals, nonce: timeOrderedId(), collected_at: now() };
  if (!key) return { signals: toJson({ ...dated, ...token })!, isSigned: false };
  const renewed = before && { client_token_before: before.token, client_key_before: before.point };
  const text = toJson({ ...dated, ...token, client_key: key.point, ...renewed })!;
  const sign = async (): Promise<string> => {
    const former = before ? await signed("client_proof_before", before, text, subject) : text;
    return signed("client_proof", key, former, subject);
  };
  const late = pause(limitMs).then(() => undefined);
  const proven = await Promise.race([sign().catch(() => undefined), late]);
  return { signals: proven ?? toJson(dated)!, isSigned: proven !== undefined };
}

/** The text with a proof of itself as its last member. */
async function signed(name: string, { secret }: Pair, text: string, subject: Subject): Promise<string> {
  const page = location.origin === "null" ? self.origin : location.origin;
  const signature = await crypto.subtle.sign(SIGNED, secret, new TextEncoder().encode(signedText(page, subject, text)));
  return `${text.slice(0, -1)},"${name}":"${base64url(signature)}"}`;
}

/** The lines that are signed: what for, where, about whom and what, and the report. */
export const signedText = (page: string, { account_id, action, tag }: Subject, signals: string): string =>
  [CONTEXT, page, toJson([account_id, action, tag]), signals].join("\n");

function base64url(bytes: ArrayBuffer): string {
  let text = "";
  for (const byte of new Uint8Array(bytes)) text += String.fromCharCode(byte);
  return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}
