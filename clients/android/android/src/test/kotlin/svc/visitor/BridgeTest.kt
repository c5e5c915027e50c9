package svc.visitor

import com.facebook.react.bridge.Promise
import com.facebook.react.bridge.ReactApplicationContext
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowSystemClock
import svc.visitor.core.Json
import svc.visitor.reactnative.NativeSvcVisitorSpec
import svc.visitor.reactnative.SvcVisitorPackage
import java.time.Duration
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit

/** The module for React Native, compiled against the class that React Native's generator makes of its contract. */
@RunWith(RobolectricTestRunner::class)
@Config(manifest = Config.NONE, sdk = [35])
class BridgeTest {
    private val module by lazy {
        val context = ReactApplicationContext(RuntimeEnvironment.getApplication())
        SvcVisitorPackage().getModule("SvcVisitor", context) as NativeSvcVisitorSpec
    }

    private class Reported : LinkedBlockingQueue<Any>(), Promise {
        override fun resolve(value: Any?) {
            add(value ?: "null")
        }
    }

    private fun error(text: String) = ((Json.parse(text) as Map<*, *>)["svc_error"] as Map<*, *>)["code"]

    /** Robolectric's clock stands still but for what a test adds. */
    private fun identified(call: String): String {
        val reported = Reported()
        module.identify(call, reported)
        while (true) {
            (reported.poll(20, TimeUnit.MILLISECONDS) as String?)?.let { return it }
            ShadowSystemClock.advanceBy(Duration.ofMillis(20))
        }
    }

    @Test fun `wrong options and calls are errors as JSON`() {
        val key = "\"apiKey\": \"svc_pk_us_development_0123456789abcdefghij\""
        for (wrong in listOf("", "[]", "{}", "{$key}", "{$key, \"endpoint\": []}", "{$key, \"endpoint\": \"http://10.0.2.2\", \"timeout\": 1}", "{$key, \"endpoint\": \"https://a.example\", \"storage\": 1}", "{$key, \"endpoint\": \"https://a.example\", \"attestation\": \"always\"}")) {
            assertEquals(wrong, "invalid_options", error(module.configure(wrong)))
        }
        assertEquals("invalid_options", error(identified("{\"id\": \"1\"}")))
        assertEquals("", module.configure("{$key, \"endpoint\": [\"http://127.0.0.1:1\"], \"deferred\": false, \"checks\": []}"))
        for (wrong in listOf("", "[]", "{", "{}", "{\"id\": \"1\", \"tag\": 5}", "[".repeat(100) + "]".repeat(100))) {
            assertEquals(wrong, "invalid_options", error(identified(wrong)))
        }
        assertTrue(error(identified("{\"id\": \"2\", \"tag\": \"t\"}")) in listOf("network", "offline"))
        assertEquals("invalid_options", error(identified("{\"id\": \"3\", \"timeout\": 1}")))
        module.setLocationMocked("true")
        assertEquals("null", Reported().let { module.forget(it); it.poll(60, TimeUnit.SECONDS) })
    }

    @Test fun `a canceled call is reported as aborted`() {
        val gate = java.net.ServerSocket(0, 1, java.net.InetAddress.getLoopbackAddress())
        val key = "\"apiKey\": \"svc_pk_us_development_0123456789abcdefghij\""
        assertEquals("", module.configure("{$key, \"endpoint\": \"http://127.0.0.1:${gate.localPort}\", \"deferred\": false, \"checks\": []}"))
        val reported = Reported()
        module.identify("{\"id\": \"7\", \"tag\": \"t\"}", reported)
        module.cancel("6")
        module.cancel("7")
        assertEquals("aborted", error(reported.poll(60, TimeUnit.SECONDS) as String))
        gate.close()
    }
}
