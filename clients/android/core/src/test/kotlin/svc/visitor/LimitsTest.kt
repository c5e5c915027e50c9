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
