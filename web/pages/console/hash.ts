/** Where the console is: `#/SCREEN/ID?name=value`. Any other fragment is the token of a sign-in link. */

export type Query = Record<string, string>;

export interface Place {
  screen: string;
  id: string;
  query: Query;
}

export const START: Place = { screen: "live", id: "", query: {} };

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The place that a fragment names; the start where it names none. Empty values of the query are left out. */
export function read(hash: string): Place {
  if (!hash.startsWith("#/")) return START;
  const [path = "", search = ""] = hash.slice(2).split(/\?(.*)/s);
  const [screen = "", ...rest] = path.split("/");
  const query: Query = {};
  for (const [name, value] of new URLSearchParams(search)) if (value !== "") query[name] = value;
  return { screen: screen || START.screen, id: decoded(rest.join("/")), query };
}

/** The token in a fragment, if there is one. */
export function tokenIn(hash: string): string | undefined {
  return hash.length > 1 && !hash.startsWith("#/") ? decoded(hash.slice(1)) : undefined;
}

/** The fragment of a place. What is empty or undefined stays out of the query. */
export function write(screen: string, id = "", query: Record<string, string | undefined> = {}): string {
  const sent = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) sent.set(name, value);
  const search = sent.toString();
  return `#/${screen}${id && `/${encodeURIComponent(id)}`}${search && `?${search}`}`;
}
