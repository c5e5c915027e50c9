package svc.visitor

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import svc.visitor.core.Engine
import svc.visitor.core.Json
import svc.visitor.core.MemoryStore
import svc.visitor.core.Queue
import svc.visitor.core.Source
import svc.visitor.core.Token
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit

class EngineTest {
    private fun options(vararg urls: String, change: SvcOptions.Builder.() -> Unit = {}): SvcOptions =
        SvcOptions.Builder(KEY, urls[0]).alsoAt(*urls.drop(1).toTypedArray()).deferred(false).apply(change).build()

    private fun asked(tag: String? = null, account: String? = null, action: String? = null, timeoutMs: Long? = null) =
        SvcRequest.Builder().tag(tag).accountId(account).action(action).timeoutMs(timeoutMs).build()

    private fun Engine.reported(request: SvcRequest = SvcRequest("t")) = Reported().also { identify(request, it) }

    @Suppress("UNCHECKED_CAST")
    private fun signals(request: Received) = (Json.parse(request.body) as Members)["signals"] as Members

    private fun leftOut(request: Received) = (signals(request)["app"] as Members?)?.get("left_out")

    // One call

    @Test fun `a report is sent once with key, agent and token, and the response comes back whole`() {
        Scripted(answer(200, DONE)).use { server ->
            val phone = Phone()
            val result = Engine(options(server.url), phone).reported(asked("t", "user-1", "log_in")).result()
            assertEquals(listOf(REQUEST_ID, "lW3DvNunzmoofQrBqNAw", DONE), listOf(result.requestId, result.visitorId, result.json))
            assertEquals(true, result.visitorIsNew)
            assertNull(result.suspectScore)
            val request = server.received.single()
            assertEquals("/api/v1/identify", request.path)
            assertEquals(KEY, request.headers["x-api-key"])
            assertEquals(phone.userAgent, request.headers["user-agent"])
            assertEquals("android", request.headers["x-svc-sdk-platform"])
            assertNull(request.headers["origin"])
            assertTrue(Regex("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}").matches(request.headers["idempotency-key"]!!))
            val body = Json.parse(request.body) as Members
            assertEquals(request.body, Json.canonical(body))
            assertEquals(listOf("user-1", "log_in", "t"), listOf(body["account_id"], body["action"], body["tag"]))
            assertEquals(phone.store.read(Token.NAME), signals(request)["client_token"])
            assertTrue(request.body.toByteArray().size <= 2_000)
        }
    }

    @Test fun `a bridge has its own platform and version`() {
        Scripted(answer(200, DONE)).use { server ->
            Engine(options(server.url) { bridge("react-native", "0.1.0") }, Phone()).reported().result()
            val request = server.received.single()
            assertEquals("react-native-android", request.headers["x-svc-sdk-platform"])
            assertEquals("react-native/0.1.0", (signals(request)["app"] as Members)["bridge"])
        }
    }

    // Faults of the network

    private fun outcome(vararg steps: Step, timeoutMs: Long = 8_000): Pair<Any, List<Received>> = Scripted(*steps).use { server ->
        val reported = Engine(options(server.url) { timeoutMs(timeoutMs) }, Phone()).reported()
        Pair(reported.next(), server.received.toList())
    }

    private fun failure(vararg steps: Step, timeoutMs: Long = 8_000) = outcome(*steps, timeoutMs = timeoutMs).first as SvcException

    @Test fun `a lost response is asked for again with the same key and bytes`() {
        for (fault in listOf(RESET, refused(503, "service_unavailable"), answer(502, "<html>"), refused(429, "rate_limited", "retry-after: 0"))) {
            val (result, requests) = outcome(fault, answer(200, DONE))
            assertTrue(result is SvcIdentification, "$result")
            assertEquals(2, requests.size)
            assertEquals(1, requests.map { it.headers["idempotency-key"] + it.body }.toSet().size)
            assertTrue(requests.all { it.headers["x-svc-replay"] == "full" })
        }
    }

    @Test fun `a response that is cut is a lost one, wherever that was`() {
        val whole = "HTTP/1.1 200 OK\r\ncontent-length: ${DONE.length}\r\n\r\n$DONE"
        for (size in listOf(0, 1, 12, 20, 40, whole.length - DONE.length, whole.length - 1)) {
            val cut: Step = { socket, _ ->
                socket.getOutputStream().write(whole.substring(0, size).toByteArray())
                socket.close()
            }
            val (result, requests) = outcome(cut, answer(200, DONE))
            assertTrue(result is SvcIdentification, "$size $result")
            assertEquals(2, requests.size)
        }
    }

