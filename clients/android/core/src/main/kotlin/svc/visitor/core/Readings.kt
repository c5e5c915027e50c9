package svc.visitor.core

/**
 * Something that can be read of the device. [read] gives a JSON value, or `null` where there is none, and may throw. What
 * [isConstant] is read once in a process. A source that takes longer than [limitMs] no longer holds up the others.
 */
class Source(val name: String, val limitMs: Long = 200, val isConstant: Boolean = false, val read: () -> Any?)

/**
 * Reads sources, each isolated from the others: what one of them throws, and how long it takes, is its own affair. None is
 * read twice at a time. On the loop alone.
 */
class Readings(private val loop: Loop, private val pool: WorkerPool) {
    private val constants = HashMap<String, Any?>()

    /** What came when nobody waited for it any more: for the next report, where a new reading is not there in time. */
    private val late = HashMap<String, Any?>()
    private val running = HashMap<String, Reading>()

    private inner class Reading(val source: Source) {
        val waiting = ArrayList<Collection>()
        var beganMs: Long? = null

        /** A collection has ended without it. */
        var isLate = false
        private var value: Any? = Report.FAULT
        val task = Task(
            "read ${source.name}",
            limitMs = { source.limitMs.also { beganMs = loop.nowMs() } },
            work = { value = source.read() },
            ended = ::end,
        )

        private fun end() {
            running.remove(source.name)
            if (value != Report.FAULT) {
                if (source.isConstant) constants[source.name] = value
                if (waiting.isEmpty()) late[source.name] = value
            }
            for (collection in ArrayList(waiting)) collection.take(source.name, value)
        }
    }

    /** Values by source, [Report.FAULT] for one that failed or is not there in time; [seen] tells of each as it comes. */
    inner class Collection internal constructor(
        private val endsAtMs: Long,
        private val seen: (String, Any?) -> Unit,
        private val done: (Map<String, Any?>) -> Unit,
    ) {
        private val found = HashMap<String, Any?>()
        private val open = LinkedHashMap<String, Reading>()
        private val awaited = HashSet<String>()
        private var forgive: () -> Unit = {}
        private var isOver = false

        internal fun begin(sources: List<Source>) {
            for (source in sources) {
                val name = source.name
                if (name in constants) {
                    found[name] = constants[name]
                    continue
                }
                val known = running[name]
                if (isAwaited(source, known)) awaited.add(name)
                val reading = known ?: Reading(source).also { running[name] = it }
                reading.waiting.add(this)
                open[name] = reading
                if (known == null) pool.run(reading.task)
            }
            forgive = loop.after(endsAtMs - loop.nowMs()) { end() }
            if (awaited.isEmpty()) loop.post { end() }
        }

        /** What hangs since an earlier report, or is always late, is not waited for; what identifies is, for a while. */
        private fun isAwaited(source: Source, known: Reading?): Boolean {
            if (known != null && known.isLate) {
                val age = known.beganMs?.let { loop.nowMs() - it } ?: 0
                return source.name in IDENTIFYING && age < PATIENCE_MS
            }
            return source.name !in late
        }

        internal fun take(name: String, value: Any?) {
            open.remove(name)?.waiting?.remove(this)
            late.remove(name)
            found[name] = value
            seen(name, value)
            if (awaited.remove(name) && awaited.isEmpty()) end()
        }

        private fun end() {
            if (isOver) return
            for (name in open.keys) found[name] = if (name in late) late.remove(name) else Report.FAULT
            stop()
            done(found)
        }

        /** Nobody waits for it any more. */
        fun stop() {
            isOver = true
            forgive()
            for ((name, reading) in open) {
                reading.waiting.remove(this)
                reading.isLate = true
                if (reading.waiting.isEmpty() && pool.drop(reading.task)) running.remove(name)
            }
            open.clear()
        }
    }

    /** What identifies comes first, then in the order given. */
    fun collect(sources: List<Source>, endsAtMs: Long, seen: (String, Any?) -> Unit = { _, _ -> }, done: (Map<String, Any?>) -> Unit): Collection {
        val (first, others) = sources.partition { it.name in IDENTIFYING }
        return Collection(endsAtMs, seen, done).apply { begin(first.sortedBy { IDENTIFYING.indexOf(it.name) } + others) }
    }

    /** Forgets what was read too late. */
    fun forget() = late.clear()

    companion object {
        val IDENTIFYING = listOf("token", "android_id", "build", "app")
        const val PATIENCE_MS = 10_000L
    }
}
