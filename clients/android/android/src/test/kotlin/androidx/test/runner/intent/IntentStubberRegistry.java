package androidx.test.runner.intent;

/** As much of androidx.test as Robolectric needs to begin a test. */
public final class IntentStubberRegistry {
    private IntentStubberRegistry() {}

    public static boolean isLoaded() {
        return false;
    }

    public static IntentStubber getInstance() {
        throw new IllegalStateException("none is loaded");
    }
}
