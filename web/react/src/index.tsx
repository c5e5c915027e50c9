/** A provider that loads the SDK in the browser, and a hook that identifies. */
import { createContext, type ReactNode, useCallback, useContext, useEffect, useRef, useState } from "react";
import {
  forget as forgetStored,
  type Identification,
  type IdentifyOptions,
  load,
  type LoadOptions,
  type SvcClient,
  SvcError,
} from "@svc/web";

interface Provided {
  /** The client, loaded at the first call. */
  get(): SvcClient;
  forget(): Promise<void>;
}

const ClientContext = createContext<Provided | null>(null);

/** Options of `load`, and the components that may identify. */
export interface SvcProviderProps extends LoadOptions {
  /** `false` collects nothing before the first `identify()`, such as until the visitor consents. Default `true`. */
  eager?: boolean | undefined;
  children?: ReactNode;
}

/** Loads the SDK once, in an effect: rendering on a server loads nothing. Options are those of the first render. */
export function SvcProvider({ eager = true, children, ...options }: SvcProviderProps): ReactNode {
  const first = useRef<LoadOptions>(options);
  const client = useRef<SvcClient | null>(null);
  const [provided] = useState<Provided>(() => ({
    get: () => (client.current ??= load(first.current)),
    forget: async () => {
      if (client.current) return client.current.forget();
      // Nothing is read to forget: a client that is loaded later stores nothing, as one that has forgotten.
      const { apiKey, storage, cache } = first.current;
      first.current = { ...first.current, storage: false, cache: false };
      return forgetStored({ apiKey, storage, cache });
    },
  }));
  useEffect(() => {
    if (!eager) return;
    try {
      provided.get();
    } catch {
      // Wrong options: `identify()` says so to whoever calls it.
    }
  }, [eager, provided]);
  return <ClientContext.Provider value={provided}>{children}</ClientContext.Provider>;
}

/** Options of {@link useVisitor}. */
export interface UseVisitorOptions {
  /** As in `identify()`. */
  accountId?: string | undefined;
  /** As in `identify()`. */
  action?: string | undefined;
  /** As in `identify()`. */
  tag?: string | undefined;
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

type Shown = Omit<VisitorState, "identify" | "forget">;

/** Identifies the visitor, at once or when `identify` is called, such as on submit. */
export function useVisitor({ accountId, action, tag, immediate = true, ...others }: UseVisitorOptions = {}): VisitorState {
  const provided = useContext(ClientContext);
  if (provided === null) throw new Error("useVisitor() needs a <SvcProvider> around it.");
  const [state, setState] = useState<Shown>({ data: null, error: null, isLoading: immediate });
  const unknown = useRef(others); // refused by name in `identify()`
  const mounted = useRef(false);
  const latest = useRef(0);
  /** What is shown from now on belongs to the latest call: an older one that ends later shows nothing. */
  const turn = useCallback((): ((next: Shown) => void) => {
    const own = ++latest.current;
    return (next) => {
      if (mounted.current && own === latest.current) setState(next);
    };
  }, []);
  const identify = useCallback(
    async (options: IdentifyOptions = {}): Promise<Identification | null> => {
      const show = turn();
      show({ data: null, error: null, isLoading: true });
      try {
        const data = await provided.get().identify({ ...unknown.current, accountId, action, tag, ...options });
        show({ data, error: null, isLoading: false });
        return data;
      } catch (problem) {
        show({ data: null, error: problem as SvcError, isLoading: false });
        return null;
      }
    },
    [provided, accountId, action, tag, turn],
  );
  const forget = useCallback((): Promise<void> => {
    turn()({ data: null, error: null, isLoading: false });
    return provided.forget();
  }, [provided, turn]);
  useEffect(() => {
    mounted.current = true;
    if (immediate) void identify();
    return () => {
      mounted.current = false;
    };
  }, [identify, immediate]);
  return { ...state, identify, forget };
}
