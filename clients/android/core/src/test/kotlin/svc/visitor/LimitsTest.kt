package svc.visitor

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import svc.visitor.core.Engine
import svc.visitor.core.Http
import svc.visitor.core.Json
import svc.visitor.core.Source
import java.util.concurrent.CountDownLatch

/** Time limits on real threads, within a fifth of them: for a machine that has time, and so not with every change. */
class LimitsTest {
    private val forever = CountDownLatch(1)
    private val hanging = listOf("screen", "memory").map { Source(it) { forever.await() } }
    private val phone = Phone(hanging + listOf(Source("android_id") { "a1b2c3d4e5f60718" }, Source("build") { Phone.PIXEL }))

    private fun options(url: String) = SvcOptions.Builder(KEY, url).timeoutMs(LIMIT_MS).collectMs(500).deferred(false).build()

    private class Timed(private val began: Long = System.nanoTime()) : SvcCallback {
        val reported = Reported()
        @Volatile var tookMs = 0L

        override fun onSuccess(result: SvcIdentification) {
            tookMs = (System.nanoTime() - began) / 1_000_000
            reported.onSuccess(result)
        }

        override fun onFailure(error: SvcException) {
            tookMs = (System.nanoTime() - began) / 1_000_000
            reported.onFailure(error)
        }
    }

    private fun within(calls: List<Timed>) {
        for (call in calls) {
            assertEquals("timeout", call.reported.error().code)
            assertTrue(call.tookMs in LIMIT_MS - 5..LIMIT_MS * 6 / 5, "${call.tookMs}")
        }
    }

    private fun dripping(head: String, part: String): Step = { socket, _ ->
        try {
            socket.getOutputStream().write(head.toByteArray())
            while (true) {
                socket.getOutputStream().run { write(part.toByteArray()); flush() }
                Thread.sleep(100)
            }
        } catch (_: java.io.IOException) {
        }
    }

    @Test fun `twenty calls, two hung sources and servers that never finish`() {
        val chunk = "1\r\n \r\n"
        val servers = listOf(
            SILENCE, TRICKLE, dripping("HTTP/1.1 200 OK\r\nx: ", "y"), dripping("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", chunk),
            dripping("HTTP/1.1 503 X\r\ntransfer-encoding: chunked\r\n\r\n", chunk),
        )
        for (step in servers) Scripted(step).use { server ->
            val engine = Engine(options(server.url), phone)
            repeat(2) { round -> within((1..20).map { number -> Timed().also { engine.identify(SvcRequest("$round-$number"), it) } }) }
            assertTrue(server.received.isNotEmpty())
            for (request in server.received) assertTrue("android_id" in request.body && "Pixel 8" in request.body)
        }
    }

    /** What a server does, what a call reports of it, and how often it asked. */
    private class Behavior(val name: String, val code: String, val attempts: Int, vararg val steps: Step)

    private fun raw(text: String): Step = { socket, _ ->
        socket.getOutputStream().run { write(text.toByteArray()); flush() }
        socket.close()
    }

    private fun behaviors(): List<Behavior> {
        val away = refused(503, "service_unavailable")
        val chunk = "1\r\n \r\n"
        val many = (1..2_000).joinToString("") { "x-a$it: ${"y".repeat(100)}\r\n" }
        return listOf(
            Behavior("a response", "ok", 1, answer(200, DONE)),
            Behavior("429 once", "ok", 2, refused(429, "rate_limited", "retry-after: 0"), answer(200, DONE)),
            Behavior("429 for an hour", "rate_limited", 1, refused(429, "rate_limited", "retry-after: 3600")),
            Behavior("503 twice", "ok", 3, away, away, answer(200, DONE)),
            Behavior("503 for ever", "service_unavailable", 3, away),
            Behavior("503 in HTML", "bad_response", 3, answer(503, "<html>")),
            Behavior("401", "unauthorized", 1, refused(401, "unauthorized")),
            Behavior("a reset", "network", 3, RESET),
            Behavior("a body that is cut", "network", 3, raw("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n$DONE")),
            Behavior("a head that is cut", "network", 3, raw("HTTP/1.1 200 O")),
            Behavior("302 to elsewhere", "bad_response", 1, answer(302, "", "location: http://127.0.0.1:1/x")),
            Behavior("307 to itself", "bad_response", 1, answer(307, "", "location: /api/v1/identify")),
            Behavior("a login page", "bad_response", 1, answer(200, "<html>Wi-Fi", "content-type: text/html")),
            Behavior("8 MiB of blanks", "bad_response", 1, answer(200, " ".repeat(1 shl 23))),
            Behavior("headers of 200 kB", "ok", 1, raw("HTTP/1.1 200 OK\r\n${many}content-length: ${DONE.length}\r\n\r\n$DONE")),
            Behavior("200,000 brackets", "bad_response", 1, answer(200, "[".repeat(200_000))),
            Behavior("an object without id", "bad_response", 1, answer(200, "{}")),
            Behavior("silence", "timeout", 1, SILENCE),
            Behavior("a head that drips", "timeout", 1, dripping("HTTP/1.1 200 OK\r\nx: ", "y")),
            Behavior("a body that drips", "timeout", 1, TRICKLE),
            Behavior("chunks that drip", "timeout", 1, dripping("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", chunk)),
        )
    }

    @Test fun `whatever a server does, a call has its code within the limit, and nothing that identifies is lost`() {
        for (one in behaviors()) Scripted(*one.steps).use { server ->
            val call = Timed().also { Engine(options(server.url), phone).identify(SvcRequest("t"), it) }
            val found = call.reported.next()
            assertEquals(one.code, (found as? SvcException)?.code ?: "ok", one.name)
            assertTrue(call.tookMs <= LIMIT_MS * 6 / 5, "${one.name}: ${call.tookMs}")
            assertEquals(one.attempts, server.received.size, one.name)
            assertEquals(1, server.received.map { it.headers["idempotency-key"] + it.body }.toSet().size, one.name)
            assertTrue(server.received.all { "android_id" in it.body && "client_token" in it.body && "Pixel 8" in it.body }, one.name)
        }
    }

    @Test fun `names that are never resolved, and a connection that cannot be ended`() {
        val http = Http { _, _, _ -> forever.await().let { throw java.io.IOException() } }
        fun own() = Thread.getAllStackTraces().keys.filter { it.name == "svc-visitor" && it.isAlive }
        val before = own().toSet()
        val engine = Engine(options("https://id.shop.example"), phone, http = http)
        for (round in 1..4) within((1..5).map { number -> Timed().also { engine.identify(SvcRequest("$round-$number"), it) } })
        val threads = own() - before
        assertTrue(threads.size <= 31, "${threads.size}")
        forever.countDown()
    }

    @Test fun `twenty calls at once to a slow server all have their responses and ids`() {
        Scripted({ socket, request -> Thread.sleep(100); answer(200, DONE)(socket, request) }).use { server ->
            val engine = Engine(options(server.url), phone)
            (1..20).map { number -> Timed().also { engine.identify(SvcRequest("$number"), it) } }.forEach { it.reported.result() }
            val tags = server.received.map { (Json.parse(it.body) as Members)["tag"] }
            assertEquals((1..20).map { "$it" }.toSet(), tags.toSet())
            assertTrue(server.received.all { "android_id" in it.body && "client_token" in it.body })
        }
    }

    private companion object {
        const val LIMIT_MS = 1_500L
    }
}