    @Test fun `what the service refuses is final and keeps its message`() {
        for ((status, code) in listOf(401 to "unauthorized", 402 to "no_credit", 408 to "timeout", 425 to "too_early", 422 to "validation_error")) {
            val (result, requests) = outcome(refused(status, code))
            val error = result as SvcException
            assertEquals(listOf(code, status, false, REQUEST_ID), listOf(error.code, error.status, error.retryable, error.requestId))
            assertTrue("said" in error.message!!)
            assertFalse(KEY in error.message!!)
            assertEquals(1, requests.size)
        }
    }

    @Test fun `each fault has its code`() {
        assertEquals("network", failure(RESET).code)
        assertEquals("bad_response", failure(answer(200, "<html>Wi-Fi login")).code)
        assertEquals("bad_response", failure(answer(302, "", "location: https://login.example/")).code)
        assertEquals("timeout", failure(SILENCE, timeoutMs = 300).code)
        assertEquals("timeout", failure(TRICKLE, timeoutMs = 300).code)
        val late = failure(refused(429, "rate_limited", "retry-after: 3600"))
        assertEquals(listOf("rate_limited", 3_600_000L, true), listOf(late.code, late.retryAfterMs, late.retryable))
        assertEquals("service_unavailable", failure(refused(503, "service_unavailable")).code)
    }

    @Test fun `nothing is sent where the system knows no network`() {
        Scripted(answer(200, DONE)).use { server ->
            assertEquals("offline", Engine(options(server.url), Phone().apply { isThere = false }).reported().error().code)
            assertEquals(0, server.received.size)
        }
    }

    @Test fun `the next endpoint is used where one is not there, and kept`() {
        val gone = Scripted(RESET).run { close(); url }
        Scripted(answer(200, DONE)).use { server ->
            val engine = Engine(options(gone, server.url), Phone())
            engine.reported().result()
            engine.reported().result()
            assertEquals(2, server.received.size)
            assertEquals(server.url, engine.lastTiming!!.endpoint)
            assertEquals(1, engine.lastTiming!!.attempts)
        }
    }

    // Faults of the phone

    private val hangs = CountDownLatch(1)

    private fun broken(fault: () -> Any?, which: Set<Int>) = (0..9).map { number ->
        val name = listOf("build", "cores", "memory", "disk", "screen", "languages", "timezone", "font_scale", "clock_24", "app")[number]
        Source(name, 50) { if (number in which) fault() else GOOD[name] }
    }

    private fun survives(fault: () -> Any?) {
        for (which in (0..9).map { setOf(it) } + setOf((0..9).toSet())) Scripted(answer(200, DONE)).use { server ->
            val phone = Phone(broken(fault, which))
            Engine(options(server.url) { collectMs(20_000) }, phone).reported().result()
            val missing = leftOut(server.received.single()) as List<*>
            val names = phone.sources().map { it.name }
            assertTrue(which.all { names[it] in missing }, "$which $missing")
            if (which.size == 1) assertEquals(1, missing.size, "$missing")
        }
    }

    @Test fun `each source may throw`() = survives { throw OutOfMemoryError() }

    @Test fun `each source may be nonsense`() = survives { listOf(mapOf("a" to 1.5)) }

    @Test fun `a source that hangs is not asked again before it ends, and what cannot change is read once`() {
        Scripted(answer(200, DONE)).use { server ->
            var asked = 0
            var read = 0
            val hanging = Source("screen", 50) { asked++; hangs.await() }
            val phone = Phone(listOf(Source("build", isConstant = true) { read++; Phone.PIXEL }, hanging))
            val engine = Engine(options(server.url) { collectMs(2_000) }, phone)
            repeat(3) { engine.reported().result() }
            assertEquals(listOf(1, 1), listOf(asked, read))
            assertEquals(listOf(listOf("screen")).toSet(), server.received.map { leftOut(it) }.toSet())
            hangs.countDown()
        }
    }

    @Test fun `checks become flags where they are true, and a check that fails is named`() {
        Scripted(answer(200, DONE)).use { server ->
            val checks = listOf(Source("rooted") { true }, Source("frida") { false }, Source("emulator") { throw SecurityException() })
            Engine(options(server.url), Phone(flags = checks)).reported().result()
            assertEquals(mapOf("rooted" to true), signals(server.received[0])["flags"])
            assertEquals(listOf("flags.emulator"), leftOut(server.received[0]))
        }
    }

    // Calls at the same time

