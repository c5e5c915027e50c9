package svc.visitor

import android.app.ActivityManager
import android.content.Context
import android.location.Location
import android.net.TrafficStats
import android.os.Build
import android.os.Environment
import android.provider.Settings
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertTrue
import org.junit.Before
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowBuild
import org.robolectric.shadows.ShadowStatFs
import org.robolectric.util.ReflectionHelpers
import svc.visitor.android.AndroidHost
import svc.visitor.android.AppFacts
import svc.visitor.android.Checks
import svc.visitor.android.Files
import svc.visitor.android.NewerApi
import svc.visitor.android.Sources
import svc.visitor.android.systemChain
import svc.visitor.core.Json
import svc.visitor.core.Report
import svc.visitor.core.Token
import java.io.File
import java.net.InetAddress
import java.net.ServerSocket
import java.security.cert.CertificateException
import java.security.cert.X509Certificate
import java.util.LinkedHashMap
import java.util.Locale
import java.util.TimeZone
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit
import javax.net.ssl.X509TrustManager

/** The Android part on the code of four versions of Android. */
@RunWith(RobolectricTestRunner::class)
@Config(manifest = Config.NONE, qualifiers = "w411dp-h891dp-xxhdpi")
class PhoneTest {
    /** Robolectric's application, in the folder that Android would give it. */
    private val context: Context by lazy {
        object : android.content.ContextWrapper(RuntimeEnvironment.getApplication()) {
            override fun getFilesDir() = File("/data/user/0/$packageName/files")

            override fun getApplicationContext() = this
        }
    }
    private val options = SvcOptions.Builder(KEY, "http://127.0.0.1:1").build()

    @Suppress("UNCHECKED_CAST")
    private val case by lazy {
        val file = File(System.getProperty("vectors"), "report.json")
        val all = (Json.parse(file.readText()) as Map<String, Any?>)["cases"] as List<Map<String, Any?>>
        all.first { it["name"] == "android: a Pixel" }
    }

    @Suppress("UNCHECKED_CAST")
    private fun part(of: Any?, name: String) = (of as Map<String, Any?>)[name] as Map<String, Any?>

    @Before fun aPixel() {
        ShadowBuild.setManufacturer("Google")
        ShadowBuild.setModel("Pixel 8")
        ShadowBuild.setVersionRelease("15")
        ShadowBuild.setTags("release-keys")
        ShadowBuild.setSupportedAbis(arrayOf("arm64-v8a", "armeabi-v7a"))
        ReflectionHelpers.setStaticField(Build::class.java, "DISPLAY", "AP4A.250105.002")
        val memory = ActivityManager.MemoryInfo().apply { totalMem = 7_898_066_944 }
        shadowOf(context.getSystemService(Context.ACTIVITY_SERVICE) as ActivityManager).setMemoryInfo(memory)
        ShadowStatFs.registerStats(Environment.getDataDirectory(), 28_051_454, 1_000, 1_000)
        Locale.setDefault(Locale.UK)
        android.os.LocaleList.setDefault(android.os.LocaleList.forLanguageTags("en-GB,de-DE"))
        TimeZone.setDefault(TimeZone.getTimeZone("Europe/London"))
        val resolver = context.contentResolver
        Settings.Secure.putString(resolver, Settings.Secure.DEFAULT_INPUT_METHOD, "com.example.keyboard/.Service")
        Settings.Secure.putString(resolver, Settings.Secure.ANDROID_ID, "a1b2c3d4e5f60718")
        Settings.System.putString(resolver, Settings.System.SCREEN_OFF_TIMEOUT, "30000")
        Settings.System.putString(resolver, Settings.System.TIME_12_24, "24")
    }

    private fun read(): Map<String, Any?> {
        val sources = Sources(context, AppFacts(context)).all()
        return sources.associate { it.name to it.read() }
    }

    @Test @Config(sdk = [24, 28, 33, 35])
    fun `the report of a Pixel is that of its vector`() {
        val read = read()
        assertEquals(Build.VERSION.SDK_INT, part(read, "build")["api_level"])
        val given = part(case, "given")
        // Robolectric has no certificate, no processors of a Pixel and no modes of its screen: these are read, and then replaced.
        assertTrue(read["cores"].toString().isNotBlank())
        val found = Report.signals(given(read))
        val screen = found["screen"] as? Map<*, *> ?: throw AssertionError("$found of $read")
        assertTrue((screen["width"] as Long) > 0 && (screen["height"] as Long) > 0)
        assertEquals(context.packageName, part(read, "app")["package"])
        val device = LinkedHashMap(read)
        for (name in listOf("cores", "screen", "app")) device[name] = part(given, "device")[name]
        device["build"] = part(device, "build") + mapOf("api_level" to 35)
        val expected = part(part(case, "expect"), "signals")
        assertEquals(Json.canonical(expected), Json.canonical(Report.signals(given(device))))
    }

