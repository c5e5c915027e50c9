package androidx.test.runner.intent;

import android.app.Instrumentation;
import android.content.Intent;

/** As much of androidx.test as Robolectric needs to begin a test. */
public interface IntentStubber {
    Instrumentation.ActivityResult getActivityResultForIntent(Intent intent);
}
