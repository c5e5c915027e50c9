package androidx.test.platform.app;

import android.app.Instrumentation;
import android.os.Bundle;

/** As much of androidx.test as Robolectric needs to begin a test. */
public final class InstrumentationRegistry {
    private InstrumentationRegistry() {}

    public static void registerInstance(Instrumentation instrumentation, Bundle arguments) {}
}
