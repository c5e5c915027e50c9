package svc.visitor.core

import svc.visitor.SvcAttestation
import svc.visitor.SvcCallback
import svc.visitor.SvcCancellable
import svc.visitor.SvcException
import svc.visitor.SvcIdentification
import svc.visitor.SvcOptions
import svc.visitor.SvcRequest
import svc.visitor.SvcTiming
import java.util.concurrent.Executor
import java.util.concurrent.RejectedExecutionException

/** What the system gives: time, randomness, storage, and what can be read of the device. */
interface Host {
    val userAgent: String
    val version: String
    fun nowMs(): Long
    fun elapsedMs(): Long
    fun random(count: Int): ByteArray

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
}

/** Identifications, one after the other on one thread; calls for the same thing share a request. */
class Engine(private val options: SvcOptions, private val host: Host, idleMs: Long = 30_000) {
    private val http: Http = UrlConnectionHttp(options.pins)
    private val workers = Workers(idleMs)
    private val line = Line(host, workers)
    private val constants = HashMap<String, Any?>()
    private val hanging = HashSet<Collecting>()
    private val store: Store = if (options.storage) host.store else MemoryStore()
    private var endpoint = 0
    private var cannotAttest = false
    @Volatile private var pinFailed = false
    @Volatile private var isForgotten = false
    @Volatile private var token: String? = null

    @Volatile var lastTiming: SvcTiming? = null
        private set

    private val platform = options.bridge?.let { "${it.name}-android" } ?: "android"
    private val sdk = mapOf("platform" to platform, "version" to (options.bridge?.version ?: host.version))

    fun identify(request: SvcRequest, callback: SvcCallback): SvcCancellable {
        val fault = request.fault()
        if (fault != null) {
            deliver(callback, null, SvcException("invalid_options", fault))
            return SvcCancellable { }
        }
        val subject = request.subject()
        return line.join(Json.canonical(subject), request.timeoutMs ?: options.timeoutMs, callback, ::deliver) { run(it, subject) }
    }

    /** Deletes what is stored; from then on this engine stores nothing and sends no id of its own. */
    fun forget(done: Runnable?) {
        isForgotten = true
        token = null
        line.afterwards {
            for (work in listOf({ host.store.delete(Token.NAME) }, { Queue(host.store).clear() }, { host.forgetAttestation() })) {
                try {
                    work()
                } catch (_: Exception) {
                    // what cannot be deleted is not read again by this engine
                }
            }
            if (done != null) post(done)
        }
    }

    private fun deliver(callback: SvcCallback, result: SvcIdentification?, error: SvcException?) =
        post { if (result != null) callback.onSuccess(result) else callback.onFailure(error!!) }

    private fun post(work: Runnable) {
        try {
            host.callbackExecutor.execute(work)
        } catch (_: RejectedExecutionException) {
            // the app has closed it
        }
    }

    private fun run(flight: Flight, subject: Map<String, Any?>): Outcome {
        val began = host.elapsedMs()
        if (!host.isOnline()) return Outcome.Failure("offline", "The system knows no network: call identify() again once there is one.", retryable = true)
        val signals = collect(flight, minOf(flight.endsAtMs, began + options.collectMs))
        val collected = host.elapsedMs()
        if (options.attestation == SvcAttestation.WHEN_POSSIBLE) signals["attestation"] = attestation(flight)
        val content = HashMap(subject)
        content["sdk"] = sdk
        content["signals"] = signals
        if (options.verdict) content["verdict"] = true
        val body = Json.canonical(content).toByteArray(Charsets.UTF_8)
        val key = Texts.timeOrderedId(host.nowMs(), host.random(16))
        val exchanges = Exchanges(flight, "/api/v1/identify", body, mapOf("idempotency-key" to key, "x-svc-replay" to "full"))
        val outcome = Sending.send(exchanges, flight.endsAtMs, options.endpoints.size, endpoint) { endpoint = it }
        val left = (signals["app"] as? Map<*, *>)?.get("left_out") as? List<*>
        lastTiming = SvcTiming(
            collected - began, exchanges.lastMs, host.elapsedMs() - began, exchanges.attempts, body.size,
            options.endpoints[endpoint], left?.map { "$it" } ?: emptyList(),
        )
        if (outcome is Outcome.Response) follow(outcome.members)
        return outcome
    }

