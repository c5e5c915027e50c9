package svc.visitor.android

import android.content.Context
import android.location.Location
import android.net.ConnectivityManager
import android.net.TrafficStats
import android.net.http.X509TrustManagerExtensions
import android.os.Build
import android.os.Handler
import android.os.Looper
import android.os.SystemClock
import android.util.Log
import svc.visitor.SvcOptions
import svc.visitor.SvcVisitor
import svc.visitor.core.Chains
import svc.visitor.core.FileStore
import svc.visitor.core.Host
import svc.visitor.core.Source
import svc.visitor.core.Store
import java.io.File
import java.security.SecureRandom
import java.security.cert.X509Certificate
import java.util.concurrent.Executor
import javax.net.ssl.X509TrustManager

/** What the engine needs of Android. */
internal class AndroidHost(private val context: Context, private val options: SvcOptions) : Host {
    @Volatile var location: Location? = null
    @Volatile var isMocked: Boolean? = null

    private val random by lazy { SecureRandom() }
    private val app by lazy { AppFacts(context) }
    private val read by lazy { Sources(context, app) }
    private val deferred by lazy { DeferredSources(context) }
    private val flags by lazy { Checks(context, app, options) { isMocked ?: location?.let { NewerApi.isMock(it) } } }

    override val version: String = SvcVisitor.VERSION

    override val userAgent: String by lazy {
        val named = "svc-android/$version (Android ${Build.VERSION.RELEASE}; ${context.packageName}/${app.versionCode()})"
        named.filter { it in ' '..'~' }
    }

    override fun nowMs(): Long = System.currentTimeMillis()

    override fun elapsedMs(): Long = SystemClock.elapsedRealtime()

    override fun random(count: Int): ByteArray = ByteArray(count).also { random.nextBytes(it) }

    override fun isOnline(): Boolean = try {
        val manager = context.getSystemService(Context.CONNECTIVITY_SERVICE) as ConnectivityManager
        manager.activeNetwork != null
    } catch (_: RuntimeException) {
        true // it is not known
    }

    override fun sources(): List<Source> = read.all()

    override fun checks(): List<Source> = flags.all().filter { options.checks?.contains(it.name) ?: true }

    override fun deferredSources(): List<Source> = deferred.all()

    override val store: Store = FileStore { File(context.noBackupFilesDir, "svc-visitor") }

    override val callbackExecutor: Executor = options.callbackExecutor ?: Executor { Handler(Looper.getMainLooper()).post(it) }

    override fun attest(challenge: ByteArray): List<ByteArray> = KeyAttestation.chain(challenge)

    override fun forgetAttestation() = KeyAttestation.forget()

    override fun validated(sent: Array<X509Certificate>, authType: String, peer: String): List<X509Certificate> =
        systemChain(Chains.system(), sent, authType, peer) ?: super.validated(sent, authType, peer)

    override fun <T> tagged(work: () -> T): T {
        val before = TrafficStats.getThreadStatsTag()
        TrafficStats.setThreadStatsTag(options.trafficTag)
        try {
            return work()
        } finally {
            TrafficStats.setThreadStatsTag(before)
        }
    }

    override fun log(line: String) {
        Log.d("svc", line)
    }
}

/** The chain that the system's own check built; `null` where its trust manager, as one of the app's, does not say. */
internal fun systemChain(system: X509TrustManager, sent: Array<X509Certificate>, authType: String, peer: String): List<X509Certificate>? {
    val check = try {
        X509TrustManagerExtensions(system)
    } catch (_: IllegalArgumentException) {
        return null
    }
    return check.checkServerTrusted(sent, authType, peer)
}
