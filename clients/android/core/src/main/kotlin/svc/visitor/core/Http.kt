package svc.visitor.core

import java.io.ByteArrayOutputStream
import java.io.IOException
import java.io.InputStream
import java.net.HttpURLConnection
import java.net.URL
import java.security.cert.Certificate
import javax.net.ssl.HttpsURLConnection

class HttpRequest(val url: String, val headers: Map<String, String>, val body: ByteArray)

/** Ends an exchange from another thread. */
class Stop {
    private var connection: HttpURLConnection? = null
    private var isStopped = false

    @Synchronized fun open(made: HttpURLConnection) {
        connection = made
        if (isStopped) made.disconnect()
    }

    fun stop() {
        val made = synchronized(this) {
            isStopped = true
            connection
        }
        try {
            made?.disconnect()
        } catch (_: RuntimeException) {
            // some systems dislike it from another thread
        }
    }
}

/** The certificate of the service has none of the pinned keys. */
class PinException : IOException("the certificate has none of the pinned keys")

fun interface Http {
    /** Throws [IOException]. */
    fun exchange(request: HttpRequest, limitMs: Long, stop: Stop): HttpResponse
}

/**
 * [HttpURLConnection] without fixed-length streaming: in that mode the body of a 401 is lost, and with it the message
 * that explains a wrong key.
 */
class UrlConnectionHttp(private val pins: Set<String>) : Http {
    override fun exchange(request: HttpRequest, limitMs: Long, stop: Stop): HttpResponse {
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
            if (pins.isNotEmpty() && connection is HttpsURLConnection) {
                connection.connect()
                if (connection.serverCertificates.none { isPinned(it) }) throw PinException()
            }
            connection.outputStream.use { it.write(request.body) }
            val status = connection.responseCode
            val headers = HashMap<String, String>()
            for ((name, values) in connection.headerFields) if (name != null) headers[name.lowercase()] = values.last()
            val stream = if (status >= 400) connection.errorStream else connection.inputStream
            val body = stream?.use { read(it) } ?: ByteArray(0)
            if (isCut(headers, body.size)) throw IOException("the response was cut")
            return HttpResponse(status, headers, String(body, Charsets.UTF_8))
        } catch (error: RuntimeException) {
            // Platforms throw these where a connection is cut at a bad moment.
            throw IOException(error.toString(), error)
        } finally {
            connection.disconnect()
        }
    }

    private fun isPinned(certificate: Certificate): Boolean =
        Texts.base64(Texts.sha256(certificate.publicKey.encoded)) in pins

    /** Some systems take a response that ends within its head or body for a whole one. */
    private fun isCut(headers: Map<String, String>, size: Int): Boolean {
        val told = headers["content-length"]?.toIntOrNull()
        // Where the system unpacked the body itself, the length is that of the packed one, and gone.
        if (told != null && "content-encoding" !in headers) return size < minOf(told, MAX_BYTES)
        return told == null && size == 0 && "transfer-encoding" !in headers
    }

    private fun read(stream: InputStream): ByteArray {
        val found = ByteArrayOutputStream()
        val part = ByteArray(8_192)
        while (found.size() < MAX_BYTES) {
            val count = stream.read(part)
            if (count < 0) break
            found.write(part, 0, count)
        }
        return found.toByteArray()
    }

    private companion object {
        const val MAX_BYTES = 1 shl 20
    }
}
