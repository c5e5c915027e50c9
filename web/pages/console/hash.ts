/** Where the console is: `#/SCREEN/ID?name=value`. `#openid=WORD` says why the provider let nobody in. Any
 * other fragment is the token of a sign-in link or an invitation. */

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

const OPENID = "#openid=";
/** How tokens of invitations begin. */
export const INVITATION = "svc_ci_";

/** The token in a fragment, if there is one: of a link, or of an invitation. */
export function tokenIn(hash: string): string | undefined {
  return hash.length > 1 && !hash.startsWith("#/") && !hash.startsWith(OPENID) ? decoded(hash.slice(1)) : undefined;
}

const REFUSED: Record<string, string> = {
  expired: "You were away for more than ten minutes, or began in another browser. Sign in again.",
  elsewhere: "You come from another site, which cannot sign you in here. Sign in on this page.",
  no_role: "Your account has no role here. Ask an admin of your organization for one.",
  unavailable: "The provider does not respond as it should. Try again in a minute, or sign in in another way.",
};

/** What to say to somebody who comes back from the OpenID provider without a session. */
export function refusalIn(hash: string): string | undefined {
  if (!hash.startsWith(OPENID)) return undefined;
  return REFUSED[hash.slice(OPENID.length)] ?? "Sign-in was refused. The operator of this service finds the reason in its log.";
}

/** The fragment of a place. What is empty or undefined stays out of the query. */
export function write(screen: string, id = "", query: Record<string, string | undefined> = {}): string {
  const sent = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) sent.set(name, value);
  const search = sent.toString();
  return `#/${screen}${id && `/${encodeURIComponent(id)}`}${search && `?${search}`}`;
}
