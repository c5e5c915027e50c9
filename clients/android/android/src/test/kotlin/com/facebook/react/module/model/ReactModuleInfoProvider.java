package com.facebook.react.module.model;

import java.util.Map;

/** As much of React Native as the bridge is compiled against in tests. */
public interface ReactModuleInfoProvider {
    Map<String, ReactModuleInfo> getReactModuleInfos();
}
