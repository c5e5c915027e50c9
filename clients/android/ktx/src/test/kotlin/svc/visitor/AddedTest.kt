package svc.visitor

import com.sun.net.httpserver.HttpServer
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import okhttp3.OkHttpClient
import okhttp3.Request
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import svc.visitor.okhttp.SvcInterceptor
import svc.visitor.testing.FakeSvcVisitor
import java.io.InterruptedIOException
import java.net.InetAddress
import java.net.InetSocketAddress
import java.util.concurrent.CopyOnWriteArrayList

/** Coroutines, the interceptor and the fake, each by the others. */
class AddedTest {
    private val fake = FakeSvcVisitor()
    private val late = SvcException("timeout", "late", retryable = true)

    @Test fun `a coroutine gets the result or the error`() = runBlocking {
        fake.responds("""{"request_id":"r1"}""")
        assertEquals("r1", fake.identify(tag = "t", action = "log_in", timeoutMs = 500).requestId)
        assertEquals(listOf("t", "log_in", 500L), fake.requests.single().run { listOf(tag, action, timeoutMs) })
        fake.fails(late)
        val error = try { fake.identify() } catch (error: SvcException) { error }
        assertEquals(late, error)
    }

    @Test fun `a coroutine that is canceled stops waiting`() = runBlocking {
        fake.holds()
        val reported = CopyOnWriteArrayList<Any>()
        val job = launch(Dispatchers.Default) { try { fake.identify() } catch (error: CancellationException) { reported.add(error); throw error } }
        while (fake.requests.isEmpty()) Thread.yield()
        job.cancel()
        job.join()
        assertTrue(reported.single() is CancellationException)
    }

    @Test fun `the fake holds calls until they are released or canceled, and forgets`() {
        fake.holds()
        val reported = CopyOnWriteArrayList<String>()
        val callback = object : SvcCallback {
            override fun onSuccess(result: SvcIdentification) { reported.add(result.requestId) }
            override fun onFailure(error: SvcException) { reported.add(error.code) }
        }
        fake.identify(SvcRequest("a"), callback).cancel()
        fake.identify(SvcRequest("b"), callback)
        assertEquals(listOf("aborted"), reported)
        fake.responds("""{"request_id":"r2"}""")
        fake.release()
        assertEquals(listOf("aborted", "r2"), reported)
        fake.forget { reported.add("forgotten") }
        fake.setLocationMocked(true)
        assertEquals(listOf(true, true, "forgotten"), listOf(fake.isForgotten, fake.isLocationMocked, reported.last()))
    }

    private fun serving(work: (String, List<String?>) -> Unit) {
        val headers = CopyOnWriteArrayList<String?>()
        val server = HttpServer.create(InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0)
        server.createContext("/") { exchange ->
            headers.add(exchange.requestHeaders.getFirst("x-svc-request-id"))
            exchange.sendResponseHeaders(204, -1)
            exchange.close()
        }
        server.start()
        try {
            work("http://127.0.0.1:${server.address.port}", headers)
        } finally {
            server.stop(0)
        }
    }

    @Test fun `an id that no header can have is left out, and an interruption is one of OkHttp's`() = serving { url, headers ->
        val client = OkHttpClient.Builder().addInterceptor(SvcInterceptor(fake) { SvcRequest("t") }).build()
        fun ask() = client.newCall(Request.Builder().url(url).build()).execute().close()
        fake.responds("""{"request_id":"r\u0000\ud800\r\nx: y"}""")
        ask()
        assertEquals(listOf(null), headers)
        fake.holds()
        Thread.currentThread().interrupt()
        assertThrows(InterruptedIOException::class.java) { ask() }
        assertTrue(Thread.interrupted())
    }

    @Test fun `the interceptor gives a request its id, and lets it go without where there is none`() = serving { url, headers ->
        val interceptor = SvcInterceptor(fake, timeoutMs = 300) { if (it.url.encodedPath == "/log-in") SvcRequest("t") else null }
        val client = OkHttpClient.Builder().addInterceptor(interceptor).build()
        fun ask(path: String) = client.newCall(Request.Builder().url("$url$path").build()).execute().close()
        fake.responds("""{"request_id":"r3"}""")
        ask("/log-in")
        ask("/pictures")
        fake.fails(late)
        ask("/log-in")
        fake.holds()
        val began = System.nanoTime()
        ask("/log-in")
        assertTrue(System.nanoTime() - began >= 300_000_000)
        assertEquals(listOf("r3", null, null, null), headers)
        assertEquals(listOf<Any?>("t", 300L), fake.requests.first().run { listOf(tag, timeoutMs) })
        assertEquals(3, fake.requests.size)
    }
}
