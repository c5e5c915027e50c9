package svc.visitor.core

import java.text.ParseException
import java.text.SimpleDateFormat
import java.util.Locale
import java.util.TimeZone

/** What came of one attempt, or of all of them. */
sealed class Outcome {
    class Response(val text: String, val members: Map<*, *>) : Outcome()

    class Failure(
        val code: String,
        val message: String,
        val status: Int = 0,
        val retryable: Boolean = false,
        val retryAfterMs: Long = 0,
        val requestId: String? = null,
    ) : Outcome()
}

/** A response as it came; names of headers in lower case. */
class HttpResponse(val status: Int, val headers: Map<String, String>, val body: String)

/** The rules of retries (`retry.json`) and the names of errors (`errors.json`). */
object Sending {
    const val ATTEMPTS = 3
    const val ATTEMPT_MS = 5_000L
    internal const val FIRST_WAIT_MS = 100L
    internal const val LONGEST_WAIT_MS = 2_000L

    fun network(message: String) = Outcome.Failure("network", message, retryable = true)

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

/** The attempts of one message at several endpoints, beginning with the one at [first]. */
class Attempts(private val endpoints: Int, first: Int = 0) {
    /** Of the attempt that runs, or comes next. */
    var endpoint = first
        private set
    var count = 0
        private set

    /** One more begins. */
    fun begin() {
        count++
    }

    /** How long the next attempt may take. */
    fun limitMs(nowMs: Long, endsAtMs: Long): Long = minOf(Sending.ATTEMPT_MS, endsAtMs - nowMs)

    /** Milliseconds until the next attempt, by a draw in [0, 1); `null` where [outcome] is what the message comes to. */
    fun waitMs(outcome: Outcome, nowMs: Long, endsAtMs: Long, draw: () -> Double): Long? {
        if (outcome !is Outcome.Failure || !outcome.retryable || count == Sending.ATTEMPTS) return null
        if (outcome.status == 0) endpoint = (endpoint + 1) % endpoints
        val longest = minOf(Sending.LONGEST_WAIT_MS, Sending.FIRST_WAIT_MS shl (count - 1))
        val wait = maxOf(outcome.retryAfterMs, (draw() * longest).toLong())
        return if (endsAtMs - nowMs <= wait) null else wait
    }
}
