package svc.visitor.core

import svc.visitor.SvcAttestation
import svc.visitor.SvcCallback
import svc.visitor.SvcTiming
import java.util.concurrent.Executor

/** Who waits for a flight. */
internal class Caller(val callback: SvcCallback, val executor: Executor, val limitMs: Long, val endsAtMs: Long) {
    var forgive: () -> Unit = {}
    var flight: Flight? = null
}

/** One report for all who wait for the same thing: read, attest, send. On the loop alone. [ended] gets what came of it, once. */
internal class Flight(
    private val shared: Shared,
    private val attestations: Attestations,
    private val subject: Map<String, Any?>,
    private val timed: (SvcTiming) -> Unit,
    private val ended: (Flight, Outcome) -> Unit,
) {
    val callers = ArrayList<Caller>()

    /** When the last of its callers gives up. */
    val endsAtMs: Long get() = callers.maxOfOrNull { it.endsAtMs } ?: 0
    private val options = shared.options
    private val host = shared.host
    private val loop = shared.loop
    private var isOver = false
    private var beganMs = 0L
    private var collectedMs = 0L

    /** Ends what the flight waits for. */
    private var undo: () -> Unit = {}

    fun start() = guarded {
        beganMs = loop.nowMs()
        val checks = host.checks()
        val wanted = ArrayList<Source>()
        if (isStored() && shared.token == null) wanted += Source(TOKEN) { Token.of(shared.store) { Texts.hex(host.random(16)) } }
        wanted += host.sources().filter { isWanted(it.name) }
        wanted.add(minOf(wanted.size, READ_FIRST), Source(ONLINE) { host.isOnline() })
        wanted += checks.map { Source("flags.${it.name}", minOf(it.limitMs, 100), it.isConstant, it.read) }
        val collection = shared.readings.collect(wanted, minOf(endsAtMs, beganMs + options.collectMs), ::seen) { read ->
            guarded { collected(read, checks.map { it.name }) }
        }
        undo = collection::stop
    }

    fun stop() {
        isOver = true
        undo()
    }

    private fun guarded(work: () -> Unit) {
        if (isOver) return
        try {
            work()
        } catch (error: Throwable) {
            undo()
            finish(Outcome.Failure("internal_error", "A fault of the SDK: $error"))
        }
    }

    private fun seen(name: String, value: Any?) = guarded {
        if (name == ONLINE && value == false) {
            undo()
            finish(Outcome.Failure("offline", "The system knows no network: call identify() again once there is one.", retryable = true))
        }
    }

    private fun isStored(): Boolean = options.storage && !shared.isForgotten

    /** What is not to be sent is not read either. */
    private fun isWanted(source: String): Boolean = when (source) {
        "android_id" -> isStored() && options.deviceId
        "build", "app" -> true
        else -> !options.minimal
    }

    private fun isFault(value: Any?): Boolean = value is Map<*, *> && "fault" in value

    private fun collected(read: Map<String, Any?>, checks: List<String>) {
        collectedMs = loop.nowMs()
        (read[TOKEN] as? String)?.let { shared.token = it }
        val flags = checks.filter { read["flags.$it"] == true }.toMutableList()
        if (shared.pinFailed) flags.add("mitm")
        val given = Report.Given(
            read, flags, (checks.map { "flags.$it" } + TOKEN).filter { isFault(read[it]) }, if (isStored()) shared.token else null,
            Texts.timeOrderedId(host.nowMs(), host.random(16)), host.nowMs(), isStored(), options.deviceId, options.minimal,
            options.bridge?.let { "${it.name}/${it.version}" },
        )
        val signals = HashMap(Report.signals(given))
        shared.log { "collected in ${collectedMs - beganMs} ms, left out: ${leftOut(signals)}" }
        if (options.attestation == SvcAttestation.OFF) return send(signals)
        undo = attestations.ask(endsAtMs) { claim ->
            guarded {
                shared.log { "attestation: ${claim["format"]}" }
                signals["attestation"] = claim
                send(signals)
            }
        }
    }

    private fun leftOut(signals: Map<String, Any?>): List<String> =
        ((signals["app"] as? Map<*, *>)?.get("left_out") as? List<*>)?.map { "$it" } ?: emptyList()

    private fun send(signals: Map<String, Any?>) {
        val content = HashMap(subject)
        content["sdk"] = shared.sdk
        content["signals"] = signals
        if (options.verdict) content["verdict"] = true
        val body = Json.canonical(content).toByteArray(Charsets.UTF_8)
        val key = Texts.timeOrderedId(host.nowMs(), host.random(16))
        attempt(Attempts(options.endpoints.size, shared.endpoint), body, key, leftOut(signals))
    }

    private fun attempt(attempts: Attempts, body: ByteArray, key: String, leftOut: List<String>) {
        attempts.begin()
        val at = attempts.endpoint
        val beganAtMs = loop.nowMs()
        val more = mapOf("idempotency-key" to key, "x-svc-replay" to "full")
        val exchange = Exchange(shared, PATH, body, more, "request_id", at, { attempts.limitMs(loop.nowMs(), endsAtMs) }) { outcome ->
            guarded {
                val now = loop.nowMs()
                val failure = outcome as? Outcome.Failure
                shared.log { "attempt ${attempts.count} at ${options.endpoints[at]}: ${failure?.code ?: "ok"} in ${now - beganAtMs} ms" }
                if (failure == null || failure.status != 0) shared.endpoint = at
                timed(SvcTiming(collectedMs - beganMs, now - beganAtMs, now - beganMs, attempts.count, body.size, options.endpoints[at], leftOut))
                val wait = attempts.waitMs(outcome, now, endsAtMs) { (host.random(2)[0].toInt() and 255) / 256.0 }
                if (wait == null) finish(outcome) else undo = loop.after(wait) { guarded { attempt(attempts, body, key, leftOut) } }
            }
        }
        undo = exchange::stop
        exchange.start()
    }

    private fun finish(outcome: Outcome) {
        isOver = true
        ended(this, outcome)
    }

    private companion object {
        const val PATH = "/api/v1/identify"
        const val TOKEN = "token"
        const val ONLINE = "online"
        const val READ_FIRST = 4
    }
}

