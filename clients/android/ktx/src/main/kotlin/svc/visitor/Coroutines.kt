package svc.visitor

import kotlinx.coroutines.suspendCancellableCoroutine
import kotlin.coroutines.resume
import kotlin.coroutines.resumeWithException

/**
 * Identifies; throws [SvcException]. A cancelled coroutine stops waiting at once. The request goes on for others that share it.
 */
suspend fun SvcVisitor.identify(
    tag: String? = null,
    accountId: String? = null,
    action: String? = null,
    timeoutMs: Long? = null,
): SvcIdentification = suspendCancellableCoroutine { waiting ->
    val callback = object : SvcCallback {
        override fun onSuccess(result: SvcIdentification) {
            if (waiting.isActive) waiting.resume(result)
        }

        override fun onFailure(error: SvcException) {
            if (waiting.isActive) waiting.resumeWithException(error)
        }
    }
    val call = identify(SvcRequest.Builder().tag(tag).accountId(accountId).action(action).timeoutMs(timeoutMs).build(), callback)
    waiting.invokeOnCancellation { call.cancel() }
}
