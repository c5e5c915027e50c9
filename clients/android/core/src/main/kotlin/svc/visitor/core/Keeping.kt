package svc.visitor.core

import java.io.File
import java.io.IOException

/** Small texts by name. Every call may throw [IOException]. */
interface Store {
    fun read(name: String): String?
    fun write(name: String, text: String)
    fun delete(name: String)
    fun names(): List<String>
}

/** Files in a folder of the app. */
class FileStore(private val folder: () -> File) : Store {
    override fun read(name: String): String? {
        val file = File(folder(), name)
        return if (file.exists()) file.readText() else null
    }

    override fun write(name: String, text: String) {
        val place = folder()
        if (!place.isDirectory && !place.mkdirs() && !place.isDirectory) throw IOException("no folder")
        val made = File(place, "$name.new")
        made.writeText(text)
        if (!made.renameTo(File(place, name))) throw IOException("not renamed")
    }

    override fun delete(name: String) {
        val file = File(folder(), name)
        if (!file.delete() && file.exists()) throw IOException("not deleted")
    }

    override fun names(): List<String> = folder().list()?.sorted() ?: emptyList()
}

/** A store until it is closed: from then on nothing is written. What is being written then is there before anything is deleted. */
class Vault(private val store: Store) : Store {
    @Volatile private var isClosed = false

    fun close() {
        isClosed = true
    }

    override fun read(name: String): String? = if (isClosed) null else store.read(name)

    @Synchronized override fun write(name: String, text: String) {
        if (isClosed) throw IOException("closed")
        store.write(name, text)
    }

    @Synchronized override fun delete(name: String) = store.delete(name)

    @Synchronized override fun names(): List<String> = store.names()
}

/** Where nothing may be stored. */
class MemoryStore : Store {
    private val texts = java.util.TreeMap<String, String>()

    @Synchronized override fun read(name: String): String? = texts[name]

    @Synchronized override fun write(name: String, text: String) {
        texts[name] = text
    }

    @Synchronized override fun delete(name: String) {
        texts.remove(name)
    }

    @Synchronized override fun names(): List<String> = texts.keys.toList()
}

/** The token (`token.json`): 32 lower-case hexadecimal digits, written, read back, then used. */
object Token {
    const val NAME = "token"
    private val FORM = Regex("[0-9a-f]{32}")

    /** `null` where none can be kept. */
    fun of(store: Store, made: () -> String): String? {
        try {
            val known = store.read(NAME)
            if (known != null && FORM.matches(known)) return known
            val created = made()
            store.write(NAME, created)
            return if (store.read(NAME) == created) created else null
        } catch (_: Exception) {
            return null
        }
    }
}

/** The queue of deferred reports (`deferred.json`). Names sort by age. */
class Queue(private val store: Store) {
    class Entry(val name: String, val path: String, val body: String)

    /** Drops what is too large or expired; the oldest makes place. `id` tells reports of one moment apart. */
    fun add(nowMs: Long, expiresAtMs: Long, id: String, path: String, body: String) {
        expire(nowMs)
        if (expiresAtMs <= nowMs || body.toByteArray(Charsets.UTF_8).size > MAX_BYTES) return
        val text = Json.canonical(mapOf("path" to path, "body" to body))
        store.write("$PREFIX${expiresAtMs.toString().padStart(15, '0')}-$id", text)
        for (name in queued().dropLast(LENGTH)) store.delete(name)
    }

    /** Sends all, oldest first; `send` gives the status, 0 for none. Stops at the first that may go later. */
    fun flush(nowMs: Long, send: (Entry) -> Int) {
        expire(nowMs)
        for (name in queued()) {
            val entry = entry(name)
            val status = if (entry == null) 400 else send(entry)
            if (status == 0 || status >= 500 || status == 429) return
            store.delete(name)
        }
    }

    fun clear() {
        for (name in queued()) store.delete(name)
    }

    fun queued(): List<String> = store.names().filter { it.startsWith(PREFIX) && !it.endsWith(".new") }.sorted()

    private fun expire(nowMs: Long) {
        for (name in queued()) {
            val expires = name.removePrefix(PREFIX).substringBefore('-').toLongOrNull() ?: 0
            if (expires <= nowMs) store.delete(name)
        }
    }

    private fun entry(name: String): Entry? {
        val members = Json.parseOrNull(store.read(name) ?: return null) as? Map<*, *>
        return Entry(name, members?.get("path") as? String ?: return null, members["body"] as? String ?: return null)
    }

    companion object {
        const val PREFIX = "deferred-"
        const val LENGTH = 5
        const val MAX_BYTES = 65_536
    }
}

/** `signals.attestation` of Android (`attestation.json`). */
object Attestation {
    private const val CHALLENGE_BYTES = 32
    private const val MAX_CERTIFICATES = 10
    private const val MAX_BYTES = 10_000
    val NONE: Map<String, Any?> = mapOf("format" to "none")

    fun challengeBytes(challenge: Any?): ByteArray? =
        (challenge as? String)?.let { Texts.fromBase64(it) }?.takeIf { it.size == CHALLENGE_BYTES }

    /** `chain`: DER, the leaf first; `null` where the key store failed. */
    fun claim(challenge: Any?, chain: List<ByteArray>?): Map<String, Any?> {
        val fits = !chain.isNullOrEmpty() && chain.size <= MAX_CERTIFICATES && chain.all { it.size in 1..MAX_BYTES }
        if (challengeBytes(challenge) == null || !fits) return NONE
        val certificates = chain!!.map { Texts.base64(it) }
        return mapOf("format" to "android-key", "challenge" to challenge, "certificate_chain" to certificates)
    }
}
