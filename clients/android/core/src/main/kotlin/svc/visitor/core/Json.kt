package svc.visitor.core

import java.math.BigDecimal
import java.math.MathContext
import java.math.RoundingMode

/** A text that is no JSON. */
class JsonException(message: String) : Exception(message)

/** JSON as maps, lists, texts, booleans, `Long`, `Double` and `null`; written canonically. */
object Json {
    private const val DEEPEST = 64

    /** Throws [JsonException] for anything but one JSON value. */
    fun parse(text: String): Any? = Reader(text).whole()

    fun parseOrNull(text: String): Any? = try {
        parse(text)
    } catch (_: JsonException) {
        null
    }

    /** Names sorted by UTF-16 unit, no space, numbers as ECMAScript writes them, lone surrogates escaped. */
    fun canonical(value: Any?): String = StringBuilder().also { write(value, it) }.toString()

    private fun write(value: Any?, out: StringBuilder) {
        when (value) {
            null -> out.append("null")
            is Map<*, *> -> {
                out.append('{')
                var isFirst = true
                for (name in value.keys.map { it as String }.sorted()) {
                    if (!isFirst) out.append(',')
                    isFirst = false
                    write(name, out)
                    out.append(':')
                    write(value[name], out)
                }
                out.append('}')
            }
            is List<*> -> {
                out.append('[')
                for (index in value.indices) {
                    if (index > 0) out.append(',')
                    write(value[index], out)
                }
                out.append(']')
            }
            is String -> writeText(value, out)
            is Double -> out.append(number(value))
            is Float -> out.append(number(value.toDouble()))
            is Boolean, is Int, is Long -> out.append(value.toString())
            else -> throw IllegalArgumentException("no JSON: ${value.javaClass}")
        }
    }

    private fun writeText(text: String, out: StringBuilder) {
        out.append('"')
        for (index in text.indices) {
            val unit = text[index]
            when {
                unit == '"' || unit == '\\' -> out.append('\\').append(unit)
                unit == '\b' -> out.append("\\b")
                unit == '\u000c' -> out.append("\\f")
                unit == '\n' -> out.append("\\n")
                unit == '\r' -> out.append("\\r")
                unit == '\t' -> out.append("\\t")
                unit < ' ' || isLone(text, index) -> {
                    out.append("\\u")
                    for (shift in intArrayOf(12, 8, 4, 0)) out.append(Character.forDigit(unit.code shr shift and 15, 16))
                }
                else -> out.append(unit)
            }
        }
        out.append('"')
    }

    private fun isLone(text: String, index: Int): Boolean {
        val unit = text[index]
        return when {
            unit.isHighSurrogate() -> index + 1 == text.length || !text[index + 1].isLowSurrogate()
            unit.isLowSurrogate() -> index == 0 || !text[index - 1].isHighSurrogate()
            else -> false
        }
    }

    /** The shortest digits that read back as the same number. */
    fun number(value: Double): String {
        if (value.isNaN() || value.isInfinite()) return "null"
        if (value == 0.0) return "0"
        val shortest = shortest(value).stripTrailingZeros()
        val digits = shortest.unscaledValue().abs().toString()
        val point = digits.length - shortest.scale()
        val minus = if (value < 0) "-" else ""
        return minus + when {
            point in digits.length..21 -> digits + "0".repeat(point - digits.length)
            point in 1..21 -> digits.substring(0, point) + "." + digits.substring(point)
            point in -5..0 -> "0." + "0".repeat(-point) + digits
            else -> {
                val mantissa = if (digits.length == 1) digits else digits.substring(0, 1) + "." + digits.substring(1)
                mantissa + (if (point > 0) "e+" else "e-") + Math.abs(point - 1)
            }
        }
    }

    /** `Double.toString` is not the shortest on every system. */
    private fun shortest(value: Double): BigDecimal {
        val exact = BigDecimal(value)
        for (digits in 1..17) {
            for (mode in arrayOf(RoundingMode.HALF_EVEN, RoundingMode.DOWN, RoundingMode.UP)) {
                val rounded = exact.round(MathContext(digits, mode))
                if (rounded.toDouble() == value) return rounded
            }
        }
        return exact
    }

    private class Reader(private val text: String) {
        private var at = 0

        fun whole(): Any? {
            val value = value(0)
            skip()
            if (at != text.length) fail()
            return value
        }

        private fun fail(): Nothing = throw JsonException("no JSON at character $at")

        private fun skip() {
            while (at < text.length && text[at] in " \t\n\r") at++
        }

        private fun take(expected: Char): Boolean {
            if (at >= text.length || text[at] != expected) return false
            at++
            return true
        }

        private fun word(word: String, value: Any?): Any? {
            if (!text.startsWith(word, at)) fail()
            at += word.length
            return value
        }

        private fun value(depth: Int): Any? {
            if (depth > DEEPEST) fail()
            skip()
            if (at >= text.length) fail()
            return when (text[at]) {
                '{' -> members(depth)
                '[' -> entries(depth)
                '"' -> string()
                't' -> word("true", true)
                'f' -> word("false", false)
                'n' -> word("null", null)
                else -> number()
            }
        }

        private fun members(depth: Int): Map<String, Any?> {
            val found = LinkedHashMap<String, Any?>()
            at++
            skip()
            if (take('}')) return found
            while (true) {
                skip()
                if (at >= text.length || text[at] != '"') fail()
                val name = string()
                skip()
                if (!take(':')) fail()
                found[name] = value(depth + 1)
                skip()
                if (take('}')) return found
                if (!take(',')) fail()
            }
        }

        private fun entries(depth: Int): List<Any?> {
            val found = ArrayList<Any?>()
            at++
            skip()
            if (take(']')) return found
            while (true) {
                found.add(value(depth + 1))
                skip()
                if (take(']')) return found
                if (!take(',')) fail()
            }
        }

        private fun string(): String {
            val found = StringBuilder()
            at++
            while (at < text.length) {
                val unit = text[at++]
                when {
                    unit == '"' -> return found.toString()
                    unit == '\\' -> found.append(escaped())
                    unit < ' ' -> fail()
                    else -> found.append(unit)
                }
            }
            fail()
        }

        private fun escaped(): Char {
            if (at >= text.length) fail()
            return when (val unit = text[at++]) {
                '"', '\\', '/' -> unit
                'b' -> '\b'
                'f' -> '\u000c'
                'n' -> '\n'
                'r' -> '\r'
                't' -> '\t'
                'u' -> {
                    if (at + 4 > text.length) fail()
                    var code = 0
                    repeat(4) {
                        val digit = Character.digit(text[at++], 16)
                        if (digit < 0) fail()
                        code = code * 16 + digit
                    }
                    code.toChar()
                }
                else -> fail()
            }
        }

        private fun number(): Any {
            val from = at
            while (at < text.length && text[at] in "+-.0123456789eE") at++
            val found = text.substring(from, at)
            if (!FORM.matches(found)) fail()
            val whole = if (found.none { it in ".eE" }) found.toLongOrNull() else null
            return whole ?: found.toDouble()
        }
    }

    private val FORM = Regex("-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
}