/** Proofs of app and device, one after the other: the key store has one place for the key. On the loop alone. */
internal class Attestations(private val shared: Shared) {
    private inner class Turn(val endsAtMs: Long, val done: (Map<String, Any?>) -> Unit) {
        private var isOver = false
        private var exchange: Exchange? = null
        private val forgive = shared.loop.after(endsAtMs - shared.loop.nowMs()) { end(Attestation.NONE) }

        fun begin() {
            if (exchange != null) return
            val limit = { minOf(CHALLENGE_MS, endsAtMs - shared.loop.nowMs()) }
            exchange = Exchange(shared, "/api/v1/attestation/challenge", ByteArray(0), emptyMap(), "challenge", shared.endpoint, limit) {
                attest((it as? Outcome.Response)?.members?.get("challenge"))
            }.apply { start() }
        }

        private fun attest(challenge: Any?) {
            val bytes = Attestation.challengeBytes(challenge) ?: return end(Attestation.NONE)
            var chain: List<ByteArray>? = null
            isBusy = true
            val work = { chain = if (shared.isForgotten) null else shared.host.attest(bytes) }
            val ended = {
                isBusy = false
                isHung = false
                if (chain == null) cannot = true
                end(Attestation.claim(challenge, chain))
                go()
            }
            val overdue = {
                isHung = true
                end(Attestation.NONE)
                go()
            }
            shared.attesters.run(Task("attest", { endsAtMs - shared.loop.nowMs() }, work, ended, overdue))
        }

        fun stop() {
            if (isOver) return
            isOver = true
            forgive()
            exchange?.stop()
            leave(this)
        }

        fun end(claim: Map<String, Any?>) {
            if (isOver) return
            stop()
            done(claim)
        }
    }

    private val turns = ArrayList<Turn>()
    private var cannot = false

    /** The key store is at work, perhaps for a turn that is over. */
    private var isBusy = false

    /** It is beyond its limit: nobody waits for it. */
    private var isHung = false

    /** [done] gets a claim: never a failure, what cannot be had in time is none. What it returns ends the wait. */
    fun ask(endsAtMs: Long, done: (Map<String, Any?>) -> Unit): () -> Unit {
        val turn = Turn(minOf(endsAtMs, shared.loop.nowMs() + LIMIT_MS), done)
        turns.add(turn)
        if (turns.size == 1) go()
        return turn::stop
    }

    private fun leave(turn: Turn) {
        val wasFirst = turns.firstOrNull() === turn
        turns.remove(turn)
        if (wasFirst) shared.loop.post(::go)
    }

    private fun go() {
        val turn = turns.firstOrNull() ?: return
        if (cannot || isHung || shared.isForgotten) turn.end(Attestation.NONE) else if (!isBusy) turn.begin()
    }

    private companion object {
        const val LIMIT_MS = 3_000L
        const val CHALLENGE_MS = 2_000L
    }
}
