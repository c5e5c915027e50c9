package svc.visitor

import svc.visitor.core.Json
import svc.visitor.core.Sending
import java.net.URI
import java.net.URISyntaxException
import java.util.concurrent.Executor

/** Whether reports carry a proof of app and device. */
enum class SvcAttestation { OFF, WHEN_POSSIBLE }

/**
 * The only error there is. [code] is a code of the service's API, or `network`, `offline`, `timeout`, `aborted`, `bad_response`,
 * `pin_mismatch`, `invalid_options`, `storage`, `internal_error`. [status] is 0 where no response came; [retryable] says whether the
 * same call may succeed later, [retryAfterMs] what the service asked to wait, [requestId] what its operator wants to know.
 */
class SvcException(
    val code: String,
    message: String,
    val status: Int = 0,
    val retryable: Boolean = false,
    val retryAfterMs: Long = 0,
    val requestId: String? = null,
) : Exception(message)

/** Receives exactly one of the two, once, on the executor of the options. */
interface SvcCallback {
    fun onSuccess(result: SvcIdentification)
    fun onFailure(error: SvcException)
}

/** Ends one call with `aborted`; others that share its request go on. */
fun interface SvcCancellable {
    fun cancel()
}

/** What an identification is about; [Builder] says more than a tag. */
class SvcRequest private constructor(builder: Builder) {
    @JvmOverloads constructor(tag: String? = null) : this(Builder().tag(tag))

    val tag: String? = builder.tag
    val accountId: String? = builder.accountId
    val action: String? = builder.action
    val timeoutMs: Long? = builder.timeoutMs
    internal val callbackExecutor: Executor? = builder.callbackExecutor

    class Builder {
        internal var tag: String? = null
        internal var accountId: String? = null
        internal var action: String? = null
        internal var timeoutMs: Long? = null
        internal var callbackExecutor: Executor? = null

        /** Your own reference, at most 1,024 characters. */
        fun tag(value: String?) = apply { tag = value }

        /** Your own opaque id, 1 to 256 characters. */
        fun accountId(value: String?) = apply { accountId = value }

        /** What the visitor does, such as `log_in`. */
        fun action(value: String?) = apply { action = value }

        /** For this call, in place of the option. */
        fun timeoutMs(value: Long?) = apply { timeoutMs = value }

        /** For this call, in place of the option. */
        fun callbackExecutor(value: Executor?) = apply { callbackExecutor = value }

        /** Throws nothing: what the service would refuse reaches the callback as `invalid_options`. */
        fun build(): SvcRequest = SvcRequest(this)
    }

    /** Why the service would refuse it; `null` where it would not. */
    internal fun fault(): String? = when {
        tag != null && (length(tag) > 1_024 || isCut(tag)) -> "tag is a text of at most 1,024 whole characters."
        accountId != null && (length(accountId) !in 1..256 || isCut(accountId) || accountId.any { it.isISOControl() }) ->
            "accountId is 1 to 256 characters without control characters."
        action != null && !ACTION.matches(action) -> "action is a name such as log_in: [a-z][a-z0-9_.-]{0,63}."
        timeoutMs != null && timeoutMs !in 1..MAX_MS -> "timeoutMs is a number of milliseconds above 0."
        else -> null
    }

    internal fun subject(): Map<String, Any?> =
        mapOf("account_id" to accountId, "action" to action, "tag" to tag).filterValues { it != null }

    private fun length(text: String): Int = text.codePointCount(0, text.length)

    private fun isCut(text: String): Boolean = text.indices.any {
        val other = if (text[it].isHighSurrogate()) text.getOrNull(it + 1)?.isLowSurrogate() else
            if (text[it].isLowSurrogate()) text.getOrNull(it - 1)?.isHighSurrogate() else true
        other != true
    }

    internal companion object {
        const val MAX_MS = Int.MAX_VALUE.toLong()
        val ACTION = Regex("[a-z][a-z0-9_.-]{0,63}")
    }
}

/** A signal that fired. */
class SvcTrigger internal constructor(val signal: String, val group: String, val weight: Int, val confidence: String)

/** What the first rule that matched decided. Your server acts on it: a person who controls the device can change what an app reads. */
class SvcDecision internal constructor(val action: String, val ruleId: String?, val rule: String?)

