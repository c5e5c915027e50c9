package svc.visitor.core

import java.text.ParseException
import java.text.SimpleDateFormat
import java.util.Locale
import java.util.TimeZone

/** What came of one attempt, or of all of them. */
sealed class Outcome {
    class Response(val text: String, val members: Map<*, *>) : Outcome()

    /** `isFinal`: no other attempt may follow, whatever the code says. */
    class Failure(
        val code: String,
        val message: String,
        val status: Int = 0,
        val retryable: Boolean = false,
        val retryAfterMs: Long = 0,
        val requestId: String? = null,
        val isFinal: Boolean = false,
    ) : Outcome()
}

/** A response as it came; names of headers in lower case. */
class HttpResponse(val status: Int, val headers: Map<String, String>, val body: String)

/** The rules of retries (`retry.json`) and the names of errors (`errors.json`). */
object Sending {
    const val ATTEMPTS = 3
    const val ATTEMPT_MS = 5_000L
    private const val FIRST_WAIT_MS = 100L
    private const val LONGEST_WAIT_MS = 2_000L

    /** Time, and one attempt at an endpoint, by its position, within a limit. */
    interface Line {
        fun nowMs(): Long
        fun attempt(endpoint: Int, limitMs: Long): Outcome

        /** `false` where the call has ended meanwhile. */
        fun pause(ms: Long): Boolean
        fun draw(): Double
    }

    /** `endsAtMs` on the line's clock; `first`: the endpoint to begin with. Calls [used] with each endpoint. */
    fun send(line: Line, endsAtMs: Long, endpoints: Int, first: Int = 0, used: (Int) -> Unit = {}): Outcome {
        var endpoint = first
        var attempts = 0
        while (true) {
            attempts++
            used(endpoint)
            val outcome = line.attempt(endpoint, minOf(ATTEMPT_MS, endsAtMs - line.nowMs()))
            if (outcome !is Outcome.Failure || outcome.isFinal || !outcome.retryable || attempts == ATTEMPTS) return outcome
            if (outcome.status == 0) endpoint = (endpoint + 1) % endpoints
            val longest = minOf(LONGEST_WAIT_MS, FIRST_WAIT_MS shl (attempts - 1))
            val wait = maxOf(outcome.retryAfterMs, (line.draw() * longest).toLong())
            if (endsAtMs - line.nowMs() <= wait || !line.pause(wait)) return outcome
        }
    }

    fun network(message: String, isFinal: Boolean = false) =
        Outcome.Failure("network", message, retryable = true, isFinal = isFinal)

    fun timeout(message: String) = Outcome.Failure("timeout", message, retryable = true)

    /** `endpoint` and `shownKey` for messages alone. */
    fun read(response: HttpResponse, nowMs: Long, endpoint: String = "", shownKey: String = ""): Outcome {
        val members = Json.parseOrNull(response.body) as? Map<*, *>
        val isSuccess = response.status in 200..299
        if (isSuccess && members?.get("request_id") is String) return Outcome.Response(response.body, members)
        val isRetryable = response.status == 429 || response.status >= 500
        val asked = retryAfterMs(response.headers["retry-after"], nowMs)
        val error = members?.get("error") as? Map<*, *>
        if (isSuccess || error == null) {
            val message = "$endpoint responded with status ${response.status}, but not as the service does: is the endpoint " +
                "right, does a proxy or a Wi-Fi login page answer in its place, and does the service run behind it?"
            return Outcome.Failure("bad_response", message, response.status, isRetryable, asked)
        }
        val code = error["code"] as? String ?: "http_${response.status}"
        val said = error["message"] as? String ?: "no message"
        val advice = if (code == "unauthorized") " The key sent is $shownKey: is it whole, public, for Android, and not revoked?" else ""
        val requestId = members["request_id"] as? String ?: response.headers["x-request-id"]
        val message = "${response.status} $code: $said$advice"
        return Outcome.Failure(code, message, response.status, isRetryable, asked, requestId)
    }

    /** `Retry-After`: seconds or a date (RFC 9110, 10.2.3); 0 where there is none. */
    fun retryAfterMs(header: String?, nowMs: Long): Long {
        if (header.isNullOrEmpty()) return 0
        if (header.all { it in '0'..'9' }) return (header.toLongOrNull() ?: Long.MAX_VALUE / 1000).coerceAtMost(1_000_000_000) * 1000
        val format = SimpleDateFormat("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.US)
        format.timeZone = TimeZone.getTimeZone("GMT")
        return try {
            maxOf(0, (format.parse(header)?.time ?: 0) - nowMs)
        } catch (_: ParseException) {
            0
        }
    }

    /** Enough of a key to tell it from others. */
    fun shown(apiKey: String): String = apiKey.split("_").take(4).joinToString("_") + "_..." + apiKey.takeLast(4)
}
