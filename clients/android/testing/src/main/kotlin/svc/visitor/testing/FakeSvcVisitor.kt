package svc.visitor.testing

import android.location.Location
import svc.visitor.SvcCallback
import svc.visitor.SvcCancellable
import svc.visitor.SvcException
import svc.visitor.SvcIdentification
import svc.visitor.SvcRequest
import svc.visitor.SvcTiming
import svc.visitor.SvcVisitor
import java.util.concurrent.CopyOnWriteArrayList

/** A [SvcVisitor] for tests of an app: sends nothing, and tells at once, on the caller's thread, what a test decided. */
class FakeSvcVisitor : SvcVisitor {
    /** What the app asked for, in order. */
    val requests = CopyOnWriteArrayList<SvcRequest>()

    @Volatile var isForgotten = false
        private set
    @Volatile var isLocationMocked: Boolean? = null
        private set
    @Volatile private var next: ((SvcCallback) -> Unit)? = null
    private val waiting = ArrayList<SvcCallback>()
    override val lastTiming: SvcTiming? get() = null

    init {
        responds("""{"request_id":"00000000-0000-7000-8000-000000000000","visitor_id":"fake"}""")
    }

    /** From now on calls succeed with this response of the API. */
    fun responds(json: String) {
        val result = SvcIdentification.of(json)
        next = { it.onSuccess(result) }
    }

    /** From now on calls fail, as with `SvcException("timeout", "late", retryable = true)`. */
    fun fails(error: SvcException) {
        next = { it.onFailure(error) }
    }

    /** From now on calls wait for [release], or until the app cancels them. */
    fun holds() {
        next = null
    }

    /** Tells those that wait, and later ones, [responds] or [fails] having said what. */
    fun release() = synchronized(waiting) { waiting.toList().also { waiting.clear() } }.forEach { next?.invoke(it) }

    override fun identify(request: SvcRequest, callback: SvcCallback): SvcCancellable {
        requests.add(request)
        val tell = next
        if (tell != null) {
            tell(callback)
            return SvcCancellable { }
        }
        synchronized(waiting) { waiting.add(callback) }
        return SvcCancellable {
            if (synchronized(waiting) { waiting.remove(callback) }) callback.onFailure(SvcException("aborted", "The call was canceled."))
        }
    }

    override fun forget(done: Runnable?) {
        isForgotten = true
        done?.run()
    }

    override fun setLocation(location: Location?) {}

    override fun setLocationMocked(isMocked: Boolean?) {
        isLocationMocked = isMocked
    }
}
