import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";

/** What is known of a request: a `fetch` that does not tell leaves both `false`. */
export interface Departure {
  isTold: boolean;
  wasSent: boolean;
}

const attempts = new AsyncLocalStorage<Departure>();
const requests = new WeakMap<object, Departure>();

/** Run `send`, which fetches once; `departure` then says whether the request reached a connection. */
export function noting<Result>(departure: Departure, send: () => Promise<Result>): Promise<Result> {
  return attempts.run(departure, send);
}

// What undici tells, the `fetch` of Node.js: HTTP/2 has told of its headers only since version 7, of its bodies before.
subscribe("undici:request:create", (message) => {
  const departure = attempts.getStore();
  if (departure === undefined) return;
  departure.isTold = true;
  requests.set((message as { request: object }).request, departure);
});
for (const channel of ["undici:client:sendHeaders", "undici:request:bodySent"]) {
  subscribe(channel, (message) => {
    const departure = requests.get((message as { request: object }).request);
    if (departure !== undefined) departure.wasSent = true;
  });
}
