/** What the native side implements. Texts are JSON: nothing is converted on the way. */
import type { TurboModule } from "react-native";
import { TurboModuleRegistry } from "react-native";

export interface Spec extends TurboModule {
  /** Options; the text is empty where they are right, else the error. Replaces what was configured before. */
  configure(options: string): string;
  /** `id` of this call, `tag`, `accountId`, `action`, `timeoutMs`; resolves with the exact response, or with `{"svc_error": ...}`. */
  identify(call: string): Promise<string>;
  /** Ends the call of this id with `aborted`. */
  cancel(id: string): void;
  /** `true`, `false`, or an empty text where it is not known. */
  setLocationMocked(isMocked: string): void;
  forget(): Promise<void>;
}

let found: Spec | undefined;

/** Looked up at first use: importing the package throws nowhere. Throws where the app was built without the module. */
export default function native(): Spec {
  return (found ??= TurboModuleRegistry.getEnforcing<Spec>("SvcVisitor"));
}