/** The response. Only [requestId] is always there; [json] is the exact response. Let your server read the event by it. */
class SvcIdentification internal constructor(val requestId: String, val json: String, private val members: Map<*, *>) {
    val duplicate: Boolean? get() = members["duplicate"] as? Boolean
    val deferredToken: String? get() = text("deferred_token")
    val visitorId: String? get() = text("visitor_id")
    val visitorIsNew: Boolean? get() = members["visitor_is_new"] as? Boolean
    val identifiable: Boolean? get() = members["identifiable"] as? Boolean
    val visitorConfidence: Int? get() = (members["visitor_confidence"] as? Number)?.toInt()
    val proven: Boolean? get() = members["proven"] as? Boolean
    val state: String? get() = text("state")
    val reason: String? get() = text("reason")
    val suspectScore: Int? get() = (members["suspect_score"] as? Number)?.toInt()
    val suspectLevel: String? get() = text("suspect_level")
    val verdict: String? get() = text("verdict")
    val triggers: List<SvcTrigger>?
        get() = (members["triggers"] as? List<*>)?.mapNotNull { one ->
            (one as? Map<*, *>)?.let {
                val weight = (it["weight"] as? Number)?.toInt() ?: 0
                SvcTrigger("${it["signal"]}", "${it["group"]}", weight, "${it["confidence"]}")
            }
        }
    val decision: SvcDecision?
        get() = (members["decision"] as? Map<*, *>)?.let {
            SvcDecision("${it["action"]}", it["rule_id"] as? String, it["rule"] as? String)
        }

    private fun text(name: String): String? = members[name] as? String

    companion object {
        /** Of a response's text, for tests of apps. Throws [IllegalArgumentException] where it has no `request_id`. */
        @JvmStatic
        fun of(json: String): SvcIdentification {
            val members = Json.parseOrNull(json) as? Map<*, *>
            return SvcIdentification(requireNotNull(members?.get("request_id") as? String) { "there is no request_id" }, json, members!!)
        }
    }
}

/** How the last call went, in milliseconds: for people who look, not for decisions. */
class SvcTiming(
    val collectMs: Long,
    val networkMs: Long,
    val totalMs: Long,
    val attempts: Int,
    val sentBytes: Int,
    val endpoint: String,
    /** Sources and checks that failed or took too long. */
    val leftOut: List<String>,
)

/** Checked options, from [Builder]. */
class SvcOptions private constructor(builder: Builder) {
    internal val apiKey: String = builder.apiKey
    internal val endpoints: List<String> = builder.endpoints.map { it.trimEnd('/').removeSuffix("/api/v1").trimEnd('/') }
    internal val timeoutMs: Long = builder.timeoutMs
    internal val collectMs: Long = builder.collectMs
    internal val storage: Boolean = builder.storage
    internal val deviceId: Boolean = builder.deviceId
    internal val minimal: Boolean = builder.minimal
    internal val attestation: SvcAttestation = builder.attestation
    internal val deferred: Boolean = builder.deferred
    internal val verdict: Boolean = builder.verdict
    internal val pins: Set<String> = builder.pins
    internal val bridge: Bridge? = builder.bridge

    /** For the Android part. */
    val expectedSigners: Set<String> = builder.expectedSigners.map { it.replace(":", "").lowercase() }.toSet()
    val expectedInstallers: Set<String> = builder.expectedInstallers
    val checks: Set<String>? = builder.checks
    val callbackExecutor: Executor? = builder.callbackExecutor
    val trafficTag: Int = builder.trafficTag
    internal val debugLog: Boolean = builder.debugLog

    internal class Bridge(val name: String, val version: String)

    class Builder(internal val apiKey: String, endpoint: String) {
        internal var endpoints = listOf(endpoint)
        internal var timeoutMs = 10_000L
        internal var collectMs = 1_000L
        internal var storage = true
        internal var deviceId = true
        internal var minimal = false
        internal var attestation = SvcAttestation.OFF
        internal var deferred = true
        internal var verdict = false
        internal var pins = emptySet<String>()
        internal var expectedSigners = emptySet<String>()
        internal var expectedInstallers = emptySet<String>()
        internal var checks: Set<String>? = null
        internal var callbackExecutor: Executor? = null
        internal var trafficTag = TRAFFIC_TAG
        internal var debugLog = false
        internal var bridge: Bridge? = null

        /** Other addresses of the service, tried in order after a network error. */
        fun alsoAt(vararg others: String) = apply { endpoints = endpoints + others }

