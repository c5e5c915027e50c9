package svc.visitor.core

import java.io.ByteArrayOutputStream
import java.io.IOException
import java.io.InputStream
import java.net.HttpURLConnection
import java.net.URL
import javax.net.ssl.HttpsURLConnection

class HttpRequest(val url: String, val headers: Map<String, String>, val body: ByteArray)

/** Ends an exchange from another thread. */
class Stop {
    @Volatile private var connection: HttpURLConnection? = null
    @Volatile private var isStopped = false

    fun open(made: HttpURLConnection) {
        connection = made
    }

    /** From now on nothing is sent. */
    fun forbid() {
        isStopped = true
    }

    /** Throws [IOException] where it was ended: nothing may be sent then. */
    fun check() {
        if (isStopped) throw IOException("stopped")
    }

    /** May block. */
    fun stop() {
        forbid()
        try {
            connection?.disconnect()
        } catch (_: RuntimeException) {
            // some systems dislike it from another thread
        }
    }
}

fun interface Http {
    /** Throws [IOException]. */
    fun exchange(request: HttpRequest, limitMs: Long, stop: Stop): HttpResponse
}

/**
 * [HttpURLConnection] without fixed-length streaming: in that mode the body of a 401 is lost, and with it the message
 * that explains a wrong key.
 */
class UrlConnectionHttp(pins: Set<String>, private val host: Host) : Http {
    private val pinning = if (pins.isEmpty()) null else Pinning(pins, host)

    override fun exchange(request: HttpRequest, limitMs: Long, stop: Stop): HttpResponse = host.tagged { exchanged(request, limitMs, stop) }

    private fun exchanged(request: HttpRequest, limitMs: Long, stop: Stop): HttpResponse {
        stop.check()
        val connection = URL(request.url).openConnection() as HttpURLConnection
        stop.open(connection)
        try {
            connection.requestMethod = "POST"
            connection.doOutput = true
            connection.useCaches = false
            connection.instanceFollowRedirects = false
            connection.connectTimeout = limitMs.toInt()
            connection.readTimeout = limitMs.toInt()
            for ((name, value) in request.headers) connection.setRequestProperty(name, value)
            if (pinning != null && connection is HttpsURLConnection) connection.sslSocketFactory = pinning.sockets
            connection.connect()
            stop.check()
            connection.outputStream.use { it.write(request.body) }
            val status = connection.responseCode
            val headers = HashMap<String, String>()
            for ((name, values) in connection.headerFields) if (name != null) headers[name.lowercase()] = values.last()
            val stream = if (status >= 400) connection.errorStream else connection.inputStream
            val body = stream?.use { read(it, stop) } ?: ByteArray(0)
            if (isCut(headers, body.size)) throw IOException("the response was cut")
            return HttpResponse(status, headers, String(body, Charsets.UTF_8))
        } catch (error: RuntimeException) {
            // Platforms throw these where a connection is cut at a bad moment.
            throw IOException(error.toString(), error)
        } finally {
            connection.disconnect()
        }
    }

    /** Some systems take a response that ends within its head or body for a whole one. */
    private fun isCut(headers: Map<String, String>, size: Int): Boolean {
        val declared = headers["content-length"]?.toIntOrNull()
        // Where the system unpacked the body itself, the length is that of the packed one, and gone.
        if (declared != null && "content-encoding" !in headers) return size < minOf(declared, MAX_BYTES)
        return declared == null && size == 0 && "transfer-encoding" !in headers
    }

    private fun read(stream: InputStream, stop: Stop): ByteArray {
        val found = ByteArrayOutputStream()
        val part = ByteArray(8_192)
        while (found.size() < MAX_BYTES) {
            val count = stream.read(part)
            if (count < 0) break
            found.write(part, 0, count)
            stop.check()
        }
        return found.toByteArray()
    }

    private companion object {
        const val MAX_BYTES = 1 shl 20
    }
}
