package svc.visitor.core

import svc.visitor.SvcCallback
import svc.visitor.SvcCancellable
import svc.visitor.SvcException
import svc.visitor.SvcIdentification
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock

/** Three daemon threads at most, gone after 30 s without work: one for the line, two for whatever may hang. */
class Workers(idleMs: Long = 30_000) {
    private val pool = ThreadPoolExecutor(LIMIT, LIMIT, idleMs, TimeUnit.MILLISECONDS, LinkedBlockingQueue()) { work ->
        Thread(work, "svc-visitor").apply { isDaemon = true }
    }
    private var busy = 0

    init {
        pool.allowCoreThreadTimeOut(true)
    }

    fun line(work: () -> Unit) = pool.execute(work)

    /** `false` where both threads are at work: then it does not run. [after] tells of it once the thread is free again. */
    fun tryRun(after: () -> Unit = {}, work: () -> Unit): Boolean {
        synchronized(this) {
            if (busy == LIMIT - 1) return false
            busy++
        }
        pool.execute {
            try {
                work()
            } finally {
                synchronized(this) { busy-- }
                after()
            }
        }
        return true
    }

    private companion object {
        const val LIMIT = 3
    }
}

/** One request, and the calls that wait for it. */
class Flight internal constructor(internal val subject: String, internal val work: (Flight) -> Outcome) {
    internal val callers = ArrayList<Caller>()

    /** When the last of its callers gives up. */
    @Volatile var endsAtMs = 0L
        internal set

    /** Nobody waits any more. */
    @Volatile var isStopped = false
        internal set
}

internal class Caller(
    val callback: SvcCallback,
    val endsAtMs: Long,
    val limitMs: Long,
    val deliver: (SvcCallback, SvcIdentification?, SvcException?) -> Unit,
)

/** Flights in the order in which they came. The line's thread keeps the time limits of all callers while it waits. */
class Line(private val host: Host, private val workers: Workers) {
    private val lock = ReentrantLock()
    private val changed = lock.newCondition()
    private val flights = ArrayList<Flight>()
    private val errands = ArrayList<() -> Unit>()
    private var isRunning = false

    fun join(
        subject: String,
        limitMs: Long,
        callback: SvcCallback,
        deliver: (SvcCallback, SvcIdentification?, SvcException?) -> Unit,
        work: (Flight) -> Outcome,
    ): SvcCancellable {
        val caller = Caller(callback, host.elapsedMs() + limitMs, limitMs, deliver)
        lock.withLock {
            val shared = flights.firstOrNull { it.subject == subject && !it.isStopped }
            val flight = shared ?: Flight(subject, work).also { flights.add(it) }
            flight.callers.add(caller)
            flight.endsAtMs = maxOf(flight.endsAtMs, caller.endsAtMs)
            go()
        }
        return SvcCancellable { cancel(caller) }
    }

    /** Runs on the line's thread, once what runs there is over. */
    fun afterwards(errand: () -> Unit) = lock.withLock {
        errands.add(errand)
        go()
    }

    fun wake() = lock.withLock { changed.signalAll() }

    private fun go() {
        changed.signalAll()
        if (isRunning) return
        isRunning = true
        workers.line(::run)
    }

    private fun run() {
        while (true) {
            expire()
            var errand: (() -> Unit)? = null
            var flight: Flight? = null
            lock.withLock {
                flights.removeAll { it.callers.isEmpty() }
                if (errands.isNotEmpty()) errand = errands.removeAt(0) else flight = flights.firstOrNull()
                if (errand == null && flight == null) {
                    isRunning = false
                    return
                }
            }
            errand?.invoke()
            flight?.let { finish(it, outcome(it)) }
        }
    }

    private fun outcome(flight: Flight): Outcome = try {
        flight.work(flight)
    } catch (error: Throwable) {
        Outcome.Failure("internal_error", "A fault of the SDK: $error")
    }

    private fun finish(flight: Flight, outcome: Outcome) {
        val callers = lock.withLock {
            flights.remove(flight)
            ArrayList(flight.callers).also { flight.callers.clear() }
        }
        for (caller in callers) when (outcome) {
            is Outcome.Response -> {
                val id = outcome.members["request_id"] as String
                caller.deliver(caller.callback, SvcIdentification(id, outcome.text, outcome.members), null)
            }
            is Outcome.Failure -> caller.deliver(caller.callback, null, with(outcome) {
                SvcException(code, message, status, retryable, retryAfterMs, requestId)
            })
        }
    }

    private fun cancel(caller: Caller) {
        if (remove { it === caller }.isEmpty()) return
        caller.deliver(caller.callback, null, SvcException("aborted", "The call was canceled."))
    }

    private fun expire() {
        val now = host.elapsedMs()
        for (caller in remove { it.endsAtMs <= now }) {
            val message = "No response within ${caller.limitMs} ms: go on without, or raise timeoutMs."
            caller.deliver(caller.callback, null, SvcException("timeout", message, retryable = true))
        }
    }

    private fun remove(which: (Caller) -> Boolean): List<Caller> = lock.withLock {
        val found = ArrayList<Caller>()
        for (flight in flights) {
            val leaving = flight.callers.filter(which)
            if (leaving.isEmpty()) continue
            found.addAll(leaving)
            flight.callers.removeAll(leaving)
            flight.isStopped = flight.callers.isEmpty()
        }
        if (found.isNotEmpty()) changed.signalAll()
        found
    }

    /** Waits on the line's thread until [condition]; `false` at the time limit, or once nobody waits for the flight. */
    fun await(flight: Flight?, untilMs: Long, condition: () -> Boolean): Boolean {
        while (true) {
            // A caller that waits for this very flight may have its response a moment later: the sender says what became of it.
            val now = host.elapsedMs()
            if (now < untilMs) expire()
            lock.withLock {
                if (condition()) return true
                if (flight?.isStopped == true || now >= untilMs) return false
                val next = flights.flatMap { it.callers }.minOfOrNull { it.endsAtMs } ?: untilMs
                changed.await(maxOf(1, minOf(untilMs, next) - now), TimeUnit.MILLISECONDS)
            }
        }
    }
}
