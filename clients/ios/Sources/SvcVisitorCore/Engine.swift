import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Something that can be read of the device. What is constant is read once in a process.
package struct Source: Sendable {
    package let name: Name
    package let isConstant: Bool
    package let read: @Sendable () async throws -> Json

    package init(_ name: Name, isConstant: Bool = false, read: @escaping @Sendable () async throws -> Json) {
        self.name = name
        self.isConstant = isConstant
        self.read = read
    }
}

/// What the system gives: time, storage, what can be read of the device, and DeviceCheck. What may take long is asynchronous.
package protocol PhoneHost: Sendable {
    var userAgent: String { get }
    var version: String { get }
    func nowMs() -> Int64
    func elapsedMs() -> Int64
    func random(_ count: Int) -> [UInt8]
    func sources(minimal: Bool) -> [Source]

    /// Sources of booleans, by the names of flags.
    func checks() -> [Source]
    var store: any Store { get }
    var keys: any AttestationKeys { get }

    /// One line for the developer of the app, without keys and ids.
    func log(_ line: String)
}

/// Identifications beside each other; calls for the same thing share a request. Nothing that may take long runs on the actor.
package actor Engine {
    private struct Caller {
        let continuation: CheckedContinuation<SvcIdentification, any Error>
        let endsAtMs: Int64
        let timer: Task<Void, Never>
    }

    private final class Flight {
        let key: Name
        /// That of its first caller.
        let number: Int
        var callers: [Int: Caller] = [:]
        var task: Task<Void, Never>?

        init(_ key: Name, _ number: Int) {
            self.key = key
            self.number = number
        }
    }

    let options: SvcOptions
    let host: any PhoneHost
    let vault: Vault
    private let http: any Http
    private let platform: String
    private let readings: Readings
    private var flights: [Name: Flight] = [:]
    private var flightOf: [Int: Flight] = [:]
    private var canceled: Set<Int> = []
    private var numbers = 0
    var endpoint = 0
    private var token: String?
    private var pinFailed = false
    private(set) var isForgotten = false
    /// Over when all reports with an assertion that were asked for have their responses.
    private var attesting: Task<Void, Never>?
    private var cannotAttest = false
    /// The key store is at work, perhaps for a report that gave it up.
    private var isAttesting = false
    private var hasReplacedKey = false

    package init(_ options: SvcOptions, host: any PhoneHost, http: any Http) {
        self.options = options
        self.host = host
        self.http = http
        vault = Vault(host.store)
        readings = Readings(host)
        platform = options.bridge.map { "\($0.name)-ios" } ?? "ios"
    }

    /// Throws `SvcError` only. A canceled task ends its own call with `aborted`; others that share its request go on.
    package func identify(subject: [Name: Json], timeoutMs: Int64) async throws -> SvcIdentification {
        numbers += 1
        let number = numbers
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { join(number, Json.object(subject), timeoutMs, $0) }
        } onCancel: {
            Task { await self.cancel(number) }
        }
    }

    /// Ends calls with `aborted`, deletes what is stored, and waits for that. From then on this engine stores nothing and
    /// sends no id of its own.
    package func forget() async {
        isForgotten = true
        token = nil
        vault.close()
        let ended = flights.values.compactMap(\.task)
        for number in Array(flightOf.keys) { leave(number, SvcError(code: "aborted", message: "forget() was called.")) }
        for task in ended { await task.value }
        await readings.forget()
        let vault = self.vault
        _ = try? await within(5_000) { for name in [Token.name, AttestedKey.name] { try? vault.delete(name) } }
    }

    // Callers

    private func join(_ number: Int, _ subject: Json, _ timeoutMs: Int64, _ continuation: CheckedContinuation<SvcIdentification, any Error>) {
        if canceled.remove(number) != nil {
            return continuation.resume(throwing: SvcError(code: "aborted", message: "The call was canceled."))
        }
        let key = Name(subject.canonical)
        let timer = Task {
            guard (try? await Task.sleep(nanoseconds: UInt64(timeoutMs) * 1_000_000)) != nil else { return }
            let message = "No response within \(timeoutMs) ms: go on without, or raise the timeout."
            leave(number, SvcError(code: "timeout", message: message, retryable: true))
        }
        let known = flights[key]
        let flight = known ?? Flight(key, number)
        flight.callers[number] = Caller(continuation: continuation, endsAtMs: host.elapsedMs() + timeoutMs, timer: timer)
        flightOf[number] = flight
        guard known == nil else { return }
        flights[key] = flight
        flight.task = Task { await fly(key, number, subject) }
    }

    private func cancel(_ number: Int) {
        if flightOf[number] == nil {
            canceled.insert(number)  // before it joined, or after its end
        } else {
            leave(number, SvcError(code: "aborted", message: "The call was canceled."))
        }
    }

    private func leave(_ number: Int, _ error: SvcError) {
        guard let flight = flightOf.removeValue(forKey: number), let caller = flight.callers.removeValue(forKey: number) else { return }
        caller.timer.cancel()
        caller.continuation.resume(throwing: error)
        if flight.callers.isEmpty, flights[flight.key] === flight {
            flights[flight.key] = nil
            flight.task?.cancel()
        }
    }

    private func fly(_ key: Name, _ number: Int, _ subject: Json) async {
        guard flights[key]?.number == number else { return }
        let result: Result<SvcIdentification, any Error>
        do {
            result = .success(try await request(key, subject))
        } catch {
            result = .failure(error as? SvcError ?? SvcError(code: "internal_error", message: "A fault of the SDK: \(error)"))
        }
        // Who has left was told; the same thing may be asked for anew meanwhile.
        guard let mine = flights[key], mine.number == number else { return }
        flights[key] = nil
        for (who, caller) in mine.callers {
            flightOf[who] = nil
            caller.timer.cancel()
            caller.continuation.resume(with: result)
        }
    }

    /// When the last who waits gives up, whenever it joined.
    private func endsAtMs(_ key: Name) -> Int64 { flights[key]?.callers.values.map(\.endsAtMs).max() ?? 0 }

    // The report

    private func request(_ key: Name, _ subject: Json) async throws -> SvcIdentification {
        guard case .object(var content) = subject else { throw SvcError(code: "internal_error", message: "no subject") }
        var signals = await collected(min(endsAtMs(key), host.elapsedMs() + options.collectMs))
        var used: AttestedKey.Used?
        let turn = Turn()
        if options.attestation == .whenPossible {
            let claim = await attestation(turn, endsAtMs: min(endsAtMs(key), host.elapsedMs() + 3_000))
            signals["attestation"] = claim.claim
            used = claim.used
            if used == nil { turn.end() }
        }
        content["sdk"] = .object(["platform": .string(platform), "version": .string(options.bridge?.version ?? host.version)])
        content["signals"] = .object(signals)
        if options.verdict { content["verdict"] = .bool(true) }
        let body = Array(Json.object(content).canonical.utf8)
        let id = Texts.timeOrderedID(nowMs: host.nowMs(), random: host.random(16))
        let line = Exchanges(engine: self, key: key, path: "/api/v1/identify", body: body, headers: ["idempotency-key": id, "x-svc-replay": "full"])
        guard let used else { return try identification(await Sending.send(line, endpoints: options.endpoints.count, first: endpoint)) }
        // Counters of App Attest must arrive in order: the next assertion is made when this report has its response.
        let sending = Task { await Sending.send(line, endpoints: options.endpoints.count, first: endpoint) }
        let noted = Task {
            await note(used, await sending.value.outcome)
            turn.end()
        }
        return try await withTaskCancellationHandler {
            let sent = await sending.value
            await noted.value
            return try identification(sent)
        } onCancel: {
            sending.cancel()
        }
    }

    private func identification(_ sent: (outcome: Outcome, endpoint: Int)) throws -> SvcIdentification {
        switch sent.outcome {
        case .response(let text, let members):
            return SvcIdentification(requestID: members["request_id"]?.string ?? "", json: text, members: members)
        case .failure(let error): throw error
        }
    }

    private func collected(_ endsAtMs: Int64) async -> [Name: Json] {
        let checks = host.checks().filter { options.checks?.contains($0.name.text) ?? true }
        var wanted = host.sources(minimal: options.minimal)
        let stores = options.storage && !isForgotten
        if !stores || !options.deviceID { wanted.removeAll { $0.name == "identifier_for_vendor" } }
        if stores, token == nil {
            let made = Texts.hex(host.random(16)), vault = self.vault
            let source = Source("token") { Token.of(vault) { made }.map { .string($0) } ?? .null }
            wanted.insert(source, at: 0)
        }
        wanted += checks.map { check in Source(Name("flags.\(check.name.text)"), read: check.read) }
        let read = await readings.collect(wanted, endsAtMs: endsAtMs)
        if let found = read["token"]?.string { token = found }
        let isKept = options.storage && !isForgotten
        var given = Report.Given(
            device: read, nonce: Texts.timeOrderedID(nowMs: host.nowMs(), random: host.random(16)), collectedAtMs: host.nowMs())
        given.storage = isKept
        given.deviceID = options.deviceID
        given.minimal = options.minimal
        given.bridge = options.bridge.map { "\($0.name)/\($0.version)" }
        given.flags = checks.map(\.name.text).filter { read[Name("flags.\($0)")] == .bool(true) } + (pinFailed ? ["mitm"] : [])
        given.failedChecks = (checks.map { "flags.\($0.name.text)" } + ["token"]).filter { read[Name($0)] == Report.fault }
        given.token = isKept ? token : nil
        guard case .object(let members) = Report.signals(given) else { return [:] }
        host.log("collected, left out: \(members["app"]?["left_out"]?.canonical ?? "nothing")")
        return members
    }

    // App Attest

    /// One after the other: two at a time would make two keys, and send counters out of order. `turn` ends with the claim, or
    /// with the report of its assertion.
    private func attestation(_ turn: Turn, endsAtMs: Int64) async -> (claim: Json, used: AttestedKey.Used?) {
        let none: Json = .object(["format": .string("none")])
        guard host.keys.isSupported, !cannotAttest, !isForgotten else { return (none, nil) }
        let before = attesting
        attesting = Task {
            await before?.value
            await turn.ended()
        }
        if let before, (try? await within(endsAtMs - host.elapsedMs(), { await before.value })) == nil { return (none, nil) }
        guard !cannotAttest, !isAttesting, !isForgotten else { return (none, nil) }
        let kept = AttestedKey(keys: host.keys, vault: vault)
        let nowMs = host.nowMs()
        guard let known = try? await within(endsAtMs - host.elapsedMs(), { kept.state() }) else { return (none, nil) }
        guard known.step(nowMs: nowMs) != .none else { return (none, nil) }
        let line = Exchanges(engine: self, key: "", path: "/api/v1/attestation/challenge", body: [], headers: [:], wants: "challenge")
        guard case .response(_, let members) = await line.attempt(endpoint: endpoint, limitMs: min(2_000, endsAtMs - host.elapsedMs())),
            let challenge = members["challenge"]?.string, let hash = Challenge.clientDataHash(challenge)
        else { return (none, nil) }
        let mayReplace = !hasReplacedKey
        do {
            let left = endsAtMs - host.elapsedMs()
            guard let made = try await within(left, { try await self.claimed(kept, known, nowMs, hash, mayReplace) }) else { return (none, nil) }
            if made.isReplaced { hasReplacedKey = true }
            var claim = made.members
            claim["format"] = .string("apple-app-attest")
            claim["challenge"] = .string(challenge)
            return (.object(claim), made.used)
        } catch AttestationFault.unavailable {
            return (none, nil)  // Apple's servers: another time
        } catch is CancellationError {
            return (none, nil)  // nobody waits any more, which says nothing of the key store
        } catch {
            cannotAttest = true
            return (none, nil)
        }
    }

    private func claimed(
        _ kept: AttestedKey, _ known: KeyState, _ nowMs: Int64, _ hash: [UInt8], _ mayReplace: Bool
    ) async throws -> (members: [Name: Json], used: AttestedKey.Used, isReplaced: Bool) {
        isAttesting = true
        defer { isAttesting = false }
        return try await kept.claim(known, nowMs: nowMs, hash: hash, mayReplace: mayReplace)
    }

    private func note(_ used: AttestedKey.Used, _ outcome: Outcome) async {
        let response: KeyState.Response
        if case .response(_, let members) = outcome {
            let fired = members["triggers"]?.list?.contains { $0["signal"]?.string == "attestation_failed" } ?? false
            response = fired ? .failed : .ok
        } else {
            response = .lost
        }
        let kept = AttestedKey(keys: host.keys, vault: vault), nowMs = host.nowMs()
        _ = try? await within(1_000) { kept.note(used, response, nowMs: nowMs) }
    }

    // Exchanges

    fileprivate func exchange(_ line: Exchanges, _ endpoint: Int, limitMs: Int64) async -> Outcome {
        guard limitMs > 0, !Task.isCancelled else { return .timeout("The time was over before the request was sent.") }
        let at = options.addresses[endpoint]
        var all = line.headers
        all["content-type"] = "application/json"
        all["x-api-key"] = options.apiKey
        all["x-svc-sdk-platform"] = platform
        all["user-agent"] = host.userAgent
        do {
            let response = try await http.post(at + line.path, headers: all, body: line.body, limitMs: limitMs)
            self.endpoint = endpoint
            if line.wants != "request_id", let members = Json.parse(response.body), members[line.wants]?.string != nil {
                return .response(text: response.body, members: members)
            }
            return Sending.read(response, nowMs: host.nowMs(), endpoint: at, shownKey: Sending.shown(options.apiKey))
        } catch is PinError {
            pinFailed = true
            let message = "The chain of \(at), as it was validated, has none of the pinned keys: somebody may read the connection, or pins are out of date."
            return .failure(SvcError(code: "pin_mismatch", message: message))
        } catch let error as URLError where error.code == .timedOut {
            return .timeout("No response from \(at) within \(limitMs) ms: go on without, or raise the timeout.")
        } catch let error as URLError where error.code == .notConnectedToInternet {
            let message = "The system knows no network: call identify() again once there is one."
            return .failure(SvcError(code: "offline", message: message, retryable: true))
        } catch {
            return .network("No connection to \(at): is the service running and reachable there, and is its certificate valid?")
        }
    }

    fileprivate func leftMs(_ key: Name) -> Int64 { endsAtMs(key) - host.elapsedMs() }
    fileprivate func random() -> UInt8 { host.random(1)[0] }
}

/// Attempts with one key and one body.
private struct Exchanges: SendingLine {
    let engine: Engine
    let key: Name
    let path: String
    let body: [UInt8]
    let headers: [String: String]
    var wants: Name = "request_id"

    func leftMs() async -> Int64 { await engine.leftMs(key) }
    func draw() async -> Double { Double(await engine.random()) / 256 }

    func pause(ms: Int64) async -> Bool {
        (try? await Task.sleep(nanoseconds: UInt64(ms) * 1_000_000)) != nil
    }

    func attempt(endpoint: Int, limitMs: Int64) async -> Outcome {
        await engine.exchange(self, endpoint, limitMs: limitMs)
    }
}
