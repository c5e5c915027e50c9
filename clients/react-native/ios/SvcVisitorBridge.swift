// Not built yet: sources only.
import Foundation
import SvcVisitor
import SvcVisitorCore

/// Passes JSON between React Native and the Swift package, whose sources the pod has in the same module.
@objc public final class SvcVisitorBridge: NSObject, @unchecked Sendable {
    private static let version = "0.3.0"
    /// Options of both platforms; here `deferred`, `expectedSigners` and `expectedInstallers` have no effect.
    private static let known: Set<String> = [
        "apiKey", "endpoint", "timeoutMs", "collectMs", "storage", "deviceId", "minimal", "attestation", "deferred", "verdict", "pins",
        "expectedSigners", "expectedInstallers", "checks", "debugLog",
    ]
    private static let call: Set<String> = ["id", "tag", "accountId", "action", "timeoutMs"]
    // By the lock.
    private var visitor: SvcVisitor?
    private var calls: [String: Task<Void, Never>] = [:]
    private let lock = NSLock()

    @discardableResult
    private func locked<Value>(_ work: () -> Value) -> Value {
        lock.lock()
        defer { lock.unlock() }
        return work()
    }

    /// Empty where the options are right, else the error as JSON.
    @objc public func configure(_ options: String) -> String {
        do {
            let made = try SvcVisitor(try read(options))
            locked { self.visitor = made }
            return ""
        } catch {
            return told(error)
        }
    }

    @objc public func identify(_ call: String, done: @escaping @Sendable (String) -> Void) {
        guard let visitor = locked({ self.visitor }) else { return done(told(wrong("call configure() first"))) }
        do {
            let given = try Given(call, known: Self.call)
            guard let id = try given.text("id") else { throw wrong("id is missing") }
            let tag = try given.text("tag"), accountID = try given.text("accountId"), action = try given.text("action")
            let timeout = try given.whole("timeoutMs").map { Double($0) / 1_000 }
            // The task is noted before it can end.
            locked {
                calls[id] = Task { [self] in
                    let said: String
                    do {
                        said = try await visitor.identify(tag: tag, accountID: accountID, action: action, timeout: timeout).json
                    } catch {
                        said = told(error)
                    }
                    locked { calls[id] = nil }
                    done(said)
                }
            }
        } catch {
            done(told(error))
        }
    }

    @objc public func cancel(_ id: String) {
        locked { calls[id] }?.cancel()
    }

    @objc public func setLocationMocked(_ isMocked: String) {
        locked { self.visitor }?.setLocationSimulated(Bool(isMocked))
    }

    @objc public func forget(done: @escaping @Sendable () -> Void) {
        guard let visitor = locked({ self.visitor }) else { return done() }
        Task {
            await visitor.forget()
            done()
        }
    }

    /// Members of a JSON object, each of its own type or not there.
    private struct Given {
        let members: [Name: Json]

        init(_ text: String, known: Set<String>) throws {
            guard case .object(let found)? = Json.parse(text) else { throw SvcError(code: "invalid_options", message: "the text is no JSON") }
            let unknown = found.keys.map(\.text).filter { !known.contains($0) }.sorted()
            guard unknown.isEmpty else { throw SvcError(code: "invalid_options", message: "there is no option \(unknown.joined(separator: ", "))") }
            members = found.filter { !$0.value.isNull }
        }

        private func value<Value>(_ name: Name, _ read: (Json) -> Value?) throws -> Value? {
            guard let found = members[name] else { return nil }
            guard let value = read(found) else { throw SvcError(code: "invalid_options", message: "\(name.text) has a value of another type") }
            return value
        }

        func text(_ name: Name) throws -> String? { try value(name) { $0.string } }
        func flag(_ name: Name) throws -> Bool? { try value(name) { $0.bool } }
        func whole(_ name: Name) throws -> Int64? { try value(name) { $0.int ?? $0.double.flatMap { Int64(exactly: $0.rounded()) } } }
        func texts(_ name: Name) throws -> [String]? {
            try value(name) { one in
                guard let list = one.list else { return nil }
                let texts = list.compactMap(\.string)
                return texts.count == list.count ? texts : nil
            }
        }
    }

    private func read(_ options: String) throws -> SvcOptions {
        let given = try Given(options, known: Self.known)
        guard let key = try given.text("apiKey") else { throw wrong("apiKey is missing") }
        let endpoints = given.members["endpoint"]?.list == nil ? try given.text("endpoint").map { [$0] } : try given.texts("endpoint")
        guard let endpoints, let first = endpoints.first else { throw wrong("endpoint is missing") }
        var made = SvcOptions(apiKey: key, endpoint: first)
        made.endpoints = endpoints
        made.bridge = ("react-native", Self.version)
        if let value = try given.whole("timeoutMs") { made.timeoutMs = value }
        if let value = try given.whole("collectMs") { made.collectMs = value }
        if let value = try given.flag("storage") { made.storage = value }
        if let value = try given.flag("deviceId") { made.deviceID = value }
        if let value = try given.flag("minimal") { made.minimal = value }
        if let value = try given.flag("verdict") { made.verdict = value }
        if let value = try given.flag("debugLog") { made.debugLog = value }
        if let value = try given.texts("pins") { made.pins = Set(value) }
        if let value = try given.texts("checks") { made.checks = Set(value) }
        _ = (try given.flag("deferred"), try given.texts("expectedSigners"), try given.texts("expectedInstallers"))
        switch try given.text("attestation") {
        case nil, "off": break
        case "when_possible": made.attestation = .whenPossible
        default: throw wrong("attestation is off or when_possible")
        }
        return made
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
