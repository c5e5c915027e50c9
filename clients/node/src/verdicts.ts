import { createPublicKey, type KeyObject, verify } from "node:crypto";

import { type Action, CLOCK_SKEW_MS, type Problem, type Verdict, differences, hasForm } from "./checks.js";
import { unexpected } from "./errors.js";
import { fieldsOf, parsed } from "./json.js";

const KEY_BYTES = 32;
const TYPE = "svc-verdict+jwt";
/** For how long published keys are kept. */
const KEYS_VALID_MS = 3_600_000;
/** Between two readings because of a key that is not known: made-up ones cost the service no requests. */
const READ_AGAIN_MS = 60_000;

/** Whose verdict is accepted for which action. */
export interface ExpectedVerdict extends Action {
  organizationId: string;
  environment: Verdict["environment"];
}

/** The published keys of one organization. */
export class KeyRing {
  #keys = new Map<string, KeyObject>();
  #readAt = -Infinity;

  /** Whether the keys must be read before this token is checked. */
  mustBeRead(token: unknown): boolean {
    const kid = keyId(token);
    if (kid === null) return false;
    const age = performance.now() - this.#readAt;
    return age >= KEYS_VALID_MS || (!this.#keys.has(kid) && age >= READ_AGAIN_MS);
  }

  /**
   * Keep what was read in place of what is kept. Throws `ApiError` where it has not the form of keys; one of another kind is
   * left out.
   */
  put(keys: unknown): void {
    if (!Array.isArray(keys)) throw unexpected(200);
    const found = new Map<string, KeyObject>();
    for (const { kty, crv, kid, x } of keys.map((key) => fieldsOf(key) ?? {})) {
      if (![kty, crv, kid, x].every((one) => typeof one === "string")) throw unexpected(200);
      const isOurs = kty === "OKP" && crv === "Ed25519" && decoded(x as string)?.length === KEY_BYTES;
      if (isOurs) found.set(kid as string, createPublicKey({ key: { kty, crv, x: x as string }, format: "jwk" }));
    }
    this.#keys = found;
    this.#readAt = performance.now();
  }

  /** The claims and every problem but that of the first use; no claims where the signature does not hold. */
  check(token: unknown, expected: ExpectedVerdict): { verdict: Verdict | null; problems: Problem[] } {
    const verdict = this.#verified(token);
    const isOurs = verdict?.aud === expected.organizationId && verdict.environment === expected.environment;
    if (verdict === null || !isOurs) return { verdict: null, problems: ["invalid"] };
    const now = expected.now ?? Date.now();
    const isAlive = verdict.iat * 1_000 - CLOCK_SKEW_MS < now && now < verdict.exp * 1_000;
    return { verdict, problems: isAlive ? differences(verdict, expected) : ["too_old"] };
  }

  #verified(token: unknown): Verdict | null {
    const key = this.#keys.get(keyId(token) ?? "");
    if (key === undefined) return null;
    const [header, claims, signature] = (token as string).split(".") as [string, string, string];
    const signed = decoded(signature);
    const said = decoded(claims);
    if (signed === null || said === null) return null;
    const isSigned = verify(null, Buffer.from(`${header}.${claims}`), key, signed);
    if (!isSigned) return null;
    try {
      const found = parsed(said);
      return hasForm(found, ["aud", "jti", "environment"], ["iat", "exp"]) ? (found as Verdict) : null;
    } catch {
      return null;
    }
  }
}

/** The key that a token says it is signed by; `null` for what is no verdict. */
function keyId(token: unknown): string | null {
  if (typeof token !== "string" || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return null;
  try {
    const text = decoded(token.split(".")[0]!);
    const header = text === null ? null : fieldsOf(parsed(text));
    const isVerdict = header?.["alg"] === "EdDSA" && header["typ"] === TYPE && !("crit" in header);
    return isVerdict && typeof header["kid"] === "string" ? header["kid"] : null;
  } catch {
    return null;
  }
}

/**
 * Bytes from base64url in its one spelling, without padding (RFC 7515, section 2); `null` for another text of the same
 * bytes: two texts of one verdict would pass for two.
 */
function decoded(text: string): Buffer | null {
  const content = Buffer.from(text, "base64url");
  return content.toString("base64url") === text ? content : null;
}