    @Test fun `a hundred calls of twenty threads for one thing are one request`() {
        val gate = CountDownLatch(1)
        Scripted({ socket, request -> gate.await(); answer(200, DONE)(socket, request) }).use { server ->
            val engine = Engine(options(server.url), Phone())
            val reported = Reported()
            val threads = (1..20).map { Thread { repeat(5) { engine.identify(SvcRequest("t"), reported) } }.apply { start() } }
            threads.forEach { it.join() }
            gate.countDown()
            repeat(100) { assertEquals(REQUEST_ID, reported.result().requestId) }
            assertEquals(0, reported.count)
            assertEquals(1, server.received.size)
        }
    }

    @Test fun `other things are other requests, six at a time, and an urgent one passes`() {
        val gate = CountDownLatch(1)
        val service: Step = { socket, request ->
            if ("screen" in request.body) gate.await()
            answer(200, DONE)(socket, request)
        }
        Scripted(service).use { server ->
            val engine = Engine(options(server.url), Phone())
            val slow = (1..5).map { engine.reported(SvcRequest("screen $it")) }
            engine.reported(SvcRequest("form")).result()
            assertTrue(slow.all { it.count == 0 })
            gate.countDown()
            slow.forEach { it.result() }
            assertEquals(6, server.received.size)
        }
    }

    @Test fun `who cancels is notified, and the others go on`() {
        val gate = CountDownLatch(1)
        Scripted({ socket, request -> gate.await(); answer(200, DONE)(socket, request) }).use { server ->
            val engine = Engine(options(server.url), Phone())
            val other = engine.reported()
            val mine = Reported()
            engine.identify(SvcRequest("t"), mine).run { cancel(); cancel() }
            assertEquals("aborted", mine.error().code)
            gate.countDown()
            other.result()
            assertEquals(0, mine.count)
        }
    }

    @Test fun `a call that nobody waits for ends, and the next one is not delayed by it`() {
        Scripted(SILENCE, answer(200, DONE)).use { server ->
            val engine = Engine(options(server.url), Phone())
            val reported = Reported()
            val call = engine.identify(SvcRequest("t"), reported)
            while (server.received.isEmpty()) Thread.yield()
            call.cancel()
            assertEquals("aborted", reported.error().code)
            engine.reported().result()
        }
    }

    @Test fun `each caller has a time limit of its own`() {
        Scripted(SILENCE).use { server ->
            val engine = Engine(options(server.url) { timeoutMs(30_000) }, Phone())
            val patient = engine.reported()
            assertEquals("timeout", engine.reported(asked("t", timeoutMs = 200)).error().code)
            assertEquals(0, patient.count)
        }
    }

    @Test fun `callbacks that throw and executors that are closed harm nobody`() {
        Scripted(answer(200, DONE)).use { server ->
            val direct = Engine(options(server.url), Phone())
            val thrown = CountDownLatch(2)
            for (tag in listOf("a", "b")) direct.identify(SvcRequest(tag), object : SvcCallback {
                override fun onSuccess(result: SvcIdentification) {
                    thrown.countDown()
                    throw IllegalStateException("the app's own")
                }

                override fun onFailure(error: SvcException) {}
            })
            assertTrue(thrown.await(20, TimeUnit.SECONDS))
            direct.reported(SvcRequest("c")).result()
            val closed = java.util.concurrent.Executors.newSingleThreadExecutor().apply { shutdown() }
            Engine(options(server.url), Phone(callbackExecutor = closed)).identify(SvcRequest("a"), Reported())
            val engine = Engine(options(server.url), Phone())
            engine.reported(SvcRequest("b")).result()
        }
    }

    @Test fun `threads are few and gone when there is nothing to do`() {
        fun mine() = Thread.getAllStackTraces().keys.filter { it.name == "svc-visitor" && it.isAlive }
        val before = mine()
        Scripted(answer(200, DONE)).use { server ->
            val engine = Engine(options(server.url), Phone(), idleMs = 50)
            for (tag in 1..5) engine.reported(SvcRequest("t$tag")).result()
            val one = mine() - before.toSet()
            val all = (1..40).map { engine.reported(SvcRequest("t$it")) }
            all.forEach { it.result() }
            val own = mine() - before.toSet()
            assertTrue(one.size <= 6, "$one")
            assertTrue(own.size <= 14 && own.all { it.isDaemon }, "$own")
            own.forEach { it.join(20_000) }
            assertTrue(own.none { it.isAlive })
        }
    }

    // What is kept

