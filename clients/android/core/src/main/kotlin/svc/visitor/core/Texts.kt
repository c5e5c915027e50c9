package svc.visitor.core

import java.security.MessageDigest

/** Hexadecimal, base64, digests and ids, without what Android 7 does not have. */
object Texts {
    private const val BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

    fun hex(bytes: ByteArray): String {
        val found = StringBuilder(bytes.size * 2)
        for (byte in bytes) {
            found.append(Character.forDigit(byte.toInt() shr 4 and 15, 16))
            found.append(Character.forDigit(byte.toInt() and 15, 16))
        }
        return found.toString()
    }

    fun sha256(bytes: ByteArray): ByteArray = MessageDigest.getInstance("SHA-256").digest(bytes)

    fun sha256Hex(text: String): String = hex(sha256(text.toByteArray(Charsets.UTF_8)))

    /** Standard base64 with padding and without line breaks. */
    fun base64(bytes: ByteArray): String {
        val found = StringBuilder((bytes.size + 2) / 3 * 4)
        for (start in bytes.indices step 3) {
            var bits = 0
            for (offset in 0..2) bits = bits shl 8 or (bytes.getOrElse(start + offset) { 0 }.toInt() and 255)
            for (place in 0..3) {
                found.append(if (start + place > bytes.size) '=' else BASE64[bits shr (18 - 6 * place) and 63])
            }
        }
        return found.toString()
    }

    /** `null` unless it is standard base64 with padding and nothing else. */
    fun fromBase64(text: String): ByteArray? {
        if (text.length % 4 != 0) return null
        val padding = text.length - text.trimEnd('=').length
        if (padding > 2) return null
        val found = ByteArray(text.length / 4 * 3 - padding)
        var bits = 0
        var at = 0
        for (index in text.indices) {
            val digit = if (index >= text.length - padding) 0 else BASE64.indexOf(text[index])
            if (digit < 0) return null
            bits = bits shl 6 or digit
            if (index % 4 == 3) {
                for (shift in intArrayOf(16, 8, 0)) if (at < found.size) found[at++] = (bits shr shift).toByte()
                bits = 0
            }
        }
        return if (base64(found) == text) found else null
    }

    /** A UUIDv7 (RFC 9562) of this moment and 16 random bytes. */
    fun timeOrderedId(nowMs: Long, random: ByteArray): String {
        val bytes = random.copyOf()
        for (index in 0..5) bytes[index] = (nowMs shr (40 - 8 * index)).toByte()
        bytes[6] = (bytes[6].toInt() and 15 or 0x70).toByte()
        bytes[8] = (bytes[8].toInt() and 63 or 0x80).toByte()
        val digits = hex(bytes)
        return listOf(0, 8, 12, 16, 20, 32).zipWithNext { from, to -> digits.substring(from, to) }.joinToString("-")
    }
}