    /** One source after the other; what is not there in time is left out. */
    private fun collect(flight: Flight, endsAtMs: Long): HashMap<String, Any?> {
        val checks = host.checks()
        val wanted = host.sources().filter { isWanted(it.name) } + checks.map { Source("flags.${it.name}", minOf(it.limitMs, 100), it.isConstant, it.read) }
        val read = read(flight, wanted, endsAtMs)
        val flags = checks.filter { read["flags.${it.name}"] == true }.map { it.name }.toMutableList()
        if (pinFailed) flags.add("mitm")
        val storage = options.storage && !isForgotten
        if (storage && token == null) token = Token.of(store) { Texts.hex(host.random(16)) }
        val given = Report.Given(
            read, flags, checks.map { "flags.${it.name}" }.filter { isFault(read[it]) }, if (storage) token else null,
            Texts.timeOrderedId(host.nowMs(), host.random(16)), host.nowMs(), storage, options.deviceId, options.minimal,
            options.bridge?.let { "${it.name}/${it.version}" },
        )
        return HashMap(Report.signals(given))
    }

    /** What is not to be sent is not read either. */
    private fun isWanted(source: String): Boolean = when (source) {
        "android_id" -> options.storage && options.deviceId && !isForgotten
        "build", "app" -> true
        else -> !options.minimal
    }

    private fun isFault(value: Any?): Boolean = value is Map<*, *> && "fault" in value

    private fun read(flight: Flight?, wanted: List<Source>, endsAtMs: Long): Map<String, Any?> {
        hanging.removeAll { it.running().isEmpty() }
        val busy = hanging.flatMap { it.running() }.toSet()
        val known = wanted.filter { it.name in constants }
        val open = wanted.filter { it.name !in constants && it.name !in busy }
        val job = Collecting(open, host::elapsedMs, line::wake)
        var count = if (workers.tryRun { job.work() }) 1 else 0
        while (count > 0 && !job.isOver(2)) {
            val now = host.elapsedMs()
            if (now >= endsAtMs || (flight != null && flight.isStopped)) break
            if (job.isHanging() && count == 1) {
                if (workers.tryRun { job.work() }) count = 2 else if (job.isOver(1)) break
            }
            line.await(flight, minOf(endsAtMs, job.hangsAt() ?: (now + 20))) { job.isOver(2) || (count == 1 && job.isHanging()) }
        }
        if (job.running().isNotEmpty()) hanging.add(job)
        val found = HashMap<String, Any?>(job.results())
        for (source in open) if (source.isConstant && !isFault(found[source.name])) constants[source.name] = found[source.name]
        for (source in known) found[source.name] = constants[source.name]
        for (name in busy) found[name] = Report.FAULT
        return found
    }

    /** Never a failure: what cannot be had in time is none. */
    private fun attestation(flight: Flight): Map<String, Any?> {
        if (cannotAttest || isForgotten) return Attestation.NONE
        val endsAtMs = minOf(flight.endsAtMs, host.elapsedMs() + ATTESTATION_MS)
        val asked = Exchanges(flight, "/api/v1/attestation/challenge", ByteArray(0), emptyMap(), wants = "challenge")
        val response = asked.attempt(endpoint, minOf(CHALLENGE_MS, endsAtMs - host.elapsedMs())) as? Outcome.Response
        val challenge = response?.members?.get("challenge")
        val bytes = Attestation.challengeBytes(challenge) ?: return Attestation.NONE
        var chain: List<ByteArray>? = null
        var isDone = false
        val after = {
            isDone = true
            line.wake()
        }
        val isRunning = workers.tryRun(after) {
            try {
                chain = host.attest(bytes)
            } catch (_: Throwable) {
                cannotAttest = true
            }
        }
        if (isRunning) line.await(flight, endsAtMs) { isDone }
        return if (isDone) Attestation.claim(challenge, chain) else Attestation.NONE
    }

