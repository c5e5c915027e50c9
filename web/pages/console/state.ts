/** What every screen shares: the session, the API, the place, and how a request becomes something to show. */
import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import type { Texts } from "../parts/wire.js";
import { type Api, pass } from "./api.js";
import { type Place, write } from "./hash.js";
import type { Page, Session } from "./wire.js";

export interface Console {
  api: Api;
  session: Session;
  texts: Texts;
  place: Place;
  environment: string;
  /** Say in passing that something was done. */
  notify: (text: string) => void;
}

export const Shared = createContext<Console>(null as unknown as Console);

export const useConsole = (): Console => useContext(Shared);

/** Whose a session is: the same for two sessions of one member or one key. */
export const ownerOf = ({ member, key }: Session): string | undefined => member?.id ?? key?.id;

export const nameOf = ({ member, key }: Session): string | undefined => member?.name ?? key?.name;

/** Such as `Ada, analyst` or `robot …x7Qa, admin`; `joint` joins the parts of a key's name. */
export const who = ({ member, key, role }: Session, joint = ""): string =>
  member ? `${member.name}, ${role}` : `${key?.name} …${joint}${key?.last4}, ${role}`;

export const useAdmin = (): boolean => useConsole().session.role === "admin";

/** Whether keys, webhooks and lists may be made and changed. */
export const useDeveloper = (): boolean => ["admin", "developer"].includes(useConsole().session.role);

/** Whether labels, reviews, notes and entries of lists may be written: by everyone but a viewer. */
export const useMayJudge = (): boolean => useConsole().session.role !== "viewer";

/** Whose rules decide in an environment. */
export const audienceOf = (environment: string): "live" | "test" => (environment === "production" ? "live" : "test");

/** Makes links that keep the environment. */
export function useLink(): (screen: string, id?: string, query?: Record<string, string | undefined>) => string {
  const { environment } = useConsole();
  return (screen, id, query) => write(screen, id, { environment, ...query });
}

/** Changes the query of this place: a new entry of the history, so that Back undoes it. */
export function useQuery(): (changes: Record<string, string | undefined>) => void {
  const { place } = useConsole();
  const link = useLink();
  return (changes) => {
    location.hash = link(place.screen, place.id, { ...place.query, ...changes });
  };
}

export interface Loaded<T> {
  value?: T;
  error?: unknown;
  busy: boolean;
  reload: () => void;
  set: (value: T) => void;
}

const MAX_WAIT = 3;

/** Settles once every component that was left has written what it had to, or has had its time for it. */
let written: Promise<unknown> = Promise.resolve();

/**
 * What a component writes: its `last` write, which never fails, and `fail`, which takes the error of one. Where the component
 * is left meanwhile, whatever is loaded next waits for `last`, so that it shows what was written, and the error is said in passing.
 */
export function useWriting() {
  const notify = useContext(Shared)?.notify;
  const [error, setError] = useState<unknown>();
  const writing = useRef({ last: Promise.resolve(), fail: setError as (error: unknown) => void }).current;
  useEffect(() => () => {
    writing.fail = (caught) => notify?.(`Not saved: ${(caught as Error).message}`);
    // Parts of a screen are left together: most of them write nothing.
    written = Promise.race([written.then(() => writing.last), pass(MAX_WAIT)]);
  }, []);
  return { writing, error, setError };
}

/** The values, or lists of texts, that differ from what was read: the rest stays as it is by now, also where a colleague has changed it. */
export const changed = (now: object, before: object) =>
  Object.fromEntries(Object.entries(now).filter(([name, value]) => `${value ?? ""}` !== `${before[name as never] ?? ""}`));

/** Loads again whenever `deps` change; what was loaded before stays until then. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, deps: unknown[]): Loaded<T> {
  const [state, setState] = useState<{ value?: T; error?: unknown; busy: boolean }>({ busy: true });
  // Counted from what it is by then: two writes that end after each other ask twice, whatever was drawn when they began.
  const [round, setRound] = useState(0);
  useEffect(() => {
    const control = new AbortController();
    setState(({ value }) => ({ ...(value !== undefined && { value }), busy: true }));
    written.then(() => load(control.signal)).then(
      (value) => control.signal.aborted || setState({ value, busy: false }),
      (error: unknown) => control.signal.aborted || setState({ error, busy: false }),
    );
    return () => control.abort();
  }, [...deps, round]);
  return { ...state, reload: () => setRound((before) => before + 1), set: (value) => setState({ value, busy: false }) };
}

interface Pages<T> {
  rows: T[];
  cursor: string | undefined;
}

/** How many pages the screen at an address shows, for when it is read again, or returned to. */
export const kept = new Map<string, number>();
const MAX_PAGES = 10;

/** The first page, and `more` for each that follows. `read` fetches the page behind a cursor. */
export function usePages<A extends Page, T>(
  read: (cursor: string | undefined, signal?: AbortSignal) => Promise<A>,
  rowsOf: (answer: A) => T[],
  deps: unknown[],
): { loaded: Loaded<Pages<T>>; more: () => Promise<void>; busy: boolean; error: unknown } {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const page = (answer: A): Pages<T> => ({ rows: rowsOf(answer), cursor: answer.next_cursor });
  const joined = (shown: Pages<T>, next: A): Pages<T> => ({ rows: [...shown.rows, ...rowsOf(next)], cursor: next.next_cursor });
  // Aborts when another list is asked for, which no further page of this one may join.
  const asked = useRef<AbortSignal>();
  const loaded = useLoad(async (signal) => {
    asked.current = signal;
    setBusy(false);
    setError(undefined);
    const before = kept.get(location.hash) ?? 1;
    let shown = page(await read(undefined, signal));
    for (let pages = 1; pages < Math.min(before, MAX_PAGES) && shown.cursor !== undefined; pages += 1) shown = joined(shown, await read(shown.cursor, signal));
    return shown;
  }, deps);
  const more = async () => {
    const { value } = loaded, signal = asked.current;
    if (value?.cursor === undefined) return;
    setBusy(true);
    setError(undefined);
    try {
      const next = await read(value.cursor, signal);
      if (signal?.aborted) return;
      kept.set(location.hash, (kept.get(location.hash) ?? 1) + 1);
      loaded.set(joined(value, next));
    } catch (caught) {
      if (signal?.aborted) return;
      setError(caught);
    }
    setBusy(false);
  };
  return { loaded, more, busy: busy || loaded.busy, error };
}

/** What a button asks for: the answer or the error, for as long as what it is `about` is what is shown. */
export function useAnswer<T, A extends unknown[]>(about: unknown, ask: (...args: A) => Promise<T>) {
  const now = JSON.stringify(about);
  const [{ of, value, error, busy = false }, set] = useState<{ of?: string; value?: T; error?: unknown; busy?: boolean }>({});
  const run = (...args: A) => {
    set((before) => ({ ...before, error: undefined, busy: true }));
    ask(...args).then((answer) => set({ of: now, value: answer }), (caught: unknown) => set({ of: now, error: caught }));
  };
  return { busy, run, ...(of === now && { value, error }) };
}

/** Something that a button writes: whether it is under way, and the error with which it ended. */
export function useAction<A extends unknown[]>(act: (...args: A) => Promise<unknown>) {
  const [busy, setBusy] = useState(false);
  const { writing, error, setError } = useWriting();
  const run = (...args: A): Promise<unknown> => {
    setBusy(true);
    setError(undefined);
    return (writing.last = act(...args).catch((caught) => writing.fail(caught)).then(() => setBusy(false)));
  };
  return { busy, error, run, setError };
}
