package svc.visitor.core

import java.util.PriorityQueue
import java.util.concurrent.SynchronousQueue
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock

/** Something that may take long. [work] runs on a thread of its own and may throw; then [ended] runs on the loop. */
class Job(val name: String, val work: () -> Unit, val ended: () -> Unit)

/** Events, one after the other, none of which may block; and jobs beside them. A test brings one with a clock of its own. */
interface Loop {
    fun nowMs(): Long

    /** From any thread. */
    fun post(event: () -> Unit)

    /** Calls [event] on the loop in [ms]; what it returns prevents that. On the loop alone. */
    fun after(ms: Long, event: () -> Unit): () -> Unit

    fun start(job: Job)
}

/** Daemon threads, gone after [idleMs] without work. The loop's own is among them, and ends where nothing is left to wait for. */
class ThreadLoop(private val clock: () -> Long, idleMs: Long) : Loop {
    private class Timer(val atMs: Long, val number: Long, val event: () -> Unit)

    private val lock = ReentrantLock()
    private val changed = lock.newCondition()
    private val events = ArrayDeque<() -> Unit>()
    private val timers = PriorityQueue<Timer>(4) { one, other -> compareValuesBy(one, other, { it.atMs }, { it.number }) }
    private var isRunning = false
    private var numbers = 0L
    private val pool = ThreadPoolExecutor(0, Int.MAX_VALUE, idleMs, TimeUnit.MILLISECONDS, SynchronousQueue()) { work ->
        Thread(work, "svc-visitor").apply { isDaemon = true }
    }

    override fun nowMs(): Long = clock()

    override fun post(event: () -> Unit) = lock.withLock {
        events.add(event)
        changed.signal()
        if (isRunning) return
        isRunning = true
        try {
            pool.execute(::run)
        } catch (error: Throwable) {
            isRunning = false
            events.removeLast()
            throw error
        }
    }

    override fun after(ms: Long, event: () -> Unit): () -> Unit = lock.withLock {
        val timer = Timer(clock() + maxOf(0, ms), numbers++, event)
        timers.add(timer)
        return { lock.withLock { timers.remove(timer) } }
    }

    override fun start(job: Job) {
        try {
            pool.execute {
                try {
                    job.work()
                } catch (_: Throwable) {
                    // who started it sees that nothing came of it
                }
                post(job.ended)
            }
        } catch (_: OutOfMemoryError) {
            post(job.ended) // no thread is left for it
        }
    }

    private fun run() {
        while (true) {
            val event = next() ?: return
            try {
                event()
            } catch (_: Throwable) {
                // a fault of one call, which ends at its time limit; the others go on
            }
        }
    }

    private fun next(): (() -> Unit)? = lock.withLock {
        while (true) {
            events.removeFirstOrNull()?.let { return it }
            val timer = timers.peek()
            if (timer == null) {
                isRunning = false
                return null
            }
            val waitMs = timer.atMs - clock()
            if (waitMs <= 0) return timers.poll()!!.event
            changed.await(waitMs, TimeUnit.MILLISECONDS)
        }
        @Suppress("UNREACHABLE_CODE") null
    }
}

/** A job of a [WorkerPool]. [overdue] runs at its limit, where it has not ended; [ended] when it has, however late. */
class Task(
    val name: String,
    val limitMs: () -> Long,
    val work: () -> Unit,
    val ended: () -> Unit = {},
    val overdue: () -> Unit = {},
) {
    internal val watchers = ArrayList<() -> Unit>()
}

/**
 * Jobs of one kind, at most [size] at a time. One that outlives its limit is given up, and another takes its place: up to
 * [spare] of those, so that a system that never responds does not cost a thread for each call. On the loop alone.
 */
class WorkerPool(private val loop: Loop, private val size: Int, private val spare: Int) {
    private val queue = ArrayDeque<Task>()
    private val running = LinkedHashSet<Task>()
    private var hung = 0

    fun run(task: Task) {
        queue.add(task)
        pump()
    }

    /** `false` where it has begun. */
    fun drop(task: Task): Boolean = queue.remove(task)

    /** Once each that runs now has ended or is given up. */
    fun afterThese(then: () -> Unit) {
        var left = running.size
        if (left == 0) return then()
        for (task in running) task.watchers.add { if (--left == 0) then() }
    }

    private fun pump() {
        while (queue.isNotEmpty() && running.size < size && running.size + hung < size + spare) begin(queue.removeFirst())
    }

    private fun begin(task: Task) {
        running.add(task)
        val forgive = loop.after(task.limitMs()) {
            hung++
            leave(task)
            task.overdue()
            pump()
        }
        loop.start(Job(task.name, task.work) {
            forgive()
            if (task in running) leave(task) else hung--
            task.ended()
            pump()
        })
    }

    private fun leave(task: Task) {
        running.remove(task)
        task.watchers.forEach { it() }
    }
}