    @Test fun `without storage neither token nor device id is sent, and nothing is stored`() {
        Scripted(answer(200, DONE)).use { server ->
            val phone = Phone(listOf(Source("build") { Phone.PIXEL }, Source("android_id") { "a1b2c3d4e5f60718" }))
            Engine(options(server.url) { storage(false) }, phone).reported().result()
            val sent = signals(server.received.single())
            assertEquals(listOf(null, null), listOf(sent["client_token"], sent["android_id"]))
            assertEquals(emptyList<String>(), phone.store.names())
        }
    }

    @Test fun `what is not to be sent is not read`() {
        Scripted(answer(200, DONE)).use { server ->
            val read = java.util.concurrent.CopyOnWriteArrayList<String>()
            val sources = listOf("build", "app", "screen", "timezone", "android_id").map { name -> Source(name) { read.add(name); GOOD[name] } }
            fun read(change: SvcOptions.Builder.() -> Unit): Set<String> {
                read.clear()
                Engine(options(server.url, change = change), Phone(sources)).reported().result()
                return read.toSet()
            }
            assertEquals(setOf("build", "app", "screen", "timezone", "android_id"), read { })
            assertEquals(setOf("build", "app", "android_id"), read { minimal(true) })
            assertEquals(setOf("build", "app", "screen", "timezone"), read { deviceId(false) })
            assertEquals(setOf("build", "app"), read { minimal(true).storage(false) })
        }
    }

    @Test fun `forget deletes what is stored, and later reports have no id`() {
        Scripted(answer(200, DONE)).use { server ->
            val phone = Phone(listOf(Source("build") { Phone.PIXEL }, Source("android_id") { "a1b2c3d4e5f60718" }))
            val engine = Engine(options(server.url), phone)
            engine.reported().result()
            Queue(phone.store).add(0, Long.MAX_VALUE, "1", "/x", "{}")
            val done = CountDownLatch(1)
            engine.forget { done.countDown() }
            assertTrue(done.await(20, TimeUnit.SECONDS))
            assertEquals(emptyList<String>(), phone.store.names())
            engine.reported().result()
            val sent = signals(server.received[1])
            assertEquals(listOf(null, null), listOf(sent["client_token"], sent["android_id"]))
            assertEquals(emptyList<String>(), phone.store.names())
        }
    }

    @Test fun `a second report follows, and waits where the service is away`() {
        val first = """{"request_id":"$REQUEST_ID","deferred_token":"AQGi"}"""
        val identified = ArrayDeque(listOf(answer(200, first)))
        val refusals = ArrayDeque(listOf(refused(503, "x")))
        // By what is asked for: how many calls it takes until the second report comes again is a matter of threads.
        val service: Step = { socket, request ->
            val step = if (isSecond(request)) refusals.removeFirstOrNull() ?: answer(202, "{}") else identified.removeFirstOrNull() ?: answer(200, DONE)
            step(socket, request)
        }
        Scripted(service).use { server ->
            val store = MemoryStore()
            val engine = Engine(options(server.url) { deferred(true) }, Phone(store = store))
            engine.reported().result()
            while (server.received.none(::isSecond)) Thread.yield()
            val second = server.received.first(::isSecond)
            assertEquals("/api/v1/events/$REQUEST_ID/supplement", second.path)
            val body = Json.parse(second.body) as Members
            assertEquals("AQGi", body["token"])
            assertEquals(mapOf("sensors" to "abc", "tier" to "deferred", "version" to 1L), body["signals"])
            assertEquals(1, Queue(store).queued().size)
            while (server.received.count(::isSecond) < 2) {
                engine.reported().result()
                Thread.yield()
            }
            assertEquals(second.body, server.received.last(::isSecond).body)
        }
    }

    @Test fun `nothing is written once forget has called back, whatever was at work`() {
        val first = """{"request_id":"$REQUEST_ID","deferred_token":"AQGi"}"""
        Scripted({ socket, request -> (if (isSecond(request)) refused(503, "x") else answer(200, first))(socket, request) }).use { server ->
            val reading = CountDownLatch(1)
            val goesOn = CountDownLatch(1)
            val writing = CountDownLatch(1)
            val store = object : svc.visitor.core.Store by MemoryStore() {
                val kept = MemoryStore()

                override fun write(name: String, text: String) {
                    if (name == Token.NAME) {
                        writing.countDown()
                        Thread.sleep(300)
                    }
                    kept.write(name, text)
                }

                override fun read(name: String) = kept.read(name)

                override fun delete(name: String) = kept.delete(name)

                override fun names() = kept.names()
            }
            val phone = object : Phone(store = store) {
                override fun deferredSources() = listOf(Source("sensors") { reading.countDown(); goesOn.await() })
            }
            val engine = Engine(options(server.url) { deferred(true) }, phone)
            val reported = engine.reported()
            assertTrue(writing.await(20, TimeUnit.SECONDS))
            val early = CountDownLatch(1)
            engine.forget { early.countDown() }
            assertEquals("aborted", reported.error().code)
            assertTrue(early.await(20, TimeUnit.SECONDS))
            assertEquals(emptyList<String>(), store.names())
            assertEquals(0, server.received.size)
            goesOn.countDown()
        }
    }

