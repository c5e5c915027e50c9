/** What an operation asks of the service, as a value: the generated methods make it, and the client sends it. */
export interface Call {
  method: string;
  /** Below `/api/v1`. */
  path: string;
  /** What is `undefined` is not sent; the same holds for `headers`. */
  query?: Record<string, string | number | boolean | undefined>;
  headers?: Record<string, string | undefined>;
  body?: object;
  /** Whether sending it twice does no more than sending it once. */
  isRepeatable?: boolean;
}

/** An identifier as a part of a path. Throws `TypeError` for one that would lead to another path. */
export function segment(value: string): string {
  if (typeof value !== "string" || value === "" || value === "." || value === "..") {
    throw new TypeError(`${JSON.stringify(value)} is not an identifier`);
  }
  return encodeURIComponent(value);
}
