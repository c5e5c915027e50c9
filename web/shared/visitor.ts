/** What the wrappers for frameworks share: one client, loaded at the first call, and what is shown of its calls. */
import {
  forget as forgetStored,
  type Identification,
  type IdentifyOptions,
  load,
  type LoadOptions,
  type SvcClient,
  type SvcError,
} from "@svc/web";

export interface Provided {
  /** The client, loaded at the first call. Throws what `load` throws. */
  get(): SvcClient;
  forget(): Promise<void>;
}

/** Loads nothing by itself. */
export function provided(options: LoadOptions): Provided {
  let client: SvcClient | null = null;
  let given = options;
  return {
    get: () => (client ??= load(given)),
    forget: async () => {
      if (client) return client.forget();
      // Nothing is read to forget: a client that is loaded later stores nothing, as one that has forgotten.
      const { apiKey, storage, cache } = given;
      given = { ...given, storage: false, cache: false };
      return forgetStored({ apiKey, storage, cache });
    },
  };
}

/** Loads early, so that the report is collected by the time of the first call. */
export function loadEarly(client: Provided): void {
  try {
    client.get();
  } catch {
    // Wrong options: `identify()` says so to its caller.
  }
}

export interface Shown {
  data: Identification | null;
  error: SvcError | null;
  isLoading: boolean;
}

export interface Calls {
  identify(options: IdentifyOptions): Promise<Identification | null>;
  forget(): Promise<void>;
}

/** What is shown belongs to the latest call: an older one that ends later shows nothing. */
export function calls(client: Provided, show: (next: Shown) => void): Calls {
  let latest = 0;
  const turn = (): ((next: Shown) => void) => {
    const own = ++latest;
    return (next) => own === latest && show(next);
  };
  return {
    async identify(options) {
      const now = turn();
      now({ data: null, error: null, isLoading: true });
      try {
        const data = await client.get().identify(options);
        now({ data, error: null, isLoading: false });
        return data;
      } catch (problem) {
        now({ data: null, error: problem as SvcError, isLoading: false });
        return null;
      }
    },
    forget() {
      turn()({ data: null, error: null, isLoading: false });
      return client.forget();
    },
  };
}
