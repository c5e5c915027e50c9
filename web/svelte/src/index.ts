/** A context that loads the SDK in the browser, and a store that identifies. */
import { getContext, onDestroy, onMount, setContext } from "svelte";
import { type Readable, writable } from "svelte/store";
import type { Identification, IdentifyOptions, LoadOptions, SvcError } from "@svc/web";
import { calls, loadEarly, provided, type Provided } from "../../shared/visitor.js";

const CLIENT = Symbol("svc");

/** Options of `load`. */
export interface SvcOptions extends LoadOptions {
  /** `false` collects nothing before the first `identify()`, such as until the visitor consents. Default `true`. */
  eager?: boolean | undefined;
}

/** For the components below: call it while one is made. Loads the SDK when it appears: rendering on a server loads nothing. */
export function provideSvc({ eager = true, ...options }: SvcOptions): void {
  const client = provided(options);
  setContext(CLIENT, client);
  if (eager) onMount(() => loadEarly(client));
}

/** Options of {@link useVisitor}. */
export interface UseVisitorOptions {
  /** As in `identify()`. */
  accountId?: string | null | undefined;
  /** As in `identify()`. */
  action?: string | null | undefined;
  /** As in `identify()`. */
  tag?: string | null | undefined;
  /** Whether to identify when the component appears; otherwise call `identify`. Default `true`. */
  immediate?: boolean | undefined;
}

/** The value of the store. */
export interface VisitorState {
  data: Identification | null;
  error: SvcError | null;
  isLoading: boolean;
}

/** What {@link useVisitor} returns: a store with two methods. */
export interface Visitor extends Readable<VisitorState> {
  /** Identifies now; resolves with `null` where it failed, and `error` says why. */
  identify(options?: IdentifyOptions): Promise<Identification | null>;
  /**
   * Removes the visitor's token and cached responses, stores nothing any more, and empties `data`: for consent that is
   * withdrawn. Rejects with `SvcError` code `storage` where the browser keeps the token.
   */
  forget(): Promise<void>;
}

/** Identifies the visitor, at once or when `identify` is called, such as on submit. Call it while a component is made. */
export function useVisitor({ immediate = true, ...about }: UseVisitorOptions = {}): Visitor {
  const client = getContext<Provided | undefined>(CLIENT);
  if (client === undefined) throw new Error("useVisitor() needs provideSvc({ ... }) in a component above.");
  const { subscribe, set } = writable<VisitorState>({ data: null, error: null, isLoading: immediate });
  let isThere = true;
  const called = calls(client, (next) => isThere && set(next));
  const identify = (more: IdentifyOptions = {}) => called.identify({ ...about, ...more });
  if (immediate) onMount(() => void identify());
  onDestroy(() => (isThere = false));
  return { subscribe, identify, forget: called.forget };
}
