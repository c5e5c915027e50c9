/** What the native side implements. Texts are JSON: nothing is converted on the way. */
import type { TurboModule } from "react-native";
import { TurboModuleRegistry } from "react-native";

export interface Spec extends TurboModule {
  /** Options; the text is empty where they are right, else the error. Replaces what was configured before. */
  configure(options: string): string;
  /** `tag`, `accountId`, `action`, `timeoutMs`; resolves with the exact response, or with `{"svc_error": ...}`. */
  identify(call: string): Promise<string>;
  forget(): Promise<void>;
}

export default TurboModuleRegistry.getEnforcing<Spec>("SvcVisitor");
