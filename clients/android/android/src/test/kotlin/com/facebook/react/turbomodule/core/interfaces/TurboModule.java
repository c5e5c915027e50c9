package com.facebook.react.turbomodule.core.interfaces;

/** As much of React Native as the bridge is compiled against in tests. */
public interface TurboModule {}
