package com.facebook.react;

import com.facebook.react.bridge.NativeModule;
import com.facebook.react.bridge.ReactApplicationContext;
import com.facebook.react.module.model.ReactModuleInfoProvider;

/** As much of React Native as the bridge is compiled against in tests. */
public abstract class BaseReactPackage {
    public abstract NativeModule getModule(String name, ReactApplicationContext reactContext);

    public abstract ReactModuleInfoProvider getReactModuleInfoProvider();
}
