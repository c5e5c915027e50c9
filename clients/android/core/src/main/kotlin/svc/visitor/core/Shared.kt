package svc.visitor.core

import svc.visitor.SvcOptions
import java.io.IOException
import java.security.cert.X509Certificate
import java.util.concurrent.Executor

/** What the system gives: time, randomness, storage, and what can be read of the device. Calls may take long but for the first four. */
interface Host {
    fun nowMs(): Long
    fun elapsedMs(): Long
    fun random(count: Int): ByteArray
    val version: String
    val userAgent: String

    /** `false` where the system knows that there is no network. */
    fun isOnline(): Boolean
    fun sources(): List<Source>

    /** Sources of booleans, by the names of flags. */
    fun checks(): List<Source>
    fun deferredSources(): List<Source>
    val store: Store
    val callbackExecutor: Executor

    /** A chain for a challenge, DER, the leaf first. May throw. */
    fun attest(challenge: ByteArray): List<ByteArray>
    fun forgetAttestation()

    /** The chain from the leaf to an anchor, as it was validated of what a peer [sent]. Throws where it is not trusted. */
    fun validated(sent: Array<X509Certificate>, authType: String, peer: String): List<X509Certificate> = Chains.validated(sent, authType)

    /** Runs what uses the network, so that the system counts it as the SDK's. */
    fun <T> tagged(work: () -> T): T = work()

    /** One line for the developer of the app, without keys and ids. */
    fun log(line: String) {}
}

/** What all calls share. On the loop alone, but for what is volatile. */
internal class Shared(val options: SvcOptions, val host: Host, val loop: Loop, val http: Http) {
    val readers = WorkerPool(loop, 2, 6)
    val senders = WorkerPool(loop, 6, 6)
    val attesters = WorkerPool(loop, 1, 0)
    val background = WorkerPool(loop, 1, 2)
    private val callbacks = WorkerPool(loop, 1, 2)
    private val closers = WorkerPool(loop, 1, 2)
    val readings = Readings(loop, readers)
    val vault = Vault(host.store)
    val store: Store = if (options.storage) vault else MemoryStore()
    val platform = options.bridge?.let { "${it.name}-android" } ?: "android"
    val sdk = mapOf("platform" to platform, "version" to (options.bridge?.version ?: host.version))
    var token: String? = null

    /** The endpoint that responded last. */
    var endpoint = 0
    @Volatile var pinFailed = false
    @Volatile var isForgotten = false

    fun headers(more: Map<String, String>): Map<String, String> = more + mapOf(
        "content-type" to "application/json", "x-api-key" to options.apiKey, "x-svc-sdk-platform" to platform,
        "user-agent" to host.userAgent,
    )

    /** Runs the app's code: whatever it throws, and however long it takes. */
    fun tell(executor: Executor, work: () -> Unit) = callbacks.run(Task("tell", { TELL_MS }, {
        try {
            executor.execute(work)
        } catch (error: Throwable) {
            log { "a callback threw, or its executor was closed: $error" }
        }
    }))

    fun shut(stop: Stop) {
        stop.forbid()
        closers.run(Task("close", { TELL_MS }, stop::stop))
    }

    inline fun log(line: () -> String) {
        if (options.debugLog) try { host.log(line()) } catch (_: Throwable) {}
    }

    private companion object {
        const val TELL_MS = 1_000L
    }
}

/** One request and its response, in a pool. [done] gets what came of it, once, unless it was stopped. On the loop alone. */
internal class Exchange(
    private val shared: Shared,
    private val path: String,
    private val body: ByteArray,
    private val more: Map<String, String>,
    private val wants: String,
    endpoint: Int,
    private val limit: () -> Long,
    private val done: (Outcome) -> Unit,
) {
    private val at = shared.options.endpoints[endpoint]
    private val stop = Stop()
    private var isOver = false
    @Volatile private var limitMs = 0L
    @Volatile private var made: Outcome? = null
    private val task = Task(
        "send $path",
        limitMs = { limit().also { limitMs = it } },
        work = { made = exchanged() },
        ended = { settle(made ?: Outcome.Failure("internal_error", "The request could not be made.")) },
        overdue = {
            if (!isOver) shared.shut(stop)
            settle(timeout())
        },
    )

    fun start() = shared.senders.run(task)

    fun stop() {
        if (isOver) return
        isOver = true
        if (!shared.senders.drop(task)) shared.shut(stop)
    }

    private fun settle(outcome: Outcome) {
        if (isOver) return
        isOver = true
        done(outcome)
    }

    private fun timeout() = Sending.timeout("No response from $at within $limitMs ms: go on without, or raise timeoutMs.")

    private fun exchanged(): Outcome = try {
        if (limitMs <= 0) throw java.net.SocketTimeoutException()
        val response = shared.http.exchange(HttpRequest(at + path, shared.headers(more), body), limitMs, stop)
        val members = if (wants == "request_id") null else Json.parseOrNull(response.body) as? Map<*, *>
        if (members?.get(wants) is String) Outcome.Response(response.body, members)
        else Sending.read(response, shared.host.nowMs(), at, Sending.shown(shared.options.apiKey))
    } catch (_: java.net.SocketTimeoutException) {
        timeout()
    } catch (error: IOException) {
        if (generateSequence<Throwable>(error) { it.cause }.take(DEEPEST).any { it is PinException }) {
            shared.pinFailed = true
            val message = "The chain of $at, as it was validated, has none of the pinned keys: somebody may read the connection, or pins are out of date."
            Outcome.Failure("pin_mismatch", message)
        } else {
            Sending.network("No connection to $at (${error.javaClass.simpleName}): is the service running and reachable there, and is its certificate valid?")
        }
    } catch (error: Exception) {
        Sending.network("No connection to $at (${error.javaClass.simpleName}).")
    }

    private companion object {
        const val DEEPEST = 8
    }
}
