package svc.visitor.core

import svc.visitor.SvcCallback
import svc.visitor.SvcCancellable
import svc.visitor.SvcException
import svc.visitor.SvcIdentification
import svc.visitor.SvcOptions
import svc.visitor.SvcRequest
import svc.visitor.SvcTiming

/** Identifications beside each other; calls for the same thing share a request. Safe for all threads, none of which it blocks. */
class Engine @JvmOverloads constructor(
    private val options: SvcOptions,
    private val host: Host,
    idleMs: Long = 30_000,
    private val loop: Loop = ThreadLoop(host::elapsedMs, idleMs),
    http: Http = UrlConnectionHttp(options.pins, host),
) {
    private val shared = Shared(options, host, loop, http)
    private val attestations = Attestations(shared)
    private val second = SecondReports(shared)
    private val flights = LinkedHashMap<String, Flight>()

    @Volatile var lastTiming: SvcTiming? = null
        private set

    fun identify(request: SvcRequest, callback: SvcCallback): SvcCancellable {
        val limitMs = request.timeoutMs ?: options.timeoutMs
        val caller = Caller(callback, request.callbackExecutor ?: host.callbackExecutor, limitMs, loop.nowMs() + limitMs)
        val fault = request.fault()
        loop.post {
            if (fault != null) tell(caller, SvcException("invalid_options", fault)) else join(caller, request.subject())
        }
        return SvcCancellable { loop.post { leave(caller, SvcException("aborted", "The call was canceled.")) } }
    }

    /**
     * Ends calls with `aborted` and everything that they do, deletes what is stored, and then calls [done]. From then on this
     * engine stores nothing and sends no id of its own.
     */
    fun forget(done: Runnable?) {
        shared.isForgotten = true
        shared.vault.close()
        loop.post {
            shared.token = null
            shared.readings.forget()
            for (flight in flights.values.toList()) for (caller in flight.callers.toList()) leave(caller, SvcException("aborted", "forget() was called."))
            second.stop()
            val pools = listOf(shared.readers, shared.senders, shared.attesters, shared.background)
            var left = pools.size
            for (pool in pools) pool.afterThese { if (--left == 0) delete(done) }
        }
    }

    private fun delete(done: Runnable?) {
        val parts = listOf({ shared.vault.delete(Token.NAME) }, { Queue(shared.vault).clear() }, { host.forgetAttestation() })
        val work = {
            for (part in parts) {
                try {
                    part()
                } catch (_: Exception) {
                    // what cannot be deleted is not read again by this engine
                }
            }
        }
        shared.background.run(Task("delete", { DELETE_MS }, work, { if (done != null) shared.tell(host.callbackExecutor) { done.run() } }))
    }

    private fun join(caller: Caller, subject: Map<String, Any?>) {
        val key = Json.canonical(subject)
        val shared = flights[key]
        val flight = shared ?: Flight(this.shared, attestations, subject, { lastTiming = it }) { flight, outcome -> finish(key, flight, outcome) }
        flight.callers.add(caller)
        caller.flight = flight
        caller.forgive = loop.after(caller.endsAtMs - loop.nowMs()) {
            val message = "No response within ${caller.limitMs} ms: go on without, or raise timeoutMs."
            leave(caller, SvcException("timeout", message, retryable = true))
        }
        if (shared != null) return
        flights[key] = flight
        flight.start()
    }

    private fun leave(caller: Caller, error: SvcException) {
        val flight = caller.flight ?: return
        caller.flight = null
        caller.forgive()
        flight.callers.remove(caller)
        if (flight.callers.isEmpty()) {
            flights.values.remove(flight)
            flight.stop()
        }
        tell(caller, error)
    }

    private fun finish(key: String, flight: Flight, outcome: Outcome) {
        flights.remove(key)
        for (caller in flight.callers) {
            caller.flight = null
            caller.forgive()
            when (outcome) {
                is Outcome.Response -> {
                    val result = SvcIdentification(outcome.members["request_id"] as String, outcome.text, outcome.members)
                    shared.tell(caller.executor) { caller.callback.onSuccess(result) }
                }
                is Outcome.Failure -> tell(caller, with(outcome) { SvcException(code, message, status, retryable, retryAfterMs, requestId) })
            }
        }
        if (outcome is Outcome.Response) second.follow(outcome.members)
    }

    private fun tell(caller: Caller, error: SvcException) {
        shared.log { "reported ${error.code}" }
        shared.tell(caller.executor) { caller.callback.onFailure(error) }
    }

    private companion object {
        const val DELETE_MS = 5_000L
    }
}

/** The report that follows a response, and those that wait. On the loop alone. */
internal class SecondReports(private val shared: Shared) {
    private val readings = Readings(shared.loop, shared.background)
    private val collections = HashSet<Readings.Collection>()
    private var sending: Stop? = null
    private var isAskedAgain = false

    fun follow(response: Map<*, *>) {
        if (!shared.options.deferred || shared.isForgotten) return
        val id = response["request_id"] as? String
        val token = response["deferred_token"] as? String
        if (id == null || token == null) return send()
        var mine: Readings.Collection? = null
        mine = readings.collect(shared.host.deferredSources(), shared.loop.nowMs() + COLLECT_MS) { read ->
            collections.remove(mine)
            keep(id, token, read.filterValues { it != null && it != Report.FAULT })
        }
        collections.add(mine)
    }

    fun stop() {
        collections.forEach { it.stop() }
        collections.clear()
        sending?.let { shared.shut(it) }
    }

    private fun keep(id: String, token: String, read: Map<String, Any?>) {
        val signals = read + mapOf("tier" to "deferred", "version" to 1)
        val body = Json.canonical(mapOf("token" to token, "sdk" to shared.sdk, "signals" to signals))
        val host = shared.host
        // A store that fails loses second reports, and nothing else.
        val work = { Queue(shared.store).add(host.nowMs(), host.nowMs() + KEEP_MS, Texts.hex(host.random(4)), "/api/v1/events/$id/supplement", body) }
        shared.background.run(Task("keep", { BACKGROUND_MS }, work, ::send))
    }

    /** One at a time, so that no report is sent twice. */
    private fun send() {
        if (sending != null) {
            isAskedAgain = true
            return
        }
        val stop = Stop().also { sending = it }
        val at = shared.options.endpoints[shared.endpoint]
        val work = { Queue(shared.store).flush(shared.host.nowMs()) { if (shared.isForgotten) 0 else status(at, it, stop) } }
        shared.background.run(Task("flush", { BACKGROUND_MS }, work, {
            sending = null
            if (isAskedAgain) {
                isAskedAgain = false
                send()
            }
        }))
    }

    private fun status(at: String, entry: Queue.Entry, stop: Stop): Int = try {
        val request = HttpRequest(at + entry.path, shared.headers(emptyMap()), entry.body.toByteArray(Charsets.UTF_8))
        shared.http.exchange(request, Sending.ATTEMPT_MS, stop).status
    } catch (_: Exception) {
        0
    }

    private companion object {
        const val COLLECT_MS = 10_000L
        const val BACKGROUND_MS = 6_000L
        const val KEEP_MS = 24 * 3_600_000L
    }
}
