// Not built yet: sources only.
import Foundation
import SvcVisitor

/// Passes JSON between React Native and the Swift package.
@objc public final class SvcVisitorBridge: NSObject {
    private var visitor: SvcVisitor?
    private static let version = "0.3.0"

    /// Empty where the options are right, else the error as JSON.
    @objc public func configure(_ options: String) -> String {
        guard let given = Json.parse(options), let key = given["apiKey"]?.string else {
            return told(wrong("an option is missing, or has a value of another type"))
        }
        let at = given["endpoint"]?.string.map { [$0] } ?? given["endpoint"]?.list?.compactMap(\.string) ?? []
        guard let first = at.first else { return told(wrong("endpoint is missing")) }
        var made = SvcOptions(apiKey: key, endpoint: first)
        made.endpoints = at
        made.bridge = ("react-native", Self.version)
        if let value = given["timeoutMs"]?.int { made.timeoutMs = value }
        if let value = given["collectMs"]?.int { made.collectMs = value }
        if let value = given["storage"]?.bool { made.storage = value }
        if let value = given["deviceId"]?.bool { made.deviceID = value }
        if let value = given["minimal"]?.bool { made.minimal = value }
        if let value = given["verdict"]?.bool { made.verdict = value }
        if given["attestation"]?.string == "when_possible" { made.attestation = .whenPossible }
        if let value = given["pins"]?.list { made.pins = Set(value.compactMap(\.string)) }
        do {
            visitor = try SvcVisitor(made)
            return ""
        } catch {
            return told(error)
        }
    }

    @objc public func identify(_ call: String, done: @escaping @Sendable (String) -> Void) {
        guard let visitor else { return done(told(wrong("call configure() first"))) }
        guard let given = Json.parse(call) else { return done(told(wrong("the call is no JSON"))) }
        let timeout = given["timeoutMs"]?.double.map { $0 / 1_000 }
        Task {
            do {
                let found = try await visitor.identify(
                    tag: given["tag"]?.string, accountID: given["accountId"]?.string, action: given["action"]?.string, timeout: timeout)
                done(found.json)
            } catch {
                done(told(error))
            }
        }
    }

    @objc public func forget(done: @escaping @Sendable () -> Void) {
        guard let visitor else { return done() }
        Task {
            await visitor.forget()
            done()
        }
    }

    private func wrong(_ message: String) -> SvcError {
        SvcError(code: "invalid_options", message: message)
    }

    private func told(_ error: any Error) -> String {
        let known = error as? SvcError ?? SvcError(code: "internal_error", message: "\(error)")
        return Json.object([
            "svc_error": .object([
                "code": .string(known.code), "message": .string(known.message), "status": .int(Int64(known.status)),
                "retryable": .bool(known.retryable), "retry_after_ms": .int(known.retryAfterMs),
                "request_id": known.requestID.map { .string($0) } ?? .null,
            ])
        ]).canonical
    }
}
