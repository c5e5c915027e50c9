package svc.visitor

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.TestFactory
import svc.visitor.core.Attempts
import svc.visitor.core.Attestation
import svc.visitor.core.Engine
import svc.visitor.core.Http
import svc.visitor.core.HttpRequest
import svc.visitor.core.HttpResponse
import svc.visitor.core.Json
import svc.visitor.core.MemoryStore
import svc.visitor.core.Outcome
import svc.visitor.core.Queue
import svc.visitor.core.Report
import svc.visitor.core.Sending
import svc.visitor.core.Source
import svc.visitor.core.Store
import svc.visitor.core.Texts
import svc.visitor.core.Token
import java.io.File
import java.io.IOException

typealias Members = Map<String, Any?>

/** The cases that all SDKs share; one of an unknown kind fails. */
class VectorsTest {
    @TestFactory fun retry() = cases("retry", 40)

    @TestFactory fun errors() = cases("errors", 30)

    @TestFactory fun canonical() = cases("canonical", 40)

    @TestFactory fun report() = cases("report", 20)

    @TestFactory fun deferred() = cases("deferred", 15)

    @TestFactory fun token() = cases("token", 10)

    @TestFactory fun attestation() = cases("attestation", 15)

    @TestFactory fun engine() = cases("engine", 60)

    @TestFactory fun apps() = cases("apps", 30)

    @Suppress("UNCHECKED_CAST")
    private fun cases(file: String, least: Int): List<DynamicTest> {
        val read = Json.parse(File(System.getProperty("vectors"), "$file.json").readText()) as Members
        assertEquals(1L, read["format"])
        val all = read["cases"] as List<Members>
        assertTrue(all.size >= least)
        val mine = all.filter { (it["only"] as? List<*>)?.contains("kotlin") ?: true }
            .filter { val platform = (it["given"] as? Members)?.get("platform"); platform == null || platform == "android" }
        return mine.map { case -> DynamicTest.dynamicTest("${case["name"]}") { assertEquals(shown(case["expect"]), shown(run(case))) } }
    }

    private fun shown(value: Any?) = Json.canonical(value)

    @Suppress("UNCHECKED_CAST")
    private fun run(case: Members): Any? {
        val given = case["given"]
        return when (case["kind"]) {
            "send" -> send(given as Members)
            "response" -> response(given as Members)
            "canonical" -> Json.canonical(given).let { mapOf("text" to it, "sha256" to Texts.sha256Hex(it)) }
            "report" -> report(given as Members) + mapOf("read" to (case["expect"] as Members)["read"])
            "token" -> token(given as Members)
            "deferred" -> deferred(given as Members)
            "client_data_hash" -> Attestation.challengeBytes(given)?.let { Texts.hex(Texts.sha256(it)) }
            "android_claim" -> claim(given as Members)
            "engine" -> Script(given as Members).run()
            "app_request" -> sent(given as Members)
            "app_refusal" -> (case["expect"] as Members).let { it + mapOf("told" to refused(it["status"] as Long, it["body"] as Members)) }
            else -> throw IllegalArgumentException("unknown kind ${case["kind"]}")
        }
    }

    private fun said(outcome: Outcome): Members = when (outcome) {
        is Outcome.Response -> mapOf("response" to outcome.members)
        is Outcome.Failure -> mapOf(
            "error" to mapOf(
                "code" to outcome.code, "status" to outcome.status, "retryable" to outcome.retryable,
                "retry_after_ms" to outcome.retryAfterMs, "request_id" to outcome.requestId,
            ),
        )
    }

    private fun http(step: Members): HttpResponse {
        @Suppress("UNCHECKED_CAST") val headers = step["headers"] as Map<String, String>
        return HttpResponse((step["status"] as Long).toInt(), headers.mapKeys { it.key.lowercase() }, step["body"] as String)
    }

    private fun response(given: Members) =
        @Suppress("UNCHECKED_CAST") said(Sending.read(http(given["response"] as Members), given["epoch_ms"] as Long))

    private fun send(given: Members): Members {
        if (given["online"] == false) {
            return mapOf("attempts" to emptyList<Any>(), "ended_at_ms" to 0) + said(Outcome.Failure("offline", "", retryable = true))
        }
        @Suppress("UNCHECKED_CAST") val script = given["script"] as List<Members>
        val draws = given["draws"] as List<*>
        val attempts = ArrayList<Members>()
        var now = 0L
        var drawn = 0
        val endsAt = given["timeout_ms"] as Long
        val message = Attempts((given["endpoints"] as Long).toInt())
        fun attempt(limitMs: Long): Outcome {
            val step = script[minOf(attempts.size, script.size - 1)]
            attempts.add(mapOf("endpoint" to message.endpoint, "at_ms" to now))
            val took = step["after_ms"] as? Long ?: 0
            if (step["fault"] == "silence" || took >= limitMs) {
                now += limitMs
                return Sending.timeout("")
            }
            now += took
            if (step["fault"] == "network") return Sending.network("")
            return Sending.read(http(step), given["epoch_ms"] as Long + now)
        }
        var outcome: Outcome
        while (true) {
            message.begin()
            outcome = attempt(message.limitMs(now, endsAt))
            now += message.waitMs(outcome, now, endsAt) { (draws[drawn++ % draws.size] as Number).toDouble() } ?: break
        }
        return mapOf("attempts" to attempts, "ended_at_ms" to now) + said(outcome)
    }

