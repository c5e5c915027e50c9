package androidx.test.internal.runner.lifecycle;

import android.app.Activity;
import androidx.test.runner.lifecycle.ActivityLifecycleCallback;
import androidx.test.runner.lifecycle.ActivityLifecycleMonitor;
import androidx.test.runner.lifecycle.Stage;
import java.util.Collection;
import java.util.Collections;

/** As much of androidx.test as Robolectric needs to begin a test. */
public final class ActivityLifecycleMonitorImpl implements ActivityLifecycleMonitor {
    @Override
    public void addLifecycleCallback(ActivityLifecycleCallback callback) {}

    @Override
    public void removeLifecycleCallback(ActivityLifecycleCallback callback) {}

    @Override
    public Collection<Activity> getActivitiesInStage(Stage stage) {
        return Collections.emptyList();
    }

    public void signalLifecycleChange(Stage stage, Activity activity) {}
}
