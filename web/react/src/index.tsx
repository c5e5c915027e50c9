/** A provider that loads the SDK in the browser, and a hook that identifies. */
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";
import type { Identification, IdentifyOptions, LoadOptions, SvcError } from "@svc/web";
import { calls, loadEarly, provided as provide, type Provided, type Shown } from "../../shared/visitor.js";

const ClientContext = createContext<Provided | null>(null);

/** Options of `load`, and the components that may identify. */
export interface SvcProviderProps extends LoadOptions {
  /** `false` collects nothing before the first `identify()`, such as until the visitor consents. Default `true`. */
  eager?: boolean | undefined;
  children?: ReactNode;
}

/** Loads the SDK once, in an effect: rendering on a server loads nothing. Options are those of the first render. */
export function SvcProvider({ eager = true, children, ...options }: SvcProviderProps): ReactNode {
  const [provided] = useState<Provided>(() => provide(options));
  useEffect(() => {
    if (eager) loadEarly(provided);
  }, [eager, provided]);
  return <ClientContext.Provider value={provided}>{children}</ClientContext.Provider>;
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

/** What {@link useVisitor} returns. */
export interface VisitorState {
  data: Identification | null;
  error: SvcError | null;
  isLoading: boolean;
  /** Identifies now; resolves with `null` where it failed, and `error` says why. */
  identify(options?: IdentifyOptions): Promise<Identification | null>;
  /**
   * Removes the visitor's token and cached responses, stores nothing any more, and empties `data`: for consent that is
   * withdrawn. Rejects with `SvcError` code `storage` where the browser keeps the token.
   */
  forget(): Promise<void>;
}

/** Identifies the visitor, at once or when `identify` is called, such as on submit. */
export function useVisitor({ immediate = true, ...about }: UseVisitorOptions = {}): VisitorState {
  const { accountId: account, action: does, tag: form, ...others } = about;
  // `null` is as `undefined`, so that going from one to the other is no new identification.
  const accountId = account ?? undefined, action = does ?? undefined, tag = form ?? undefined;
  const provided = useContext(ClientContext);
  if (provided === null) throw new Error("useVisitor() needs a <SvcProvider> around it.");
  const [state, setState] = useState<Shown>({ data: null, error: null, isLoading: immediate });
  const unknown = useRef(others); // refused by name in `identify()`
  const mounted = useRef(false);
  const called = useMemo(() => calls(provided, (next) => mounted.current && setState(next)), [provided]);
  const identify = useCallback(
    (options: IdentifyOptions = {}) => called.identify({ ...unknown.current, accountId, action, tag, ...options }),
    [called, accountId, action, tag],
  );
  const { forget } = called;
  useEffect(() => {
    mounted.current = true;
    if (immediate) void identify();
    return () => {
      mounted.current = false;
    };
  }, [identify, immediate]);
  return { ...state, identify, forget };
}
