package svc.visitor

import svc.visitor.core.Engine
import svc.visitor.core.Host
import svc.visitor.core.Http
import svc.visitor.core.HttpRequest
import svc.visitor.core.HttpResponse
import svc.visitor.core.Job
import svc.visitor.core.Json
import svc.visitor.core.Loop
import svc.visitor.core.MemoryStore
import svc.visitor.core.PinException
import svc.visitor.core.Queue
import svc.visitor.core.Source
import svc.visitor.core.Stop
import svc.visitor.core.Store
import svc.visitor.core.Token
import java.io.IOException
import java.util.PriorityQueue
import java.util.concurrent.Executor

/** Virtual time. A job does its work when it begins, and ends as much later as [took] says by then; `null` is never. */
class VirtualLoop : Loop {
    private class Due(val at: Long, val number: Int, val event: () -> Unit)

    private val due = PriorityQueue<Due>(compareBy<Due> { it.at }.thenBy { it.number })
    private var now = 0L
    private var numbers = 0
    var took: Long? = 0

    override fun nowMs() = now

    override fun post(event: () -> Unit) {
        after(0, event)
    }

    override fun after(ms: Long, event: () -> Unit): () -> Unit {
        val made = Due(now + maxOf(0, ms), numbers++, event).also { due.add(it) }
        return { due.remove(made) }
    }

    override fun start(job: Job) {
        took = 0
        try {
            job.work()
        } catch (_: Throwable) {
        }
        took?.let { after(it, job.ended) }
    }

    fun run() {
        while (true) {
            val next = due.poll() ?: return
            now = next.at
            next.event()
        }
    }
}

/** A phone, servers and an app that are the script of a case of `engine.json`. */
@Suppress("UNCHECKED_CAST")
class Script(private val given: Members) : Host, Http {
    private val loop = VirtualLoop()
    private val taken = HashMap<String, Int>()
    private val reported = ArrayList<Members>()
    private val requests = ArrayList<Members>()
    private val reads = ArrayList<Members>()
    private val attested = ArrayList<Long>()
    private val forgotten = ArrayList<Long>()
    private val kept = MemoryStore()
    override val version = "0"
    override val userAgent = "svc-android/0"
    override val callbackExecutor = Executor { it.run() }

    private fun member(name: String) = given[name] as Members

    private fun list(value: Any?) = value as List<Members>

    /** The next step, and with it how long the job takes. */
    private fun step(name: String, steps: Any?): Members {
        val number = taken.merge(name, 1, Int::plus)!!
        val step = list(steps).let { it[minOf(number, it.size) - 1] }
        loop.took = if (step["hangs"] == true) null else step["after_ms"] as Long? ?: 0
        return step
    }

    private fun source(described: Members, prefix: String = ""): Source {
        val name = described["name"] as String
        return Source(name, isConstant = described["constant"] == true) { reading(prefix + name, described["readings"]) }
    }

    private fun reading(name: String, steps: Any?): Any? {
        reads.add(mapOf("at_ms" to loop.nowMs(), "name" to name))
        val step = step(name, steps)
        if ("fault" in step) throw IllegalStateException()
        return step["value"]
    }

    override fun nowMs() = EPOCH_MS + loop.nowMs()

    override fun elapsedMs() = loop.nowMs()

    override fun random(count: Int) = ByteArray(count) { 128.toByte() }

    override fun isOnline() = reading("online", given["online"]) != false

    override fun sources() = list(given["sources"]).map { source(it) }

    override fun checks() = list(given["checks"]).map { source(it, "flags.") }

    override fun deferredSources() = list(given["second"]).map { source(it) }

    override fun forgetAttestation() {}

    override val store: Store = object : Store by kept {
        override fun read(name: String): String? {
            if (name == Token.NAME) {
                if (reads.none { it == mapOf("at_ms" to loop.nowMs(), "name" to "token") }) reading("token", member("store")["readings"])
            }
            return kept.read(name)
        }
    }

    override fun attest(challenge: ByteArray): List<ByteArray> {
        attested.add(loop.nowMs())
        val step = step("attest", member("scripts")["attest"])
        if ("fault" in step) throw IllegalStateException("-66")
        return (step["chain"] as List<Long>? ?: emptyList()).map { ByteArray(it.toInt()) }
    }

