package svc.visitor

import svc.visitor.core.Host
import svc.visitor.core.MemoryStore
import svc.visitor.core.Source
import svc.visitor.core.Store
import java.io.IOException
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.util.Collections
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.Executor
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit

const val REQUEST_ID = "01a2042b-19c8-7634-acc2-3c7222649719"
const val KEY = "svc_pk_us_development_0123456789abcdefghij"
const val DONE = """{"request_id":"$REQUEST_ID","visitor_id":"lW3DvNunzmoofQrBqNAw","visitor_is_new":true,"triggers":[]}"""

/** A request as it arrived. */
class Received(val path: String, val headers: Map<String, String>, val body: String)

/** What to do with a connection, once its request is read. */
typealias Step = (Socket, Received) -> Unit

fun answer(status: Int, body: String, vararg headers: String): Step = { socket, _ ->
    val bytes = body.toByteArray()
    val head = "HTTP/1.1 $status X\r\ncontent-length: ${bytes.size}\r\nconnection: close\r\n" + headers.joinToString("") { "$it\r\n" } + "\r\n"
    socket.getOutputStream().run { write(head.toByteArray() + bytes); flush() }
    socket.close()
}

fun refused(status: Int, code: String, vararg headers: String) =
    answer(status, """{"error":{"code":"$code","message":"said","status":$status},"request_id":"$REQUEST_ID"}""", *headers)

val RESET: Step = { socket, _ ->
    socket.setSoLinger(true, 0)
    socket.close()
}
val SILENCE: Step = { socket, _ -> socket.getInputStream().read() }

/** A byte of the body now and then, until the other side leaves. */
val TRICKLE: Step = { socket, _ ->
    val out = socket.getOutputStream()
    out.write("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n".toByteArray())
    try {
        while (true) {
            out.write(32)
            out.flush()
            Thread.sleep(20)
        }
    } catch (_: IOException) {
    }
}

/** Does these steps, connection by connection, and the last one for ever. */
class Scripted(private vararg val steps: Step) : AutoCloseable {
    val received = CopyOnWriteArrayList<Received>()
    private val server = ServerSocket(0, 200, InetAddress.getLoopbackAddress())
    private val sockets = Collections.synchronizedList(ArrayList<Socket>())
    val url = "http://127.0.0.1:${server.localPort}"

    init {
        Thread {
            try {
                while (true) server.accept().let { sockets.add(it); Thread { serve(it) }.apply { isDaemon = true }.start() }
            } catch (_: IOException) {
            }
        }.apply { isDaemon = true }.start()
    }

    private fun serve(socket: Socket) = try {
        val input = socket.getInputStream()
        val head = StringBuilder()
        while (!head.endsWith("\r\n\r\n")) head.append(input.read().also { if (it < 0) throw IOException() }.toChar())
        val lines = head.trim().split("\r\n")
        val headers = lines.drop(1).associate { it.substringBefore(':').lowercase() to it.substringAfter(':').trim() }
        val body = ByteArray(headers["content-length"]?.toInt() ?: 0)
        java.io.DataInputStream(input).readFully(body)
        val request = Received(lines[0].split(" ")[1], headers, String(body))
        val step = synchronized(received) {
            received.add(request)
            steps[minOf(received.size, steps.size) - 1]
        }
        step(socket, request)
    } catch (_: IOException) {
    }

    override fun close() {
        server.close()
        for (socket in sockets.toList()) socket.close()
    }
}

/** A phone of which a test decides what goes wrong. */
open class Phone(
    private val read: List<Source> = listOf(Source("build") { PIXEL }),
    private val flags: List<Source> = emptyList(),
    override val store: Store = MemoryStore(),
    override val callbackExecutor: Executor = Executor { it.run() },
) : Host {
    var isThere = true
    var attests: (ByteArray) -> List<ByteArray> = { throw IllegalStateException("-66") }
    override val userAgent = "svc-android/0.1.0 (Android 15; com.example.shop/42)"
    override val version = "0.1.0"

    override fun nowMs() = System.currentTimeMillis()

    override fun elapsedMs() = System.nanoTime() / 1_000_000

    override fun random(count: Int) = ByteArray(count).also { java.security.SecureRandom().nextBytes(it) }

    override fun isOnline() = isThere

    override fun sources() = read

    override fun checks() = flags

    override fun deferredSources() = listOf(Source("sensors") { "abc" }, Source("gpu") { throw IllegalStateException() })

    override fun attest(challenge: ByteArray) = attests(challenge)

    override fun forgetAttestation() {}

    companion object {
        val PIXEL = mapOf(
            "manufacturer" to "Google", "model" to "Pixel 8", "os_version" to "15", "os_build" to "AP4A.250105.002",
            "abis" to listOf("arm64-v8a"), "api_level" to 35,
        )
    }
}

/** Waits for what a call came to. */
class Reported : SvcCallback {
    private val queue = LinkedBlockingQueue<Any>()
    val count get() = queue.size

    override fun onSuccess(result: SvcIdentification) {
        queue.add(result)
    }

    override fun onFailure(error: SvcException) {
        queue.add(error)
    }

    fun next(): Any = queue.poll(90, TimeUnit.SECONDS) ?: throw AssertionError("nothing came")

    fun result() = next() as? SvcIdentification ?: throw AssertionError("a failure came")

    fun error() = next() as? SvcException ?: throw AssertionError("a result came")
}
