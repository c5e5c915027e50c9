// What a server passes on of a visitor's request, when it identifies with a secret or proxy key.

const MAX_BYTES = 2_048;

/** Headers of a request, as `node:http`, `fetch` and frameworks have them. */
export type RequestHeaders = Headers | Record<string, string | string[] | undefined>;

/**
 * The value of `x-svc-visitor-headers` (`visitorHeaders` of `identify`), from the headers of a visitor's request, in any
 * case: its `accept-language`, `sec-ch-ua...` and `sec-fetch-...`. A header with which it would be longer than the
 * service takes is left out; no browser sends such.
 *
 * Without it the service cannot tell a browser from a program that copied a report.
 */
export function visitorHeaders(headers: RequestHeaders): string {
  const found: Record<string, string> = {};
  const entries = areHeaders(headers) ? [...headers] : Object.entries(headers);
  for (const [name, value] of entries) {
    const lowered = name.toLowerCase();
    if (!/^(?:accept-language$|sec-ch-ua|sec-fetch-)/.test(lowered) || value === undefined) continue;
    const one = typeof value === "string" ? value : value.join(", ");
    if (text({ ...found, [lowered]: one }).length <= MAX_BYTES) found[lowered] = one;
  }
  return text(found);
}

/** Whether these are `Headers`: of this process, or of another implementation of `fetch`, such as that of undici. */
export function areHeaders(headers: RequestHeaders): headers is Headers {
  return typeof headers.get === "function";
}

/** In ASCII, as headers are. */
function text(headers: Record<string, string>): string {
  const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(headers).replace(/[^\x20-\x7e]/g, escaped);
}
