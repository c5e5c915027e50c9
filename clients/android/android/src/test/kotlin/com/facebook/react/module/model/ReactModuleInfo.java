package com.facebook.react.module.model;

/** As much of React Native as the bridge is compiled against in tests. */
public class ReactModuleInfo {
    public ReactModuleInfo(
            String name, String className, boolean canOverride, boolean isEager, boolean isCxx, boolean isTurbo) {}
}
