package svc.visitor.core

/**
 * Something that can be read of the device. [read] gives a JSON value, or `null` where there is none, and may throw. What
 * [isConstant] is read once in a process.
 */
class Source(val name: String, val limitMs: Long = 200, val isConstant: Boolean = false, val read: () -> Any?)

/** Reads sources one after the other, each isolated from the others: what one of them throws is its own affair. */
class Collecting(private val sources: List<Source>, private val nowMs: () -> Long, private val changed: () -> Unit) {
    private val values = HashMap<String, Any?>()
    private val began = HashMap<Source, Long>()
    private var next = 0
    private var ended = 0

    /** What one of the two workers does, until nothing is left to begin. */
    fun work() {
        while (true) {
            val source = begin() ?: return
            val value = try {
                source.read()
            } catch (_: Throwable) {
                Report.FAULT
            }
            synchronized(this) {
                values[source.name] = value
                began.remove(source)
                ended++
            }
            changed()
        }
    }

    @Synchronized private fun begin(): Source? {
        if (next == sources.size) return null
        return sources[next++].also { began[it] = nowMs() }
    }

    /** Whether nothing more can be had: all ended, or as many hang as there are workers, or the rest hangs. */
    @Synchronized fun isOver(workers: Int): Boolean {
        val hanging = hanging()
        return ended == sources.size || hanging >= workers || (next == sources.size && hanging == began.size)
    }

    /** When the source that runs longest is at its limit; `null` where none runs. */
    @Synchronized fun hangsAt(): Long? = began.map { (source, at) -> at + source.limitMs }.filter { it > nowMs() }.minOrNull()

    private fun hanging(): Int = began.count { (source, at) -> nowMs() - at >= source.limitMs }

    @Synchronized fun isHanging(): Boolean = hanging() > 0

    /** Names of those that run. */
    @Synchronized fun running(): Set<String> = began.keys.map { it.name }.toSet()

    /** Value by source; [Report.FAULT] for each that failed or did not end. */
    @Synchronized fun results(): Map<String, Any?> = sources.associate { it.name to (if (it.name in values) values[it.name] else Report.FAULT) }
}