    private fun given(device: Map<String, Any?>): Report.Given {
        val given = part(case, "given")
        return Report.Given(device, token = given["token"] as String, nonce = given["nonce"] as String, collectedAtMs = given["collected_at"] as Long)
    }

    @Test @Config(sdk = [24, 28, 33, 35])
    fun `no source and no check fails on a plain system, and no flag is set but for what is true`() {
        val host = AndroidHost(context, options)
        for (source in host.sources() + host.checks()) source.read()
        val flags = host.checks().filter { it.read() == true }.map { it.name }
        assertEquals(emptyList<String>(), flags - "emulator")
        assertTrue(host.isOnline())
        assertTrue(Regex("svc-android/${Regex.escape(SvcVisitor.VERSION)} \\(Android 15; [\\w.]+/\\d+\\)").matches(host.userAgent))
    }

    @Test @Config(sdk = [24, 35])
    fun `what is made for people alone is read without a failure of the process`() {
        val named = AndroidHost(context, options).deferredSources().map { source ->
            source.name to try { source.read() } catch (_: Throwable) { Report.FAULT }
        }
        assertEquals(listOf("sensors", "cameras", "codecs", "features", "gpu"), named.map { it.first })
    }

    // Checks

    private val root = File.createTempFile("root", "").apply { delete() }

    private fun flags(change: SvcOptions.Builder.() -> Unit = {}, location: Location? = null): Set<String> {
        val options = SvcOptions.Builder(KEY, "http://127.0.0.1:1").apply(change).build()
        val checks = Checks(context, AppFacts(context), options, Files(root.path)) { location?.let { NewerApi.isMock(it) } }
        return checks.all().filter { it.read() == true }.map { it.name }.toSet() - "emulator"
    }

    private fun file(path: String, text: String = "") = File(root.path + path).run { parentFile!!.mkdirs(); writeText(text) }

    @Test @Config(sdk = [24, 35])
    fun `two traits make a rooted phone, and one does not`() {
        file("/system/xbin/su")
        assertFalse("rooted" in flags())
        file("/proc/mounts", "/dev/root / ext4 ro 0 0\n/dev/block/dm-0 /system ext4 rw,seclabel 0 0\n")
        assertTrue("rooted" in flags())
    }

    @Test @Config(sdk = [35])
    fun `an agent in memory is Frida, a thread alone is not`() {
        file("/proc/self/task/7/comm", "gum-js-loop\n")
        assertFalse("frida" in flags())
        file("/proc/self/maps", "7f00-7f01 r-xp 00000000 00:00 0 /data/local/tmp/frida-agent-64.so\n")
        assertTrue("frida" in flags())
    }

    @Test @Config(sdk = [35])
    fun `a debugger is who traces the process`() {
        file("/proc/self/status", "Name:\tapp\nTracerPid:\t0\n")
        assertFalse("debugger" in flags())
        file("/proc/self/status", "Name:\tapp\nTracerPid:\t4711\n")
        assertTrue("debugger" in flags())
    }

    @Test @Config(sdk = [24, 35])
    fun `settings, stores, signers and locations have their flags`() {
        assertEquals(emptySet<String>(), flags())
        Settings.Global.putInt(context.contentResolver, Settings.Global.ADB_ENABLED, 1)
        val mock = Location("gps")
        ReflectionHelpers.callInstanceMethod<Any>(mock, if (Build.VERSION.SDK_INT >= 31) "setMock" else "setIsFromMockProvider", ReflectionHelpers.ClassParameter.from(Boolean::class.javaPrimitiveType, true))
        val found = flags({ expectedInstallers("com.android.vending"); expectedSigners("5A:".repeat(31) + "5A") }, mock)
        assertEquals(setOf("developer_options", "unofficial_store", "app_tampering", "location_spoofing"), found)
        assertEquals(emptySet<String>(), flags({}, Location("gps")) - "developer_options")
    }

    @Test @Config(sdk = [35])
    fun `a data folder of another package is a cloned app`() {
        val other = object : android.content.ContextWrapper(context) {
            override fun getFilesDir() = File("/data/user/0/com.other.host/virtual/files")
        }
        val checks = Checks(other, AppFacts(other), options, Files(root.path)) { null }
        assertTrue(checks.all().first { it.name == "cloned_app" }.read() == true)
    }

