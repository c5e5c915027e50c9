package com.facebook.react.bridge;

import android.content.Context;
import android.content.ContextWrapper;

/** As much of React Native as the bridge is compiled against in tests. */
public class ReactApplicationContext extends ContextWrapper {
    public ReactApplicationContext(Context context) {
        super(context);
    }
}