        /** For one `identify`, all attempts included. 10,000 by default. */
        fun timeoutMs(value: Long) = apply { timeoutMs = value }

        /** For the whole collection. 1,000 by default. */
        fun collectMs(value: Long) = apply { collectMs = value }

        /** `false` stores nothing, and sends no device id. */
        fun storage(value: Boolean) = apply { storage = value }

        /** `false` sends no `android_id`. */
        fun deviceId(value: Boolean) = apply { deviceId = value }

        /** `true` sends model, OS version and ids, and nothing else of the device: too little to recognize anybody. */
        fun minimal(value: Boolean) = apply { minimal = value }

        fun attestation(value: SvcAttestation) = apply { attestation = value }

        /** Whether a second report follows, for people who look at the event. */
        fun deferred(value: Boolean) = apply { deferred = value }

        /** Whether responses have a signed verdict, which your server verifies by itself. */
        fun verdict(value: Boolean) = apply { verdict = value }

        /** SHA-256 of public keys of the service's certificates, in base64; two at least. */
        fun pins(vararg values: String) = apply { pins = values.toSet() }

        /** SHA-256 of the certificates that your app may be signed with, in hexadecimal. */
        fun expectedSigners(vararg values: String) = apply { expectedSigners = values.toSet() }

        /** Packages that may install your app, such as `com.android.vending`; the flag `unofficial_store` needs it. */
        fun expectedInstallers(vararg values: String) = apply { expectedInstallers = values.toSet() }

        /** The integrity checks to run, by the names of their flags; all by default. */
        fun checks(values: Set<String>) = apply { checks = values }

        /** Where callbacks run; the main thread by default. */
        fun callbackExecutor(value: Executor) = apply { callbackExecutor = value }

        /** What the system counts the SDK's traffic under (`TrafficStats`). */
        fun trafficTag(value: Int) = apply { trafficTag = value }

        /** `true` writes to the system's log how calls go, without keys and ids. */
        fun debugLog(value: Boolean) = apply { debugLog = value }

        /** For bridges: reports are of the platform `NAME-android`. */
        fun bridge(name: String, version: String) = apply { bridge = Bridge(name, version) }

        /** Throws [SvcException] `invalid_options`. */
        fun build(): SvcOptions {
            fault()?.let { throw SvcException("invalid_options", it) }
            return SvcOptions(this)
        }

        private fun fault(): String? = when {
            SERVER_KEYS.any { apiKey.startsWith(it) } ->
                "apiKey is a key for servers, and everybody can read it in an app: revoke it, and use a public key (svc_pk_...)."
            !apiKey.startsWith("svc_pk_") || apiKey.any { it !in '!'..'~' } ->
                "apiKey must be a public key (svc_pk_...): `svc key issue ORG --kind public --environment production --platform android`."
            timeoutMs !in 1..SvcRequest.MAX_MS -> "timeoutMs is a number of milliseconds above 0."
            collectMs !in 1..SvcRequest.MAX_MS -> "collectMs is a number of milliseconds above 0."
            pins.isNotEmpty() && (pins.size < 2 || pins.any { !PIN.matches(it) }) ->
                "pins are two or more SHA-256 of public keys in base64: with one, a new key of the service stops your app."
            else -> endpoints.mapNotNull { faultOf(it) }.firstOrNull()
        }

        private fun faultOf(endpoint: String): String? {
            val uri = try {
                URI(endpoint)
            } catch (_: URISyntaxException) {
                null
            }
            val host = uri?.host ?: return "endpoint must be an address such as https://id.shop.example."
            val isLocal = host == "localhost" || host == "10.0.2.2" || host == "[::1]" || LOOPBACK.matches(host)
            return when {
                uri.scheme == "https" -> null
                uri.scheme != "http" -> "endpoint must be an https address."
                isLocal && "_development_" in apiKey -> null
                else -> "Without https the endpoint can be localhost or 10.0.2.2 only, and the key one for development: ${Sending.shown(apiKey)}"
            }
        }
    }

    private companion object {
        val SERVER_KEYS = listOf("svc_sk_", "svc_px_", "svc_mk_")
        val PIN = Regex("[A-Za-z0-9+/]{43}=")
        val LOOPBACK = Regex("127(\\.[0-9]{1,3}){3}")
        const val TRAFFIC_TAG = 0x737663
    }
}
