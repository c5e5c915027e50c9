package androidx.test.runner.lifecycle;

import android.app.Activity;
import java.util.Collection;

/** As much of androidx.test as Robolectric needs to begin a test. */
public interface ActivityLifecycleMonitor {
    void addLifecycleCallback(ActivityLifecycleCallback callback);

    void removeLifecycleCallback(ActivityLifecycleCallback callback);

    Collection<Activity> getActivitiesInStage(Stage stage);
}
