/** As much of React Native's types as the bridge uses. */
export interface TurboModule {
  getConstants?(): object;
}
export declare const TurboModuleRegistry: { getEnforcing<T extends TurboModule>(name: string): T };
