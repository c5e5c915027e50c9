package svc.visitor

import android.content.Context
import android.provider.Settings
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.annotation.Config
import java.io.File

/**
 * Runs an app that was shrunk together with the SDK, which tests/clients/test_shrinking.py puts before everything else on the class
 * path: writes what `Till` reported.
 */
@RunWith(RobolectricTestRunner::class)
@Config(manifest = Config.NONE, sdk = [35])
class ShrunkApp {
    @Test fun run() {
        val context = RuntimeEnvironment.getApplication()
        Settings.Secure.putString(context.contentResolver, Settings.Secure.ANDROID_ID, "a1b2c3d4e5f60718")
        // By names that no shrinker sees.
        val till = Class.forName("com.example.shop.Till")
        val identify = till.getMethod("identify", Context::class.java, String::class.java, String::class.java)
        val made = till.getDeclaredConstructor().newInstance()
        val reported = identify.invoke(made, context, System.getProperty("endpoint"), System.getProperty("key"))
        File(System.getProperty("reported")).writeText(reported as String)
    }
}