    private fun isSecond(request: Received) = request.path.endsWith("/supplement")

    // Attestation

    private fun claimed(phone: Phone, vararg steps: Step): Pair<Any?, List<Received>> = Scripted(*steps).use { server ->
        Engine(options(server.url) { attestation(SvcAttestation.WHEN_POSSIBLE) }, phone).reported().result()
        Pair(signals(server.received.last())["attestation"], server.received.toList())
    }

    private val challenge = """{"challenge":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=","expires_at":"2026-01-01T00:00:00Z"}"""

    @Test fun `a chain for the challenge is sent`() {
        val phone = Phone().apply { attests = { listOf(it, it) } }
        val (claim, requests) = claimed(phone, answer(200, challenge), answer(200, DONE))
        val bytes = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
        assertEquals(mapOf("format" to "android-key", "challenge" to bytes, "certificate_chain" to listOf(bytes, bytes)), claim)
        assertEquals(listOf("/api/v1/attestation/challenge", "/api/v1/identify"), requests.map { it.path })
    }

    @Test fun `whatever goes wrong with it, the report says none`() {
        val none = mapOf("format" to "none")
        assertEquals(none, claimed(Phone(), answer(200, challenge), answer(200, DONE)).first)
        assertEquals(none, claimed(Phone(), refused(401, "unauthorized"), answer(200, DONE)).first)
        assertEquals(none, claimed(Phone(), RESET, answer(200, DONE)).first)
        assertEquals(none, claimed(Phone(), answer(200, """{"challenge":"short"}"""), answer(200, DONE)).first)
    }

    // Options

    @Test fun `wrong options are refused with a reason, which has no whole key`() {
        fun fault(key: String, url: String, change: SvcOptions.Builder.() -> Unit = {}): String {
            val error = assertThrows(SvcException::class.java) { SvcOptions.Builder(key, url).apply(change).build() }
            assertEquals("invalid_options", error.code)
            assertFalse(key in error.message!! && key.length > 10)
            return error.message!!
        }
        val url = "https://id.shop.example"
        assertTrue("revoke" in fault("svc_sk_us_production_0123456789abcdef", url))
        assertTrue("public key" in fault("nothing", url))
        for (remote in listOf("http://id.shop.example", "http://127.example.com", "http://localhost.example")) assertTrue("https" in fault(KEY, remote))
        assertTrue("development" in fault("svc_pk_us_production_0123456789abcdef", "http://10.0.2.2:8080"))
        for (wrong in listOf("ftp://a.example", "id.shop.example", "", "https://")) fault(KEY, wrong)
        fault(KEY, url) { timeoutMs(0) }
        fault(KEY, url) { collectMs(-1) }
        fault(KEY, url) { pins("one") }
        for (right in listOf("http://10.0.2.2:8080", "http://localhost:8080/", "https://id.shop.example/api/v1/")) SvcOptions.Builder(KEY, right).build()
    }

    @Test fun `a wrong request is a failure and not an exception`() {
        val engine = Engine(options("https://id.shop.example"), Phone())
        val cut = "half \ud83d"
        for (wrong in listOf(SvcRequest("x".repeat(1_025)), SvcRequest(cut), asked(account = ""), asked(account = "a\n"), asked(action = "Log in"), asked(timeoutMs = 0))) {
            assertEquals("invalid_options", engine.reported(wrong).error().code)
        }
    }

    private companion object {
        val GOOD = mapOf(
            "build" to Phone.PIXEL, "cores" to 8, "memory" to 8_000_000_000, "disk" to 100_000_000_000, "timezone" to "Europe/London",
            "screen" to mapOf("modes" to listOf(listOf(1080, 2400)), "density" to 420), "languages" to listOf("en"),
            "font_scale" to 1.0, "clock_24" to true, "app" to mapOf("package" to "com.example.shop", "version" to "42"),
        )
    }
}