    override fun exchange(request: HttpRequest, limitMs: Long, stop: Stop): HttpResponse {
        val path = request.url.substringAfterLast('/')
        val at = request.url.removePrefix("http://127.0.0.1:").substringBefore('/').toLong() - 1
        requests.add(mapOf("at_ms" to loop.nowMs(), "path" to path, "endpoint" to at) + if (path == "identify") about(request) else emptyMap())
        val step = step(path, member("scripts")[path])
        when (step["fault"]) {
            "network" -> throw IOException()
            "pin" -> throw IOException(PinException())
        }
        if (step["hangs"] == true) throw IOException()
        val status = (step["status"] as Long).toInt()
        if (status == 0) throw IOException()
        return HttpResponse(status, step["headers"] as Map<String, String>? ?: emptyMap(), step["body"] as String? ?: "")
    }

    private fun about(request: HttpRequest): Members {
        val body = Json.parse(String(request.body)) as Members
        val signals = body["signals"] as Members
        val found = HashMap<String, Any?>()
        found["tag"] = body["tag"]
        found["has"] = listOf("android_id", "client_token", "model").filter { it in signals }
        found["left_out"] = (signals["app"] as Members?)?.get("left_out") ?: emptyList<String>()
        (signals["flags"] as Members?)?.let { found["flags"] = it.keys.sorted() }
        (signals["attestation"] as Members?)?.let { found["attestation"] = it["format"] }
        return found
    }

    private fun options(): SvcOptions {
        val wanted = member("options")
        val urls = (1..(wanted["endpoints"] as Long? ?: 1)).map { "http://127.0.0.1:$it" }
        val made = SvcOptions.Builder(KEY, urls[0]).alsoAt(*urls.drop(1).toTypedArray()).deferred(wanted["deferred"] == true)
        for ((name, value) in wanted) when (name) {
            "timeout_ms" -> made.timeoutMs(value as Long)
            "collect_ms" -> made.collectMs(value as Long)
            "storage" -> made.storage(value as Boolean)
            "device_id" -> made.deviceId(value as Boolean)
            "minimal" -> made.minimal(value as Boolean)
            "attestation" -> made.attestation(SvcAttestation.WHEN_POSSIBLE)
            "endpoints", "deferred" -> {}
            else -> throw IllegalArgumentException("unknown option $name")
        }
        return made.build()
    }

    private inner class Waiting(private val call: String) : SvcCallback {
        override fun onSuccess(result: SvcIdentification) = tell("ok")

        override fun onFailure(error: SvcException) = tell(error.code)

        private fun tell(code: String) {
            reported.add(mapOf("at_ms" to loop.nowMs(), "call" to call, "code" to code))
            if (call in given["hanging_callbacks"] as List<*>) loop.took = null
        }
    }

    fun run(): Members {
        (member("store")["token"] as String?)?.let { kept.write(Token.NAME, it) }
        val engine = Engine(options(), this, 0, loop, this)
        val calls = HashMap<String, SvcCancellable>()
        for (event in list(given["events"])) loop.after(event["at_ms"] as Long) {
            val call = event["call"] as String?
            when (event["do"]) {
                "identify" -> {
                    val request = SvcRequest.Builder().tag(event["tag"] as String?).timeoutMs(event["timeout_ms"] as Long?).build()
                    calls[call!!] = engine.identify(request, Waiting(call))
                }
                "cancel" -> calls[call!!]!!.cancel()
                "forget" -> engine.forget { forgotten.add(loop.nowMs()) }
                else -> throw IllegalArgumentException("unknown event $event")
            }
        }
        loop.run()
        return mapOf(
            "reported" to reported.sortedWith(compareBy({ it["at_ms"] as Long }, { it["call"] as String })),
            "requests" to requests.sortedWith(compareBy({ it["at_ms"] as Long }, { it["path"] as String }, { "${it["tag"]}" })),
            "reads" to reads.sortedWith(compareBy({ it["at_ms"] as Long }, { it["name"] as String })),
            "attested_at_ms" to attested, "forgotten_at_ms" to forgotten, "stored" to stored().sorted(),
        )
    }

    private fun stored(): List<String> = kept.names().map { name ->
        if (!name.startsWith(Queue.PREFIX)) name
        else "deferred " + ((Json.parse(kept.read(name)!!) as Members)["path"] as String).split('/').dropLast(1).last()
    }

    private companion object {
        const val EPOCH_MS = 1_772_359_200_000
    }
}
