package svc.visitor

import svc.visitor.core.Engine
import svc.visitor.core.FileStore
import svc.visitor.core.Host
import svc.visitor.core.Json
import svc.visitor.core.Source
import svc.visitor.core.Store
import svc.visitor.core.Texts
import java.io.File
import java.util.concurrent.Executor

/**
 * A phone that a test in another language holds: arguments are the endpoint, the key and the folder of its store; each line
 * of the input is a call, each line of the output what came of it, or `{"challenge": ...}`, for which the next line of the
 * input has the chain.
 */
fun main(arguments: Array<String>) {
    val (endpoint, key, folder) = arguments
    var device: Members = emptyMap()
    val host = object : Host {
        override val userAgent = "svc-android/0.1.0 (Android 15; com.example.shop/42)"
        override val version = "0.1.0"

        override fun nowMs() = System.currentTimeMillis()

        override fun elapsedMs() = System.nanoTime() / 1_000_000

        override fun random(count: Int) = ByteArray(count).also { java.security.SecureRandom().nextBytes(it) }

        override fun isOnline() = true

        override fun sources() = device.map { (name, value) -> Source(name) { value } }

        override fun checks(): List<Source> = emptyList()

        override fun deferredSources() = listOf(Source("sensors") { "abc" })

        override val store: Store = FileStore { File(folder) }
        override val callbackExecutor = Executor { it.run() }

        override fun attest(challenge: ByteArray): List<ByteArray> {
            println(Json.canonical(mapOf("challenge" to Texts.base64(challenge))))
            return (Json.parse(readln()) as List<*>).map { Texts.fromBase64(it as String)!! }
        }

        override fun forgetAttestation() {}
    }
    val engines = HashMap<Boolean, Engine>()
    while (true) {
        @Suppress("UNCHECKED_CAST") val call = Json.parse(readlnOrNull() ?: return) as Members
        @Suppress("UNCHECKED_CAST")
        (call["device"] as Members?)?.let { device = it }
        val attests = call["attest"] == true
        val engine = engines.getOrPut(attests) {
            val attestation = if (attests) SvcAttestation.WHEN_POSSIBLE else SvcAttestation.OFF
            Engine(SvcOptions.Builder(key, endpoint).attestation(attestation).collectMs(20_000).timeoutMs(60_000).build(), host)
        }
        val reported = Reported()
        engine.identify(SvcRequest(call["tag"] as String?), reported)
        val said: Members = when (val found = reported.next()) {
            is SvcIdentification -> mapOf("attempts" to engine.lastTiming!!.attempts, "response" to Json.parse(found.json))
            is SvcException -> mapOf("error" to mapOf("code" to found.code, "status" to found.status, "retry_after_ms" to found.retryAfterMs, "message" to found.message))
            else -> throw AssertionError()
        }
        println(Json.canonical(said))
    }
}
