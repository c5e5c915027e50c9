package svc.visitor.okhttp

import okhttp3.Interceptor
import okhttp3.Request
import okhttp3.Response
import svc.visitor.SvcCallback
import svc.visitor.SvcException
import svc.visitor.SvcIdentification
import svc.visitor.SvcRequest
import svc.visitor.SvcVisitor
import java.io.InterruptedIOException
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executor
import java.util.concurrent.TimeUnit

/** Says what a request to your own server is about, or `null` for one that is not to be identified. */
fun interface SvcRequests {
    fun of(request: Request): SvcRequest?
}

/**
 * Identifies before requests to your own server that [requests] names, and gives them the `request_id` in [header]. Where that
 * takes longer than [timeoutMs], or fails, the request goes without: your server decides. An interceptor of the app, not of the
 * network: a request that OkHttp repeats by itself is one identification. Runs on the thread of the request, never on the
 * main one.
 */
class SvcInterceptor @JvmOverloads constructor(
    private val visitor: SvcVisitor,
    private val header: String = HEADER,
    private val timeoutMs: Long = 3_000,
    private val requests: SvcRequests,
) : Interceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        val request = chain.request()
        val about = requests.of(request)
        val id = if (about == null) null else requestId(about)
        return chain.proceed(if (id == null) request else request.newBuilder().header(header, id).build())
    }

    private fun requestId(about: SvcRequest): String? {
        val done = CountDownLatch(1)
        var id: String? = null
        val limitMs = minOf(about.timeoutMs ?: timeoutMs, timeoutMs)
        val asked = SvcRequest.Builder().tag(about.tag).accountId(about.accountId).action(about.action).timeoutMs(limitMs)
            .callbackExecutor(Executor { it.run() }).build()
        val call = visitor.identify(asked, object : SvcCallback {
            override fun onSuccess(result: SvcIdentification) {
                // A header that is none would end the app's own request.
                id = result.requestId.takeIf { ID.matches(it) }
                done.countDown()
            }

            override fun onFailure(error: SvcException) = done.countDown()
        })
        try {
            if (!done.await(limitMs + GRACE_MS, TimeUnit.MILLISECONDS)) call.cancel()
        } catch (_: InterruptedException) {
            // As OkHttp tells it: what is no IOException would end the app.
            call.cancel()
            Thread.currentThread().interrupt()
            throw InterruptedIOException("interrupted")
        }
        return id
    }

    companion object {
        const val HEADER = "x-svc-request-id"
        private const val GRACE_MS = 200L
        private val ID = Regex("[!-~]{1,64}")
    }
}
