// JSON as the service writes it: strictly read, so that every library reads the same of the same bytes.

/** Levels of lists and objects. */
const DEEPEST = 100;
/** Half of a surrogate pair. */
const HALF = /\p{Surrogate}/u;

/**
 * The value of a text of JSON in UTF-8; of two fields of one name, the last one. Throws for anything else, such as a byte
 * order mark, half of a surrogate pair, and what is nested deeper than 100 levels.
 */
export function parsed(content: Uint8Array): unknown {
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  const value: unknown = JSON.parse(text);
  let level = [value];
  for (let depth = 0; depth < DEEPEST && level.length > 0; depth += 1) level = level.flatMap(inside);
  if (level.some((one) => typeof one === "object" && one !== null)) throw new SyntaxError("nested too deep");
  return value;
}

/** What is in a list or an object. Throws for a text that is none. */
function inside(value: unknown): unknown[] {
  if (typeof value === "string" && HALF.test(value)) throw new SyntaxError("half of a surrogate pair");
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value as unknown[];
  if (Object.keys(value).some((name) => HALF.test(name))) throw new SyntaxError("half of a surrogate pair");
  return Object.values(value);
}

/** The fields of an object; `null` for any other value. */
export function fieldsOf(value: unknown): Record<string, unknown> | null {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? Object.assign(Object.create(null), value) as Record<string, unknown> : null;
}
