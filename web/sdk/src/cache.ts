/** Responses that are used again; off unless `load` is told. */
import type { CacheOptions, Identification } from "./api.js";
import { now, toJson } from "./json.js";

/** A store of responses by what was asked. */
export interface Cache {
  get(asked: string): Identification | null;
  put(asked: string, response: Identification): void;
  clear(): void;
}

interface Entry {
  until: number;
  response: Identification;
}

/** `name`: of the entry in the browser's storage; `apiKey`: responses to another key are not used. */
export function responseCache(options: CacheOptions | false | undefined, name: string, apiKey: string): Cache {
  if (!options) return { get: () => null, put: () => undefined, clear: () => undefined };
  const entries = new Map<string, Entry>();
  const storage = (): Storage | null => {
    if (options.storage === "memory") return null;
    return options.storage === "local" ? localStorage : sessionStorage;
  };
  const key = (asked: string): string => apiKey.slice(-8) + asked;
  // What a clock that has gone back since wrote would be used for longer.
  const isFresh = ({ until }: Entry): boolean => until > now() && until <= now() + options.durationMs;
  const read = (): Map<string, Entry> => {
    try {
      const text = storage()?.getItem(name);
      return text ? new Map(JSON.parse(text) as [string, Entry][]) : entries;
    } catch {
      return entries;
    }
  };
  const write = (kept: Map<string, Entry>): void => {
    try {
      const place = storage();
      if (place === null) kept.forEach((entry, one) => entries.set(one, entry));
      else place.setItem(name, toJson([...kept])!);
    } catch {
      // Full or refused: the next call sends a request, as without a cache.
    }
  };
  return {
    get(asked) {
      const found = read().get(key(asked));
      return found && isFresh(found) ? { ...found.response, cached: true } : null;
    },
    put(asked, response) {
      if (response.visitor_id === undefined) return; // one that says only whose duplicate it is
      const kept = new Map([...read()].filter(([, entry]) => isFresh(entry)));
      const { deferred_token: _, verdict: __, duplicate: ___, ...rest } = response;
      kept.set(key(asked), { until: now() + options.durationMs, response: rest });
      write(kept);
    },
    clear() {
      entries.clear();
      try {
        storage()?.removeItem(name);
      } catch {
        // Nothing was stored where storage is refused.
      }
    },
  };
}
