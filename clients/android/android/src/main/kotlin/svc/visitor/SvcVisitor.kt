package svc.visitor

import android.content.Context
import android.location.Location
import svc.visitor.android.AndroidHost
import svc.visitor.core.Engine

/**
 * Identifies the device: one for the whole process, safe for all threads, none of which it blocks. Asks for no permission and
 * contacts nobody but the endpoints of its options. Every outcome reaches the callback; nothing here throws after [create].
 * An interface, so that tests of an app bring their own: `FakeSvcVisitor` of svc-android-testing is one.
 */
interface SvcVisitor {
    /** How the last call went; `null` before. */
    val lastTiming: SvcTiming?

    /**
     * Sends one report. Calls at the same time with the same account, action and tag share one request, and cancelling one of
     * them does not cancel the others.
     */
    fun identify(request: SvcRequest, callback: SvcCallback): SvcCancellable

    /**
     * For withdrawn consent: ends calls with `aborted`, deletes the token, waiting reports and the attestation key, and stores
     * nothing from then on. [done] runs when nothing is left and nothing can be written any more.
     */
    fun forget(done: Runnable?)

    /** A location that the app has, for the flag `location_spoofing`. Only whether it is a mock is read, never where it is. */
    fun setLocation(location: Location?)

    /** As [setLocation], for bridges, whose locations are not the system's. `null`: it is not known. */
    fun setLocationMocked(isMocked: Boolean?)

    companion object {
        const val VERSION = "0.3.0"

        /** Reads and sends nothing. */
        @JvmStatic
        fun create(context: Context, options: SvcOptions): SvcVisitor {
            val host = AndroidHost(context.applicationContext ?: context, options)
            return AndroidVisitor(host, Engine(options, host))
        }
    }
}

private class AndroidVisitor(private val host: AndroidHost, private val engine: Engine) : SvcVisitor {
    override val lastTiming: SvcTiming? get() = engine.lastTiming

    override fun identify(request: SvcRequest, callback: SvcCallback): SvcCancellable = engine.identify(request, callback)

    override fun forget(done: Runnable?) = engine.forget(done)

    override fun setLocation(location: Location?) {
        host.location = location
        host.isMocked = null
    }

    override fun setLocationMocked(isMocked: Boolean?) {
        host.location = null
        host.isMocked = isMocked
    }
}
