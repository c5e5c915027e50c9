package svc.visitor.core

/** The report of an Android phone (`report.json`): raw values of sources in, `signals` out. The schema is closed. */
object Report {
    private const val MAX_LANGUAGES = 5
    private const val HASHED_BELOW_API = 26
    private const val FAULTY_ID = "9774d56d682e549c"
    private val NIGHT_MODES = listOf("auto", "no", "yes", "custom")
    private val CPUS = Regex("[0-9]{1,4}(?:-[0-9]{1,4})?(?:,[0-9]{1,4}(?:-[0-9]{1,4})?)*")
    private val LANGUAGE = Regex("[A-Za-z0-9-]{2,35}")
    private val PACKAGE = Regex("[A-Za-z0-9_.-]{1,96}")

    /** What a source gave is no value of its kind. */
    private class Nonsense : Exception() {
        override fun fillInStackTrace(): Throwable = this
    }

    /** Stands in place of a value that could not be read. */
    val FAULT: Map<String, Any?> = mapOf("fault" to "error")

    class Given(
        /** Raw values by source; a map with `fault` for one that failed. */
        val device: Map<String, Any?>,
        val flags: Collection<String> = emptyList(),
        val failedChecks: Collection<String> = emptyList(),
        val token: String? = null,
        val nonce: String,
        val collectedAtMs: Long,
        val storage: Boolean = true,
        val deviceId: Boolean = true,
        val minimal: Boolean = false,
        val bridge: String? = null,
    )

    fun signals(given: Given): Map<String, Any?> = Writer(given).signals()

    private class Writer(private val given: Given) {
        private val leftOut = java.util.TreeSet(given.failedChecks)

        fun signals(): Map<String, Any?> {
            val found = HashMap<String, Any?>()
            found["platform"] = "android"
            found["nonce"] = given.nonce
            found["collected_at"] = given.collectedAtMs
            val build = read("build") { build(it) }
            found += if (given.minimal) build.filterKeys { it == "model" || it == "os_version" } else build
            if (!given.minimal) found += settled()
            val app = HashMap(read("app") { app(it) })
            if (given.storage && given.deviceId) found += read("android_id") { mapOf("android_id" to androidId(it)) }
            given.token?.let { found["client_token"] = it }
            if (given.flags.isNotEmpty()) found["flags"] = given.flags.associateWith { true }
            given.bridge?.let { app["bridge"] = it }
            if (leftOut.isNotEmpty()) app["left_out"] = leftOut.toList()
            if (app.isNotEmpty()) found["app"] = app
            return found
        }

        /** What identifies a phone and its settings. */
        private fun settled(): Map<String, Any?> {
            val found = HashMap<String, Any?>()
            found += read("cores") { mapOf("cores" to cores(it)) }
            found += read("memory") { mapOf("memory_mb" to whole(it, 1L shl 20, 1L shl 50) / (1L shl 20)) }
            found += read("disk") { mapOf("disk_gb" to whole(it, 1_000_000_000, 1_000_000_000_000_000) / 1_000_000_000) }
            found += read("screen") { mapOf("screen" to screen(it)) }
            found += read("languages") { mapOf("languages" to languages(it)) }
            found += read("timezone") { mapOf("timezone" to text(it, 64)) }
            found += read("font_scale") { mapOf("font_scale" to factor(it, 100.0)) }
            val settings = HashMap<String, Any?>()
            settings += read("clock_24") { mapOf("clock_24" to (it as? Boolean ?: throw Nonsense())) }
            settings += read("night_mode") { mapOf("night_mode" to NIGHT_MODES[whole(it, 0, 3).toInt()]) }
            settings += read("screen_off") { mapOf("screen_off_ms" to whole(it, 0, Int.MAX_VALUE.toLong())) }
            settings += read("input_method") {
                mapOf("input_method" to matched(text(it, 1_024).substringBefore('/'), PACKAGE))
            }
            if (settings.isNotEmpty()) found["settings"] = settings
            return found
        }

