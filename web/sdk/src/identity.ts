/**
 * Who this browser is: its token, and a key that it can sign with and nobody can take out of it. Token and key belong
 * together: they are made together, and who loses the key gets another token.
 *
 * `svc/domain/access/proof.py` checks the signatures.
 */
import { pause } from "./deadline.js";
import { now, toJson } from "./json.js";
import type { Subject } from "./options.js";
import { clientToken, isNoted, keepToken, noteKey, randomHex, storedToken, timeOrderedId, type Token } from "./token.js";

export interface Identity {
  token: Token;
  /** None on plain HTTP, in browsers that keep none, and where it was not to be had in time. */
  key: Key | undefined;
  tookMs: number;
}

interface Key {
  /** The public key: an uncompressed point, in base64url. */
  point: string;
  secret: CryptoKey;
}

/** What is kept in IndexedDB. */
interface Kept extends Key {
  token: string;
}

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
  const { known, sure } = storedToken(name);
  const hadKey = isNoted(name);
  const made = randomHex();
  const proposed = (!hadKey && sure) || made;
  const kept = await Promise.race([keptOrMade(name, proposed).catch(() => undefined), late.then(() => undefined)]);
  const tookMs = performance.now() - began;
  if (isForgotten()) return { token: {}, key: undefined, tookMs };
  if (!kept) return { token: hadKey ? {} : clientToken(name, known, made), key: undefined, tookMs };
  keepToken(name, kept.token);
  noteKey(name);
  const token: Token = { client_token: kept.token };
  if (kept.token === made) token.client_token_is_new = true;
  return { token, key: kept, tookMs };
}

/** Begins again where the database has no store: its upgrade was cut short, or another script made it. */
async function keptOrMade(name: string, token: string): Promise<Kept> {
  try {
    return await keptIn(name, token);
  } catch (problem) {
    if ((problem as DOMException).name !== "NotFoundError") throw problem;
    await forgetKey(name);
    return keptIn(name, token);
  }
}

async function keptIn(name: string, token: string): Promise<Kept> {
  const { subtle } = crypto; // secure contexts have it
  const database = await opened(name, subtle);
  try {
    return (await inStore(database)) ?? (await inStore(database, await madeKey(subtle, token)))!;
  } finally {
    database.close(); // pages with an open one may be kept out of the back/forward cache
  }
}

async function madeKey(subtle: SubtleCrypto, token: string): Promise<Kept> {
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

/** What is kept, and else `made`, in one transaction: of tabs that make one at the same time, the first does it for all. */
function inStore(database: IDBDatabase, made?: Kept): Promise<Kept | undefined> {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(OBJECTS, made ? "readwrite" : "readonly");
    const request: IDBRequest<Kept | undefined> = transaction.objectStore(OBJECTS).get(0);
    request.onsuccess = () => {
      try {
        if (made && !request.result) transaction.objectStore(OBJECTS).put(made, 0);
      } catch {
        transaction.abort(); // some private windows keep no keys
      }
    };
    transaction.oncomplete = () => resolve(request.result ?? made);
    transaction.onabort = () => reject(transaction.error);
  });
}

/** Removes the key; `false` where the browser refuses. Where another tab has it open, it goes when that is done. */
export function forgetKey(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    try {
      const request = indexedDB.deleteDatabase(name);
      request.onsuccess = request.onblocked = () => resolve(true);
      request.onerror = () => resolve(false);
    } catch {
      resolve(true); // none was kept
    }
  });
}

/**
 * The report of this moment as text, signed where there is a key. What is signed is this very text without its last
 * member, after the context, the origin and what the identification is about; so nobody may write it anew, or send it
 * for another account.
 */
export async function sealed(
  signals: object,
  { token, key }: Identity,
  subject: Subject,
  limitMs: number,
): Promise<string> {
  const dated = { ...signals, nonce: timeOrderedId(), collected_at: now() };
  if (!key) return toJson({ ...dated, ...token })!;
  const text = toJson({ ...dated, ...token, client_key: key.point })!;
  const page = location.origin === "null" ? self.origin : location.origin;
  const bytes = new TextEncoder().encode(signedText(page, subject, text));
  const signature = await Promise.race([
    crypto.subtle.sign(SIGNED, key.secret, bytes).catch(() => undefined),
    pause(limitMs).then(() => undefined),
  ]);
  return signature ? `${text.slice(0, -1)},"client_proof":"${base64url(signature)}"}` : toJson(dated)!;
}

/** The lines that are signed: what for, where, about whom and what, and the report. */
export const signedText = (page: string, { account_id, action, tag }: Subject, signals: string): string =>
  [CONTEXT, page, toJson([account_id, action, tag]), signals].join("\n");

function base64url(bytes: ArrayBuffer): string {
  let text = "";
  for (const byte of new Uint8Array(bytes)) text += String.fromCharCode(byte);
  return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}
