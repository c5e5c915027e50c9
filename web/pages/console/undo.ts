/** What was done, and the way back. */
import type { Api } from "./api.js";
import type { Entry } from "./wire.js";

export type Back = () => Promise<void>;

/** The way back through these steps, newest first. A step that fails stays, so that asking again goes on with it. */
export const backThrough = (done: Back[]): Back => async () => {
  while (done.length > 0) {
    await done.at(-1)!();
    done.pop();
  }
};

/** Does something in steps, each of which adds its way back to `done`; where one fails, the others are taken back. */
export async function inSteps(act: (done: Back[]) => Promise<void>): Promise<Back> {
  const done: Back[] = [], back = backThrough(done);
  try {
    await act(done);
  } catch (error) {
    await back();
    throw error;
  }
  return back;
}

/** Adds entries to a list, as they were: but those that have expired meanwhile. */
export async function addEntries(api: Api, list: string, entries: Pick<Entry, "value" | "note" | "expires_at">[]): Promise<void> {
  const living = entries.filter(({ expires_at }) => !expires_at || Date.parse(expires_at) > Date.now());
  if (living.length > 0) await api.manage("POST", `lists/${list}/entries`, { entries: living.map(({ value, note, expires_at }) => ({ value, note, expires_at })) });
}

export const removeEntries = (api: Api, list: string, values: string[]): Promise<void> => api.manage("DELETE", `lists/${list}/entries`, { values });
