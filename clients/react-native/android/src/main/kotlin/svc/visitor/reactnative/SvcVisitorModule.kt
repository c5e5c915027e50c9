package svc.visitor.reactnative

import com.facebook.react.bridge.Promise
import com.facebook.react.bridge.ReactApplicationContext
import svc.visitor.SvcAttestation
import svc.visitor.SvcCallback
import svc.visitor.SvcCancellable
import svc.visitor.SvcException
import svc.visitor.SvcIdentification
import svc.visitor.SvcOptions
import svc.visitor.SvcRequest
import svc.visitor.SvcVisitor
import svc.visitor.core.Json
import svc.visitor.core.JsonException
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.Executor
import java.util.concurrent.atomic.AtomicBoolean

/** Passes JSON between React Native and the Android SDK. */
class SvcVisitorModule(context: ReactApplicationContext) : NativeSvcVisitorSpec(context) {
    @Volatile private var visitor: SvcVisitor? = null
    private val calls = ConcurrentHashMap<String, SvcCancellable>()

    override fun configure(options: String): String = try {
        visitor = SvcVisitor.create(reactApplicationContext, read(Json.parse(options) as Map<*, *>))
        ""
    } catch (error: SvcException) {
        text(error)
    } catch (error: JsonException) {
        text(wrong("$error"))
    } catch (error: RuntimeException) {
        text(wrong("an option is missing, or has a value of another type"))
    }

    override fun identify(call: String, promise: Promise) {
        val known = visitor ?: return promise.resolve(text(wrong("call configure() first")))
        val (id, request) = try {
            asked(Json.parse(call) as Map<*, *>)
        } catch (error: SvcException) {
            return promise.resolve(text(error))
        } catch (error: JsonException) {
            return promise.resolve(text(wrong("$error")))
        } catch (error: RuntimeException) {
            return promise.resolve(text(wrong("an option has a value of another type")))
        }
        val isOver = AtomicBoolean()
        val running = known.identify(request, object : SvcCallback {
            override fun onSuccess(result: SvcIdentification) = end(result.json)

            override fun onFailure(error: SvcException) = end(text(error))

            private fun end(told: String) {
                isOver.set(true)
                calls.remove(id)
                promise.resolve(told)
            }
        })
        calls[id] = running
        if (isOver.get()) calls.remove(id)
    }

    override fun cancel(id: String) {
        calls.remove(id)?.cancel()
    }

    override fun setLocationMocked(isMocked: String) {
        visitor?.setLocationMocked(isMocked.toBooleanStrictOrNull())
    }

    override fun forget(promise: Promise) {
        val known = visitor ?: return promise.resolve(null)
        known.forget { promise.resolve(null) }
    }

    private fun asked(given: Map<*, *>): Pair<String, SvcRequest> {
        refuse(given.keys - CALL)
        val request = SvcRequest.Builder().tag(given["tag"] as String?).accountId(given["accountId"] as String?)
            .action(given["action"] as String?).timeoutMs((given["timeoutMs"] as Number?)?.toLong())
        return Pair(given["id"] as String, request.build())
    }

    private fun refuse(unknown: Set<Any?>) {
        if (unknown.isNotEmpty()) throw wrong("there is no option ${unknown.joinToString()}")
    }

    private fun read(given: Map<*, *>): SvcOptions {
        refuse(given.keys - KNOWN)
        val at = (given["endpoint"] as? List<*> ?: listOf(given["endpoint"])).map { it as String }
        val options = SvcOptions.Builder(given["apiKey"] as String, at.firstOrNull() ?: throw wrong("endpoint is an empty list"))
        options.alsoAt(*at.drop(1).toTypedArray()).bridge("react-native", VERSION).callbackExecutor(Executor { it.run() })
        (given["timeoutMs"] as Number?)?.let { options.timeoutMs(it.toLong()) }
        (given["collectMs"] as Number?)?.let { options.collectMs(it.toLong()) }
        (given["storage"] as Boolean?)?.let { options.storage(it) }
        (given["deviceId"] as Boolean?)?.let { options.deviceId(it) }
        (given["minimal"] as Boolean?)?.let { options.minimal(it) }
        (given["deferred"] as Boolean?)?.let { options.deferred(it) }
        (given["verdict"] as Boolean?)?.let { options.verdict(it) }
        (given["debugLog"] as Boolean?)?.let { options.debugLog(it) }
        when (given["attestation"] as String?) {
            null, "off" -> {}
            "when_possible" -> options.attestation(SvcAttestation.WHEN_POSSIBLE)
            else -> throw wrong("attestation is off or when_possible")
        }
        texts(given["pins"])?.let { options.pins(*it) }
        texts(given["expectedSigners"])?.let { options.expectedSigners(*it) }
        texts(given["expectedInstallers"])?.let { options.expectedInstallers(*it) }
        texts(given["checks"])?.let { options.checks(it.toSet()) }
        return options.build()
    }

    private fun texts(value: Any?): Array<String>? = (value as List<*>?)?.map { it as String }?.toTypedArray()

    private fun wrong(message: String) = SvcException("invalid_options", message)

    private fun text(error: SvcException): String = Json.canonical(
        mapOf(
            "svc_error" to mapOf(
                "code" to error.code, "message" to error.message, "status" to error.status, "retryable" to error.retryable,
                "retry_after_ms" to error.retryAfterMs, "request_id" to error.requestId,
            ),
        ),
    )

    private companion object {
        const val VERSION = "0.3.0"
        val KNOWN = setOf(
            "apiKey", "endpoint", "timeoutMs", "collectMs", "storage", "deviceId", "minimal", "attestation", "deferred", "verdict",
            "pins", "expectedSigners", "expectedInstallers", "checks", "debugLog",
        )
        val CALL = setOf("id", "tag", "accountId", "action", "timeoutMs")
    }
}
