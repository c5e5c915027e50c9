package com.facebook.react.bridge;

/** As much of React Native as the bridge is compiled against in tests. */
public abstract class ReactContextBaseJavaModule implements NativeModule {
    private final ReactApplicationContext context;

    public ReactContextBaseJavaModule(ReactApplicationContext context) {
        this.context = context;
    }

    protected final ReactApplicationContext getReactApplicationContext() {
        return context;
    }
}
