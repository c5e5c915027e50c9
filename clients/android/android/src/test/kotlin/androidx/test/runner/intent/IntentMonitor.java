package androidx.test.runner.intent;

/** As much of androidx.test as Robolectric needs to begin a test. */
public interface IntentMonitor {}