    @Test @Config(sdk = [24, 35])
    fun `what a bridge knows of a location is a flag, too`() {
        val host = AndroidHost(context, options)
        fun isSpoofed() = host.checks().first { it.name == "location_spoofing" }.read()
        assertEquals(false, isSpoofed())
        host.isMocked = true
        assertEquals(true, isSpoofed())
    }

    // The network

    @Test @Config(sdk = [24, 28, 33, 35])
    fun `requests are counted under the tag of the options, and the app's own tag is back afterwards`() {
        val host = AndroidHost(context, SvcOptions.Builder(KEY, "http://127.0.0.1:1").trafficTag(7).build())
        TrafficStats.setThreadStatsTag(5)
        assertEquals(7, host.tagged { TrafficStats.getThreadStatsTag() })
        assertEquals(5, TrafficStats.getThreadStatsTag())
    }

    /** As Android's own, which says the chain that it built to who asks with a name. */
    class Saying(private val chain: List<X509Certificate>) : X509TrustManager {
        @Suppress("unused", "UNUSED_PARAMETER")
        fun checkServerTrusted(sent: Array<X509Certificate>, authType: String, peer: String): List<X509Certificate> = chain

        override fun checkServerTrusted(sent: Array<X509Certificate>, authType: String) = throw CertificateException()

        override fun checkClientTrusted(sent: Array<X509Certificate>, authType: String) = throw CertificateException()

        override fun getAcceptedIssuers(): Array<X509Certificate> = arrayOf()
    }

    @Test @Config(sdk = [24, 28, 33, 35])
    fun `pins look at the chain that the system built`() {
        val chain = emptyList<X509Certificate>()
        assertTrue(chain === systemChain(Saying(chain), arrayOf(), "ECDHE_ECDSA", "id.shop.example"))
        // One of the app's own, which does not say it.
        val silent = object : X509TrustManager by Saying(chain) {}
        assertEquals(null, systemChain(silent, arrayOf(), "ECDHE_ECDSA", "id.shop.example"))
    }

    // The whole

    @Test @Config(sdk = [24, 35])
    fun `an identification comes back on the main thread, without attestation where the key store fails`() {
        val requests = LinkedBlockingQueue<String>()
        val server = ServerSocket(0, 10, InetAddress.getByName("127.0.0.1"))
        Thread {
            while (true) {
                val socket = try { server.accept() } catch (_: java.io.IOException) { return@Thread }
                val input = socket.getInputStream()
                val head = StringBuilder()
                while (!head.endsWith("\r\n\r\n")) head.append(input.read().toChar())
                val length = Regex("content-length: (\\d+)", RegexOption.IGNORE_CASE).find(head)?.groupValues?.get(1)?.toInt() ?: 0
                val body = ByteArray(length).also { java.io.DataInputStream(input).readFully(it) }
                val isChallenge = "attestation" in head.lineSequence().first()
                if (!isChallenge) requests.add(String(body))
                val answer = if (isChallenge) """{"challenge":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}""" else """{"request_id":"r1","visitor_id":"v1"}"""
                socket.getOutputStream().write("HTTP/1.1 200 OK\r\ncontent-length: ${answer.length}\r\nconnection: close\r\n\r\n$answer".toByteArray())
                socket.close()
            }
        }.apply { isDaemon = true }.start()
        val options = SvcOptions.Builder(KEY, "http://127.0.0.1:${server.localPort}").attestation(SvcAttestation.WHEN_POSSIBLE).collectMs(20_000).timeoutMs(60_000).build()
        val began = System.nanoTime()
        val visitor = SvcVisitor.create(context, options)
        val reported = LinkedBlockingQueue<Any>()
        visitor.identify(SvcRequest("t"), object : SvcCallback {
            override fun onSuccess(result: SvcIdentification) { reported.add(Pair(result.visitorId, Thread.currentThread())) }
            override fun onFailure(error: SvcException) { reported.add(error) }
        })
        var found: Any? = null
        while (found == null && System.nanoTime() - began < 60_000_000_000) {
            shadowOf(android.os.Looper.getMainLooper()).idle()
            found = reported.poll(20, TimeUnit.MILLISECONDS)
        }
        assertEquals(Pair("v1", Thread.currentThread()), found)
        @Suppress("UNCHECKED_CAST") val signals = (Json.parse(requests.take()) as Map<String, Any?>)["signals"] as Map<String, Any?>
        assertEquals(mapOf("format" to "none"), signals["attestation"])
        assertEquals(File(context.noBackupFilesDir, "svc-visitor/${Token.NAME}").readText(), signals["client_token"])
        assertTrue(Json.canonical(signals).length < 2_000)
        server.close()
    }

    private companion object {
        const val KEY = "svc_pk_us_development_0123456789abcdefghij"
    }
}
