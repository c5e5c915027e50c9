import Foundation

/// The only error there is. `code` is one of the service's API, or `network`, `offline`, `timeout`, `aborted`, `bad_response`,
/// `pin_mismatch`, `invalid_options`, `storage`, `internal_error`.
public struct SvcError: LocalizedError, Sendable {
    public let code: String
    public let message: String
    /// HTTP status of the last response; 0 where none came.
    public let status: Int
    /// Whether the same call may succeed later.
    public let retryable: Bool
    /// Milliseconds that the service asked to wait.
    public let retryAfterMs: Int64
    /// The service's id of the request, to be quoted to its operator.
    public let requestID: String?
    public var errorDescription: String? { message }

    public init(
        code: String, message: String, status: Int = 0, retryable: Bool = false, retryAfterMs: Int64 = 0,
        requestID: String? = nil
    ) {
        self.code = code
        self.message = message
        self.status = status
        self.retryable = retryable
        self.retryAfterMs = retryAfterMs
        self.requestID = requestID
    }
}

/// The response. Only `requestID` is always there; `json` is the exact response. Let your server read the event by it.
public struct SvcIdentification: Sendable {
    public let requestID: String
    public let json: String
    private let members: Json

    /// Of a response's text, for tests of apps; `nil` where it has no `request_id`.
    public init?(json: String) {
        guard let members = Json.parse(json), let id = members["request_id"]?.string else { return nil }
        self.init(requestID: id, json: json, members: members)
    }

    init(requestID: String, json: String, members: Json) {
        self.requestID = requestID
        self.json = json
        self.members = members
    }

    public var duplicate: Bool? { members["duplicate"]?.bool }
    public var visitorID: String? { members["visitor_id"]?.string }
    public var visitorIsNew: Bool? { members["visitor_is_new"]?.bool }
    public var identifiable: Bool? { members["identifiable"]?.bool }
    public var visitorConfidence: Int? { whole("visitor_confidence") }
    public var proven: Bool? { members["proven"]?.bool }
    public var state: String? { members["state"]?.string }
    public var reason: String? { members["reason"]?.string }
    public var suspectScore: Int? { whole("suspect_score") }
    public var suspectLevel: String? { members["suspect_level"]?.string }
    public var verdict: String? { members["verdict"]?.string }
    public var decision: String? { members["decision"]?["action"]?.string }

    /// `nil` also for a number that no `Int` holds.
    private func whole(_ name: Name) -> Int? { members[name]?.double.flatMap { Int(exactly: $0.rounded(.down)) } }

    /// Names of the signals that fired.
    public var triggers: [String]? { members["triggers"]?.list?.compactMap { $0["signal"]?.string } }
}

public enum SvcAttestation: Sendable {
    case off, whenPossible
}

/// Options; `SvcVisitor.init` checks them.
public struct SvcOptions: Sendable {
    public var apiKey: String
    public var endpoints: [String]
    public var timeoutMs: Int64 = 10_000
    public var collectMs: Int64 = 1_000
    /// `false` stores nothing, and sends no device id.
    public var storage = true
    public var deviceID = true
    /// `true` sends model, OS version and ids, and nothing else of the device: too little to recognize anybody.
    public var minimal = false
    public var attestation = SvcAttestation.off
    public var verdict = false
    /// SHA-256 of public keys of the service's certificates, in base64; two at least.
    public var pins: Set<String> = []
    /// The integrity checks to run, by the names of their flags; `nil` is all.
    public var checks: Set<String>?
    /// Writes to the system's log how calls go, without keys and ids.
    public var debugLog = false
    /// Bundle id that the app must have; another one sets `app_tampering`.
    public var expectedBundleID: String?
    /// For bridges: reports are of the platform `NAME-ios`.
    public var bridge: (name: String, version: String)?

    public init(apiKey: String, endpoint: String, _ others: String...) {
        self.apiKey = apiKey
        endpoints = [endpoint] + others
    }

    private static let limits: ClosedRange<Int64> = 1...Int64(Int32.max)

    /// Why they cannot be used; `nil` where they can.
    package var fault: SvcError? {
        let message: String? =
            if ["svc_sk_", "svc_px_", "svc_mk_"].contains(where: { apiKey.hasPrefix($0) }) {
                "apiKey is a key for servers, and everybody can read it in an app: revoke it, and use a public key (svc_pk_...)."
            } else if !apiKey.hasPrefix("svc_pk_") || !apiKey.utf8.allSatisfy({ (33...126).contains($0) }) {
                "apiKey must be a public key (svc_pk_...): `svc key issue ORG --kind public --environment production --platform ios`."
            } else if !Self.limits.contains(timeoutMs) || !Self.limits.contains(collectMs) {
                "timeoutMs and collectMs are numbers of milliseconds above 0."
            } else if pins.count == 1 || pins.contains(where: { Texts.fromBase64($0)?.count != 32 }) {
                "pins are two or more SHA-256 of public keys in base64: with one, a new key of the service stops your app."
            } else if endpoints.isEmpty {
                "endpoints is an empty list."
            } else {
                endpoints.compactMap(faultOf).first
            }
        return message.map { SvcError(code: "invalid_options", message: $0) }
    }

    private func faultOf(_ endpoint: String) -> String? {
        if endpoint.hasPrefix("https://"), endpoint.count > 8 { return nil }
        guard endpoint.hasPrefix("http://") else { return "endpoint must be an address such as https://id.shop.example." }
        let host = endpoint.dropFirst(7).prefix { $0 != ":" && $0 != "/" }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        let isLoopback = parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
        let isLoopback6 = ["", ":", "/"].contains { endpoint.dropFirst(7).prefix(6) == "[::1]" + $0 }
        let isLocal = host == "localhost" || isLoopback || isLoopback6
        if isLocal, apiKey.contains("_development_") { return nil }
        return "Without https the endpoint can be localhost only, and the key one for development: \(Sending.shown(apiKey))"
    }

    /// Addresses without a slash or the path of the API at their end.
    var addresses: [String] {
        endpoints.map { one in
            var text = Substring(one)
            while text.hasSuffix("/") { text.removeLast() }
            if text.hasSuffix("/api/v1") { text.removeLast(7) }
            return String(text)
        }
    }
}
