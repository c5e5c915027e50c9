/** A plugin that loads the SDK in the browser, and a composable that identifies. */
import {
  inject,
  type InjectionKey,
  type MaybeRefOrGetter,
  onMounted,
  onUnmounted,
  type Plugin,
  type Ref,
  shallowReadonly,
  shallowRef,
  toValue,
  watch,
} from "vue";
import type { Identification, IdentifyOptions, LoadOptions, SvcError } from "@svc/web";
import { calls, loadEarly, provided, type Provided, type Shown } from "../../shared/visitor.js";

const CLIENT: InjectionKey<Provided> = Symbol("svc");

/** Options of `load`. */
export interface SvcOptions extends LoadOptions {
  /** `false` collects nothing before the first `identify()`, such as until the visitor consents. Default `true`. */
  eager?: boolean | undefined;
}

/** A plugin for `app.use`. Loads the SDK once, in a browser: rendering on a server loads nothing. */
export function createSvc({ eager = true, ...options }: SvcOptions): Plugin {
  return {
    install(app) {
      const client = provided(options);
      app.provide(CLIENT, client);
      if (eager && typeof window !== "undefined") loadEarly(client);
    },
  };
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
  data: Readonly<Ref<Identification | null>>;
  error: Readonly<Ref<SvcError | null>>;
  isLoading: Readonly<Ref<boolean>>;
  /** Identifies now; resolves with `null` where it failed, and `error` says why. */
  identify(options?: IdentifyOptions): Promise<Identification | null>;
  /**
   * Removes the visitor's token and cached responses, stores nothing any more, and empties `data`: for consent that is
   * withdrawn. Rejects with `SvcError` code `storage` where the browser keeps the token.
   */
  forget(): Promise<void>;
}

/** Identifies the visitor, at once or when `identify` is called. Options may be a ref or a getter: a change identifies again. */
export function useVisitor(options: MaybeRefOrGetter<UseVisitorOptions> = {}): VisitorState {
  const client = inject(CLIENT, null);
  if (client === null) throw new Error("useVisitor() needs app.use(createSvc({ ... })).");
  const { immediate = true } = toValue(options);
  const data = shallowRef<Identification | null>(null);
  const error = shallowRef<SvcError | null>(null);
  const isLoading = shallowRef(immediate);
  let isThere = true;
  const called = calls(client, (next: Shown) => {
    if (isThere) [data.value, error.value, isLoading.value] = [next.data, next.error, next.isLoading];
  });
  const about = (): IdentifyOptions => {
    const { immediate: _, ...others } = toValue(options); // an unknown one is refused by name in `identify()`
    return others;
  };
  const identify = (more: IdentifyOptions = {}) => called.identify({ ...about(), ...more });
  if (immediate) {
    onMounted(() => {
      void identify();
      // `null` is as `undefined`: going from one to the other is no new identification.
      watch(() => JSON.stringify(about(), (_, value: unknown) => value ?? undefined), () => void identify());
    });
  }
  onUnmounted(() => (isThere = false));
  return {
    data: shallowReadonly(data),
    error: shallowReadonly(error),
    isLoading: shallowReadonly(isLoading),
    identify,
    forget: called.forget,
  };
}
