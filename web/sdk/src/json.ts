/** What leaves the page as text, whatever the page's own scripts did to its built-in objects. */

/**
 * JSON as `JSON.stringify` writes it, but for `toJSON`, which it does not call: pages with old libraries have one on
 * `Array.prototype` that makes texts of lists. `undefined` for what JSON has no word for.
 */
export function toJson(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const parts: string[] = [];
  if (Array.isArray(value)) {
    for (const one of value as unknown[]) parts.push(toJson(one) ?? "null");
    return `[${parts.join()}]`;
  }
  for (const name of Object.keys(value)) {
    const text = toJson((value as Record<string, unknown>)[name]);
    if (text !== undefined) parts.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${parts.join()}}`;
}

/** The object's own members: what another script puts on `Object.prototype` is no option of anybody's. */
export const own = <T extends object>(given: T): T => Object.assign(Object.create(null) as object, given) as T;

/** Milliseconds since 1970, also where a library's `Date.now` returns a date. */
export const now = (): number => Number(Date.now());
