package svc.visitor.android

import android.content.Context
import android.location.Location
import android.net.ConnectivityManager
import android.os.Build
import android.os.Handler
import android.os.Looper
import android.os.SystemClock
import svc.visitor.SvcOptions
import svc.visitor.SvcVisitor
import svc.visitor.core.FileStore
import svc.visitor.core.Host
import svc.visitor.core.Source
import svc.visitor.core.Store
import java.io.File
import java.security.SecureRandom
import java.util.concurrent.Executor

/** What the engine needs of Android. */
internal class AndroidHost(private val context: Context, private val options: SvcOptions) : Host {
    @Volatile var location: Location? = null

    private val random by lazy { SecureRandom() }
    private val app by lazy { AppFacts(context) }
    private val read by lazy { Sources(context, app) }
    private val deferred by lazy { DeferredSources(context) }
    private val flags by lazy { Checks(context, app, options) { location } }

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
}
