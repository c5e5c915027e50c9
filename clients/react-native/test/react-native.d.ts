/** As much of React Native's types as the bridge and its guide use. */
export interface TurboModule {
  getConstants?(): object;
}
export declare const TurboModuleRegistry: { getEnforcing<T extends TurboModule>(name: string): T };
export declare const Platform: { readonly OS: string };
