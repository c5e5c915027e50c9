import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What the system gives: time, storage, what can be read of the device, and DeviceCheck.
public protocol Host: Sendable {
    var userAgent: String { get }
    var version: String { get }
    func nowMs() -> Int64
    func elapsedMs() -> Int64
    func random(_ count: Int) -> [UInt8]
    func isOnline() -> Bool

    /// Raw values by source; what cannot be read is `Report.fault`.
    func device(minimal: Bool) async -> [String: Json]

    /// Names of flags that are set, and of checks that failed.
    func flags() async -> (set: [String], failed: [String])
    var store: any Store { get }
    var keys: any AttestationKeys { get }
}

/// App Attest, which stands behind this for tests.
public protocol AttestationKeys: Sendable {
    var isSupported: Bool { get }
    func generate() async throws -> String
    func attest(_ keyID: String, hash: [UInt8]) async throws -> [UInt8]
    func assertion(_ keyID: String, hash: [UInt8]) async throws -> [UInt8]
}

/// One exchange over HTTP. Throws what `URLSession` throws.
public protocol Http: Sendable {
    func post(_ url: String, headers: [String: String], body: [UInt8], limitMs: Int64) async throws -> HttpResponse
}

public struct PinError: Error {
    public init() {}
}

/// Identifications; calls at the same time for the same thing share a request.
public actor Engine {
    private let options: SvcOptions
    private let host: any Host
    private let http: any Http
    private let platform: String
    private var flights: [String: Task<SvcIdentification, any Error>] = [:]
    private var last: Task<Void, Never>?
    private var endpoint = 0
    private var pinFailed = false
    private var isForgotten = false
    private var cannotAttest = false

    public init(_ options: SvcOptions, host: any Host, http: any Http) {
        self.options = options
        self.host = host
        self.http = http
        platform = options.bridge.map { "\($0.name)-ios" } ?? "ios"
    }

    public func identify(subject: [String: String], timeoutMs: Int64) async throws -> SvcIdentification {
        let key = Json.object(subject.mapValues { .string($0) }).canonical
        if let shared = flights[key] { return try await shared.value }
        let previous = last
        let serial = options.attestation == .whenPossible
        let flight = Task<SvcIdentification, any Error> {
            // Counters of App Attest must arrive in order.
            if serial { await previous?.value }
            defer { flights[key] = nil }
            return try await request(subject: subject, timeoutMs: timeoutMs)
        }
        flights[key] = flight
        last = Task { _ = try? await flight.value }
        return try await flight.value
    }

    /// Deletes what is stored; from then on this engine stores nothing and sends no id of its own.
    public func forget() {
        isForgotten = true
        for name in [Token.name, Self.keyName] { try? host.store.delete(name) }
    }

    private func request(subject: [String: String], timeoutMs: Int64) async throws -> SvcIdentification {
        let endsAtMs = host.elapsedMs() + timeoutMs
        guard host.isOnline() else {
            throw SvcError(code: "offline", message: "The system knows no network: call identify() again once there is one.", retryable: true)
        }
        var signals = await collected()
        var used: (state: KeyState, step: KeyState.Step, keyID: String?)?
        if options.attestation == .whenPossible {
            let claim = await attestation(endsAtMs: min(endsAtMs, host.elapsedMs() + 3_000))
            signals["attestation"] = claim.claim
            used = claim.used
        }
        var content: [String: Json] = subject.mapValues { .string($0) }
        content["sdk"] = .object(["platform": .string(platform), "version": .string(options.bridge?.version ?? host.version)])
        content["signals"] = .object(signals)
        if options.verdict { content["verdict"] = .bool(true) }
        let key = Texts.timeOrderedID(nowMs: host.nowMs(), random: host.random(16))
        let line = Exchanges(
            engine: self, path: "/api/v1/identify", body: Array(Json.object(content).canonical.utf8),
            headers: ["idempotency-key": key, "x-svc-replay": "full"])
        let sent = await Sending.send(line, endsAtMs: endsAtMs, endpoints: options.endpoints.count, first: endpoint)
        endpoint = sent.endpoint
        if let used { note(used, sent.outcome) }
        switch sent.outcome {
        case .response(let text, let members):
            return SvcIdentification(requestID: members["request_id"]?.string ?? "", json: text, members: members)
        case .failure(let error, _): throw error
        }
    }

    private func collected() async -> [String: Json] {
        let device = await host.device(minimal: options.minimal)
        let flags = await host.flags()
        var given = Report.Given(
            device: device, nonce: Texts.timeOrderedID(nowMs: host.nowMs(), random: host.random(16)), collectedAtMs: host.nowMs())
        given.storage = options.storage && !isForgotten
        given.deviceID = options.deviceID
        given.minimal = options.minimal
        given.bridge = options.bridge.map { "\($0.name)/\($0.version)" }
        given.flags = flags.set + (pinFailed ? ["mitm"] : [])
        given.failedChecks = flags.failed
        if given.storage { given.token = Token.of(host.store) { Texts.hex(host.random(16)) } }
        guard case .object(let members) = Report.signals(given) else { return [:] }
        return members
    }

    // App Attest

    static let keyName = "attestation"

    private func attestation(endsAtMs: Int64) async -> (claim: Json, used: (state: KeyState, step: KeyState.Step, keyID: String?)?) {
        let none: Json = .object(["format": .string("none")])
        let state = keyState()
        let step = state.step(nowMs: host.nowMs())
        guard host.keys.isSupported, !cannotAttest, !isForgotten, step != .none else { return (none, nil) }
        let line = Exchanges(engine: self, path: "/api/v1/attestation/challenge", body: [], headers: [:], wants: "challenge")
        guard case .response(_, let members) = await line.attempt(endpoint: endpoint, limitMs: min(2_000, endsAtMs - host.elapsedMs())),
            let challenge = members["challenge"]?.string, let hash = Challenge.clientDataHash(challenge)
        else { return (none, nil) }
        do {
            var claim: [String: Json] = ["format": .string("apple-app-attest"), "challenge": .string(challenge)]
            let keyID: String
            if step == .assert, let known = state.keyID {
                keyID = known
                claim["assertion"] = .string(Texts.base64(try await host.keys.assertion(keyID, hash: hash)))
            } else {
                keyID = try await host.keys.generate()
                claim["attestation"] = .string(Texts.base64(try await host.keys.attest(keyID, hash: hash)))
            }
            claim["key_id"] = .string(keyID)
            return (.object(claim), (state, step, keyID))
        } catch {
            cannotAttest = true
            return (none, nil)
        }
    }

    private func note(_ used: (state: KeyState, step: KeyState.Step, keyID: String?), _ outcome: Outcome) {
        let response: KeyState.Response
        if case .response(_, let members) = outcome {
            let fired = members["triggers"]?.list?.contains { $0["signal"]?.string == "attestation_failed" } ?? false
            response = fired ? .failed : .ok
        } else {
            response = .lost
        }
        let next = used.state.after(used.step, newKeyID: used.keyID, response, nowMs: host.nowMs())
        let text = Json.object([
            "key_id": next.keyID.map { .string($0) } ?? .null, "pending": .bool(next.pending),
            "attested_at_ms": next.attestedAtMs.map { .int($0) } ?? .null,
        ])
        if !isForgotten { try? host.store.write(Self.keyName, text.canonical) }
    }

    private func keyState() -> KeyState {
        let kept = (try? host.store.read(Self.keyName)).flatMap { $0 }.flatMap(Json.parse)
        return KeyState(keyID: kept?["key_id"]?.string, pending: kept?["pending"]?.bool ?? false, attestedAtMs: kept?["attested_at_ms"]?.int)
    }

    // Exchanges

    fileprivate func exchange(
        _ endpoint: Int, path: String, body: [UInt8], headers: [String: String], wants: String, limitMs: Int64
    ) async -> Outcome {
        guard limitMs > 0 else { return .timeout("The time was over before the request was sent.") }
        let at = options.addresses[endpoint]
        var all = headers
        all["content-type"] = "application/json"
        all["x-api-key"] = options.apiKey
        all["x-svc-sdk-platform"] = platform
        all["user-agent"] = host.userAgent
        do {
            let response = try await http.post(at + path, headers: all, body: body, limitMs: limitMs)
            if wants != "request_id", let members = Json.parse(response.body), members[wants]?.string != nil {
                return .response(text: response.body, members: members)
            }
            return Sending.read(response, nowMs: host.nowMs(), endpoint: at, shownKey: Sending.shown(options.apiKey))
        } catch is PinError {
            pinFailed = true
            return .network("The certificate of \(at) has none of the pinned keys: somebody may read the connection.", isFinal: true)
        } catch let error as URLError where error.code == .timedOut {
            return .timeout("No response from \(at) within \(limitMs) ms: go on without, or raise the timeout.")
        } catch let error as URLError where error.code == .notConnectedToInternet {
            let message = "The system knows no network: call identify() again once there is one."
            return .failure(SvcError(code: "offline", message: message, retryable: true), isFinal: true)
        } catch {
            return .network("No connection to \(at): is the service running and reachable there, and is its certificate valid?")
        }
    }

    fileprivate func elapsedMs() -> Int64 { host.elapsedMs() }
    fileprivate func random() -> UInt8 { host.random(1)[0] }
}

/// Attempts with one key and one body.
private struct Exchanges: SendingLine {
    let engine: Engine
    let path: String
    let body: [UInt8]
    let headers: [String: String]
    var wants = "request_id"

    func nowMs() async -> Int64 { await engine.elapsedMs() }
    func draw() async -> Double { Double(await engine.random()) / 256 }

    func pause(ms: Int64) async -> Bool {
        (try? await Task.sleep(nanoseconds: UInt64(ms) * 1_000_000)) != nil
    }

    func attempt(endpoint: Int, limitMs: Int64) async -> Outcome {
        await engine.exchange(endpoint, path: path, body: body, headers: headers, wants: wants, limitMs: limitMs)
    }
}
