package svc.visitor

import android.content.Context
import android.location.Location
import svc.visitor.android.AndroidHost
import svc.visitor.core.Engine

/**
 * Identifies the device: one for the whole process, safe for all threads. Asks for no permission and contacts nobody but
 * the endpoints of its options. Every outcome reaches the callback; nothing here throws after [create].
 */
class SvcVisitor private constructor(private val host: AndroidHost, private val engine: Engine) {
    /** How the last call went; `null` before. */
    val lastTiming: SvcTiming? get() = engine.lastTiming

    /**
     * Sends one report. Calls at the same time with the same account, action and tag share one request, and cancelling one of
     * them does not cancel the others.
     */
    fun identify(request: SvcRequest, callback: SvcCallback): SvcCancellable = engine.identify(request, callback)

    /** For withdrawn consent: deletes the token, waiting reports and the attestation key, and stores nothing from then on. */
    fun forget(done: Runnable?) = engine.forget(done)

    /** A location that the app has, for the flag `location_spoofing`. Only whether it is a mock is read, never where it is. */
    fun setLocation(location: Location?) {
        host.location = location
    }

    companion object {
        const val VERSION = "0.3.0"

        /** Reads and sends nothing. */
        @JvmStatic
        fun create(context: Context, options: SvcOptions): SvcVisitor {
            val host = AndroidHost(context.applicationContext ?: context, options)
            return SvcVisitor(host, Engine(options, host))
        }
    }
}
