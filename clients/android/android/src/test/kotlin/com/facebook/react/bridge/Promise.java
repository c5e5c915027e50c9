package com.facebook.react.bridge;

/** As much of React Native as the bridge is compiled against in tests. */
public interface Promise {
    void resolve(Object value);
}