    @Suppress("UNCHECKED_CAST")
    private fun report(given: Members): Members {
        val options = given["options"] as Members
        val signals = Report.signals(
            Report.Given(
                (given["device"] as Members), given["flags"] as List<String>, given["failed_checks"] as List<String>,
                given["token"] as String?, given["nonce"] as String, given["collected_at"] as Long,
                options["storage"] as Boolean, options["device_id"] as Boolean, options["minimal"] as Boolean,
                options["bridge"] as String?,
            ),
        )
        return mapOf("signals" to signals, "bytes" to Json.canonical(signals).toByteArray().size)
    }

    private fun token(given: Members): Members {
        val faults = given["faults"] as List<*>
        var content = given["content"] as String?
        val store = object : Store {
            override fun read(name: String) = if ("read" in faults) throw IOException() else content

            override fun write(name: String, text: String) {
                if ("write" in faults) throw IOException()
                if ("lost_write" !in faults) content = text
            }

            override fun delete(name: String) = throw IOException()

            override fun names() = throw IOException()
        }
        val found = if (given["storage"] == true) Token.of(store) { given["made"] as String } else null
        return mapOf("client_token" to found, "content" to content)
    }

    @Suppress("UNCHECKED_CAST")
    private fun deferred(given: Members): Members {
        val now = given["now_ms"] as Long
        val queue = Queue(MemoryStore())
        fun add(one: Members, atMs: Long) =
            queue.add(atMs, one["expires_at_ms"] as Long, one["id"] as String, "/${one["id"]}", "x".repeat((one["bytes"] as Long).toInt()))
        for (one in given["queue"] as List<Members>) add(one, 0)
        (given["add"] as Members?)?.let { add(it, now) }
        val responses = (given["responses"] as List<Long>).iterator()
        val requests = ArrayList<String>()
        var isOver = false
        queue.flush(now) {
            if (!responses.hasNext()) {
                isOver = true
                return@flush 0
            }
            requests.add(it.path.drop(1))
            responses.next().toInt()
        }
        assertTrue(isOver || !responses.hasNext() || queue.queued().isEmpty() || requests.size == (given["responses"] as List<*>).size)
        return mapOf("queue" to queue.queued().map { it.substringAfterLast('-') }, "requests" to requests)
    }

    private fun claim(given: Members): Members {
        val chain = (given["chain"] as List<*>?)?.map { ByteArray((it as Long).toInt()) }
        return Attestation.claim(given["challenge"], chain)
    }

    /** What is sent for these options, subject and phone. */
    @Suppress("UNCHECKED_CAST")
    private fun sent(given: Members): Members {
        val device = given["device"] as Members
        val store = MemoryStore()
        (given["token"] as String?)?.let { store.write(Token.NAME, it) }
        val phone = object : Phone(device.map { (name, value) -> Source(name) { value } }, store = store) {
            override val userAgent = given["user_agent"] as String
            override val version = given["version"] as String

            override fun nowMs() = given["now_ms"] as Long

            override fun random(count: Int) = ByteArray(count) { 128.toByte() }
        }
        val wanted = given["options"] as Members
        val options = SvcOptions.Builder(given["api_key"] as String, given["endpoint"] as String).deferred(false)
            .storage(wanted["storage"] as Boolean).deviceId(wanted["device_id"] as Boolean)
            .minimal(wanted["minimal"] as Boolean).verdict(wanted["verdict"] as Boolean)
        (wanted["bridge"] as Members?)?.let { options.bridge(it["name"] as String, it["version"] as String) }
        val about = given["subject"] as Members
        val request = SvcRequest.Builder().tag(about["tag"] as String?).accountId(about["account_id"] as String?)
            .action(about["action"] as String?).build()
        var made: HttpRequest? = null
        val loop = VirtualLoop()
        val http = Http { sent, _, _ -> HttpResponse(200, emptyMap(), DONE).also { made = sent } }
        Engine(options.build(), phone, 0, loop, http).identify(request, Reported())
        loop.run()
        return made!!.run { mapOf("url" to url, "headers" to headers, "body" to Json.parse(String(body))) }
    }

    /** What is told of a refusal, its message without what the SDK adds. */
    private fun refused(status: Long, body: Members): Members {
        val outcome = Sending.read(HttpResponse(status.toInt(), emptyMap(), Json.canonical(body)), 0) as Outcome.Failure
        val message = outcome.message.removePrefix("$status ${outcome.code}: ").substringBefore(" The key sent is")
        return (said(outcome)["error"] as Members) + mapOf("message" to message)
    }

    @TestFactory
    fun base64() = (0..40).map { size ->
        DynamicTest.dynamicTest("base64 of $size bytes") {
            val bytes = ByteArray(size) { (it * 37 + size).toByte() }
            val text = java.util.Base64.getEncoder().encodeToString(bytes)
            assertEquals(text, Texts.base64(bytes))
            assertEquals(bytes.toList(), Texts.fromBase64(text)!!.toList())
            assertNull(Texts.fromBase64("$text\n"))
        }
    }
}
