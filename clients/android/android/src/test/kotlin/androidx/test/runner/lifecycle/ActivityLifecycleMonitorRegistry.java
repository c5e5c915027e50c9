package androidx.test.runner.lifecycle;

/** As much of androidx.test as Robolectric needs to begin a test. */
public final class ActivityLifecycleMonitorRegistry {
    private static ActivityLifecycleMonitor known;

    private ActivityLifecycleMonitorRegistry() {}

    public static ActivityLifecycleMonitor getInstance() {
        return known;
    }

    public static void registerInstance(ActivityLifecycleMonitor monitor) {
        known = monitor;
    }
}
