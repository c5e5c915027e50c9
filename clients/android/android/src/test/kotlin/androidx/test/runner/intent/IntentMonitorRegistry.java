package androidx.test.runner.intent;

/** As much of androidx.test as Robolectric needs to begin a test. */
public final class IntentMonitorRegistry {
    private IntentMonitorRegistry() {}

    public static void registerInstance(IntentMonitor monitor) {}
}
