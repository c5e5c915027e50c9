package androidx.test.runner.lifecycle;

/** As much of androidx.test as Robolectric needs to begin a test. */
public final class ApplicationLifecycleMonitorRegistry {
    private ApplicationLifecycleMonitorRegistry() {}

    public static void registerInstance(ApplicationLifecycleMonitor monitor) {}
}
