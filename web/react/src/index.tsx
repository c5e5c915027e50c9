/** A provider that loads the SDK in the browser, and a hook that identifies. */
import { createContext, type ReactNode, useCallback, useContext, useEffect, useRef, useState } from "react";
import {
  type Identification,
  type IdentifyOptions,
  load,
  type LoadOptions,
  type SvcClient,
  SvcError,
} from "svc-visitor-id";

type GetClient = () => SvcClient;

const ClientContext = createContext<GetClient | null>(null);

/** Options of `load`, and the components that may identify. */
export interface SvcProviderProps extends LoadOptions {
  /** `false` collects nothing before the first `identify()`, such as until the visitor consents. Default `true`. */
  eager?: boolean;
  children?: ReactNode;
}

/** Loads the SDK once, in an effect: rendering on a server loads nothing. Options are those of the first render. */
export function SvcProvider({ eager = true, children, ...options }: SvcProviderProps): ReactNode {
  const first = useRef<LoadOptions>(options);
  const client = useRef<SvcClient | null>(null);
  const get = useCallback((): SvcClient => (client.current ??= load(first.current)), []);
  useEffect(() => {
    if (!eager) return;
    try {
      get();
    } catch {
      // Wrong options: `identify()` says so to whoever calls it.
    }
  }, [eager, get]);
  return <ClientContext.Provider value={get}>{children}</ClientContext.Provider>;
}

/** Options of {@link useVisitor}. */
export interface UseVisitorOptions {
  /** As in `identify()`. */
  tag?: string;
  /** Whether to identify when the component appears; otherwise call `identify`. Default `true`. */
  immediate?: boolean;
}

/** What {@link useVisitor} returns. */
export interface VisitorState {
  data: Identification | null;
  error: SvcError | null;
  isLoading: boolean;
  /** Identifies now; resolves with `null` where it failed, and `error` says why. */
  identify(options?: IdentifyOptions): Promise<Identification | null>;
}

/** Identifies the visitor, at once or when `identify` is called, such as on submit. */
export function useVisitor({ tag, immediate = true }: UseVisitorOptions = {}): VisitorState {
  const get = useContext(ClientContext);
  if (get === null) throw new Error("useVisitor() needs a <SvcProvider> around it.");
  const [state, setState] = useState<Omit<VisitorState, "identify">>({ data: null, error: null, isLoading: immediate });
  const mounted = useRef(false);
  const identify = useCallback(
    async (options: IdentifyOptions = {}): Promise<Identification | null> => {
      const show = (next: Omit<VisitorState, "identify">): void => {
        if (mounted.current) setState(next);
      };
      show({ data: null, error: null, isLoading: true });
      try {
        const data = await get().identify({ ...(tag === undefined ? {} : { tag }), ...options });
        show({ data, error: null, isLoading: false });
        return data;
      } catch (problem) {
        show({ data: null, error: problem as SvcError, isLoading: false });
        return null;
      }
    },
    [get, tag],
  );
  useEffect(() => {
    mounted.current = true;
    if (immediate) void identify();
    return () => {
      mounted.current = false;
    };
  }, [identify, immediate]);
  return { ...state, identify };
}