        private fun read(name: String, fields: (Any) -> Map<String, Any?>): Map<String, Any?> {
            val value = given.device[name] ?: return emptyMap()
            return try {
                if (value is Map<*, *> && "fault" in value) throw Nonsense()
                fields(value)
            } catch (_: Nonsense) {
                leftOut.add(name)
                emptyMap()
            }
        }

        private fun androidId(value: Any): String {
            val found = text(value, 64)
            if (found.length < 16 || found == FAULTY_ID || found.all { it == '0' || it == '-' }) throw Nonsense()
            val level = (given.device["build"] as? Map<*, *> ?: throw Nonsense())["api_level"]
            if (level != null && level.toString().toInt() >= HASHED_BELOW_API) return found
            val signer = text((given.device["app"] as? Map<*, *> ?: throw Nonsense())["signer"], 64)
            return Texts.sha256Hex("$signer:$found").substring(0, 32)
        }
    }

    private fun text(value: Any?, longest: Int): String {
        val found = value as? String ?: throw Nonsense()
        if (found.isEmpty() || found.length > longest) throw Nonsense()
        return found
    }

    private fun matched(value: Any?, form: Regex): String {
        val found = value as? String ?: throw Nonsense()
        return if (form.matches(found)) found else throw Nonsense()
    }

    private fun whole(value: Any?, least: Long, largest: Long): Long {
        val found = if (value is Int) value.toLong() else value as? Long ?: throw Nonsense()
        return if (found in least..largest) found else throw Nonsense()
    }

    /** A number above 0 and up to 100, rounded half up to a part of one. */
    private fun factor(value: Any?, parts: Double): Double {
        val found = if (value is Number) value.toDouble() else throw Nonsense()
        if (!(found > 0 && found <= 100)) throw Nonsense()
        return Math.floor(found * parts + 0.5) / parts
    }

    private fun member(value: Any, name: String): Any? = (value as? Map<*, *> ?: throw Nonsense())[name]

    private fun build(value: Any): Map<String, Any?> = mapOf(
        "manufacturer" to text(member(value, "manufacturer"), 64),
        "model" to text(member(value, "model"), 128),
        "os_version" to text(member(value, "os_version"), 32),
        "os_build" to text(member(value, "os_build"), 96),
        "architecture" to text((member(value, "abis") as? List<*>)?.firstOrNull(), 32),
    )

    private fun app(value: Any): Map<String, Any?> {
        val found = hashMapOf<String, Any?>(
            "package" to text(member(value, "package"), 128),
            "version" to text(member(value, "version"), 64),
        )
        member(value, "installer")?.let { found["installer"] = text(it, 128) }
        member(value, "signer")?.let { found["signer"] = text(it, 64) }
        return found
    }

    private fun cores(value: Any): Long {
        if (value !is String) return whole(value, 1, 4_096)
        var count = 0L
        for (part in matched(value.trim(), CPUS).split(',')) {
            val first = part.substringBefore('-').toLong()
            count += part.substringAfter('-').toLong() - first + 1
        }
        return whole(count, 1, 4_096)
    }

    private fun screen(value: Any): Map<String, Any?> {
        val modes = member(value, "modes") as? List<*> ?: throw Nonsense()
        var width = 0L
        var height = 0L
        for (mode in modes) {
            if (mode !is List<*> || mode.size != 2) throw Nonsense()
            val wide = whole(mode[0], 1, 100_000)
            val high = whole(mode[1], 1, 100_000)
            if (wide * high > width * height) {
                width = wide
                height = high
            }
        }
        if (width == 0L) throw Nonsense()
        val scale = factor(whole(member(value, "density"), 1, 10_000) / 160.0, 1000.0)
        return mapOf("width" to width, "height" to height, "scale" to scale)
    }

    private fun languages(value: Any): List<String> {
        val found = value as? List<*> ?: throw Nonsense()
        if (found.isEmpty()) throw Nonsense()
        return found.take(MAX_LANGUAGES).map { matched(it, LANGUAGE) }
    }
}
