/** Lists that are read page by page. */
import { useRef, useState } from "preact/hooks";
import { type Loaded, useLoad } from "./state.js";
import type { Page } from "./wire.js";

interface Pages<T> {
  rows: T[];
  cursor: string | undefined;
}

/** The first page, and `more` for each that follows. `read` fetches the page behind a cursor. */
export function usePages<A extends Page, T>(
  read: (cursor: string | undefined, signal?: AbortSignal) => Promise<A>,
  rowsOf: (answer: A) => T[],
  deps: unknown[],
): { loaded: Loaded<Pages<T>>; more: () => Promise<void>; busy: boolean; error: unknown } {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const page = (answer: A): Pages<T> => ({ rows: rowsOf(answer), cursor: answer.next_cursor });
  // Aborts when another list is asked for, which no further page of this one may join.
  const asked = useRef<AbortSignal>();
  const loaded = useLoad(async (signal) => {
    asked.current = signal;
    setBusy(false);
    setError(undefined);
    return page(await read(undefined, signal));
  }, deps);
  const more = async () => {
    const { value } = loaded, signal = asked.current;
    if (value?.cursor === undefined) return;
    setBusy(true);
    setError(undefined);
    try {
      const next = page(await read(value.cursor, signal));
      if (signal?.aborted) return;
      loaded.set({ rows: [...value.rows, ...next.rows], cursor: next.cursor });
    } catch (caught) {
      if (signal?.aborted) return;
      setError(caught);
    }
    setBusy(false);
  };
  return { loaded, more, busy: busy || loaded.busy, error };
}
