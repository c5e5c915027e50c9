package javax.annotation;

/** As much of React Native as the bridge is compiled against in tests. */
public @interface Nonnull {}