    /** The second report, and those that wait. */
    private fun follow(response: Map<*, *>) {
        val id = response["request_id"] as? String
        val token = response["deferred_token"] as? String
        if (!options.deferred || isForgotten) return
        workers.tryRun {
            try {
                val kept = Queue(store)
                if (id != null && token != null) {
                    val read = Collecting(host.deferredSources(), host::elapsedMs) { }
                    read.work()
                    val signals = read.results().filterValues { it != null && !isFault(it) } + mapOf("tier" to "deferred", "version" to 1)
                    val body = Json.canonical(mapOf("token" to token, "sdk" to sdk, "signals" to signals))
                    kept.add(host.nowMs(), host.nowMs() + DEFERRED_MS, Texts.hex(host.random(4)), "/api/v1/events/$id/supplement", body)
                }
                kept.flush(host.nowMs()) { if (isForgotten) 0 else status(it) }
            } catch (_: Exception) {
                // a store that fails loses second reports, and nothing else
            }
        }
    }

    private fun status(entry: Queue.Entry): Int = try {
        val body = entry.body.toByteArray(Charsets.UTF_8)
        http.exchange(HttpRequest(options.endpoints[endpoint] + entry.path, headers(emptyMap()), body), Sending.ATTEMPT_MS, Stop()).status
    } catch (_: Exception) {
        0
    }

    private fun headers(more: Map<String, String>): Map<String, String> = more + mapOf(
        "content-type" to "application/json", "x-api-key" to options.apiKey, "x-svc-sdk-platform" to platform,
        "user-agent" to host.userAgent,
    )

    /** Attempts with one key and one body. [wants]: the member that makes a response one of the service's. */
    private inner class Exchanges(
        private val flight: Flight,
        private val path: String,
        private val body: ByteArray,
        private val more: Map<String, String>,
        private val wants: String = "request_id",
    ) : Sending.Line {
        var attempts = 0
        var lastMs = 0L

        override fun nowMs(): Long = host.elapsedMs()
        override fun draw(): Double = (host.random(2)[0].toInt() and 255) / 256.0
        override fun pause(ms: Long): Boolean = !line.await(flight, nowMs() + ms) { false } && !flight.isStopped

        override fun attempt(endpoint: Int, limitMs: Long): Outcome {
            if (limitMs <= 0 || flight.isStopped) return Sending.timeout("The time was over before the request was sent.")
            attempts++
            val began = nowMs()
            val at = options.endpoints[endpoint]
            val stop = Stop()
            var made: Outcome? = null
            var outcome: Outcome? = null
            val work = { made = exchanged(at, limitMs, stop) }
            val after = {
                outcome = made
                line.wake()
            }
            if (workers.tryRun(after, work)) {
                line.await(flight, began + limitMs) { outcome != null }
            } else {
                work()
                after()
            }
            lastMs = nowMs() - began
            val found = outcome
            if (found == null) stop.stop()
            return found ?: Sending.timeout("No response from $at within $limitMs ms: go on without, or raise timeoutMs.")
        }

        private fun exchanged(at: String, limitMs: Long, stop: Stop): Outcome = try {
            val response = http.exchange(HttpRequest(at + path, headers(more), body), limitMs, stop)
            val members = if (wants == "request_id") null else Json.parseOrNull(response.body) as? Map<*, *>
            if (members?.get(wants) is String) Outcome.Response(response.body, members)
            else Sending.read(response, host.nowMs(), at, Sending.shown(options.apiKey))
        } catch (_: java.net.SocketTimeoutException) {
            Sending.timeout("No response from $at within $limitMs ms: go on without, or raise timeoutMs.")
        } catch (_: PinException) {
            pinFailed = true
            Sending.network("The certificate of $at has none of the pinned keys: somebody may read the connection.", isFinal = true)
        } catch (error: Exception) {
            Sending.network("No connection to $at (${error.javaClass.simpleName}): is the service running and reachable there, and is its certificate valid?")
        }
    }

    private companion object {
        const val ATTESTATION_MS = 3_000L
        const val CHALLENGE_MS = 2_000L
        const val DEFERRED_MS = 24 * 3_600_000L
    }
}
