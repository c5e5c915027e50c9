package androidx.test.runner.lifecycle;

/** As much of androidx.test as Robolectric needs to begin a test. */
public enum ApplicationStage { PRE_ON_CREATE, CREATED }
