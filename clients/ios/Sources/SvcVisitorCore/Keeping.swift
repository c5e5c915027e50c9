import Foundation

/// Small texts by name. Every call may throw, and may take long.
package protocol Store: Sendable {
    func read(_ name: String) throws -> String?
    func write(_ name: String, _ text: String) throws
    func delete(_ name: String) throws
}

/// A store until it is closed: from then on nothing is written. What is being written then is there before anything is deleted.
package final class Vault: Store, @unchecked Sendable {
    struct Closed: Error {}

    private let store: any Store
    // `isClosed` by the first lock; the second one is held while something is written or deleted.
    private let lock = NSLock()
    private let writing = NSLock()
    private var isClosed = false

    package init(_ store: any Store) {
        self.store = store
    }

    private func mayWrite() -> Bool {
        lock.lock()
        defer { lock.unlock() }
        return !isClosed
    }

    package func close() {
        lock.lock()
        isClosed = true
        lock.unlock()
    }

    package func read(_ name: String) throws -> String? { mayWrite() ? try store.read(name) : nil }

    package func write(_ name: String, _ text: String) throws {
        writing.lock()
        defer { writing.unlock() }
        guard mayWrite() else { throw Closed() }
        try store.write(name, text)
    }

    package func delete(_ name: String) throws {
        writing.lock()
        defer { writing.unlock() }
        try store.delete(name)
    }
}

/// The token (`token.json`): 32 lower-case hexadecimal digits, written, read back, then used.
package enum Token {
    package static let name = "token"

    /// `nil` where none can be kept.
    package static func of(_ store: some Store, made: () -> String) -> String? {
        do {
            if let known = try store.read(name), isToken(known) { return known }
            let created = made()
            try store.write(name, created)
            return try store.read(name) == created ? created : nil
        } catch {
            return nil
        }
    }

    private static func isToken(_ text: String) -> Bool {
        text.utf8.count == 32 && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }
}

/// What App Attest's key is known to be (`attestation.json`): one new key a day, and none that stayed unconfirmed is used.
package struct KeyState: Equatable, Sendable {
    package enum Step: String, Sendable { case attest, assert, none }
    package enum Response: String, Sendable { case ok, failed, lost }

    package var keyID: String?
    package var pending = false
    package var attestedAtMs: Int64?
    static let dayMs: Int64 = 86_400_000

    package init(keyID: String?, pending: Bool, attestedAtMs: Int64?) {
        self.keyID = keyID
        self.pending = pending
        self.attestedAtMs = attestedAtMs
    }

    package func step(nowMs: Int64) -> Step {
        if keyID != nil, !pending { return .assert }
        guard let attestedAtMs, (0..<Self.dayMs).contains(nowMs - attestedAtMs) else { return .attest }
        return .none
    }

    package func after(_ did: Step, newKeyID: String?, _ response: Response, nowMs: Int64) -> KeyState {
        switch did {
        case .attest:
            return KeyState(keyID: response == .failed ? nil : newKeyID, pending: response == .lost, attestedAtMs: nowMs)
        case .assert where response == .failed:
            return KeyState(keyID: nil, pending: pending, attestedAtMs: attestedAtMs)
        default:
            return self
        }
    }
}

/// App Attest, which stands behind this for tests. Throws `AttestationFault` where it matters what went wrong.
package protocol AttestationKeys: Sendable {
    var isSupported: Bool { get }
    func generate() async throws -> String
    func attest(_ keyID: String, hash: [UInt8]) async throws -> [UInt8]
    func assertion(_ keyID: String, hash: [UInt8]) async throws -> [UInt8]
}

package enum AttestationFault: Error {
    /// The system knows no such key: it does not outlive a reinstallation, as its id in the Keychain does.
    case rejected
    /// Apple's servers cannot be reached now.
    case unavailable
}

/// The key of App Attest and what is kept of it.
package struct AttestedKey: Sendable {
    package struct Used: Sendable {
        let state: KeyState
        let step: KeyState.Step
        let keyID: String
    }

    package static let name = "attestation"
    let keys: any AttestationKeys
    let vault: Vault

    func state() -> KeyState {
        guard let text = (try? vault.read(Self.name)) ?? nil, let kept = Json.parse(text) else {
            return KeyState(keyID: nil, pending: false, attestedAtMs: nil)
        }
        return KeyState(keyID: kept["key_id"]?.string, pending: kept["pending"]?.bool ?? false, attestedAtMs: kept["attested_at_ms"]?.int)
    }

    /// Members of a claim. A key that the system rejects is dropped, and a new one attested, where that may be.
    func claim(
        _ state: KeyState, nowMs: Int64, hash: [UInt8], mayReplace: Bool
    ) async throws -> (members: [Name: Json], used: Used, isReplaced: Bool) {
        var known = state
        if state.step(nowMs: nowMs) == .assert, let keyID = state.keyID {
            do {
                let made = try await keys.assertion(keyID, hash: hash)
                let members: [Name: Json] = ["key_id": .string(keyID), "assertion": .string(Texts.base64(made))]
                return (members, Used(state: state, step: .assert, keyID: keyID), false)
            } catch AttestationFault.rejected {
                known = state.after(.assert, newKeyID: nil, .failed, nowMs: nowMs)
                keep(known)
                guard mayReplace else { throw AttestationFault.rejected }
            }
        }
        let keyID = try await keys.generate()
        let made = try await keys.attest(keyID, hash: hash)
        let members: [Name: Json] = ["key_id": .string(keyID), "attestation": .string(Texts.base64(made))]
        return (members, Used(state: known, step: .attest, keyID: keyID), known != state)
    }

    func note(_ used: Used, _ response: KeyState.Response, nowMs: Int64) {
        keep(used.state.after(used.step, newKeyID: used.keyID, response, nowMs: nowMs))
    }

    private func keep(_ state: KeyState) {
        let text = Json.object([
            "key_id": state.keyID.map { .string($0) } ?? .null, "pending": .bool(state.pending),
            "attested_at_ms": state.attestedAtMs.map { .int($0) } ?? .null,
        ])
        try? vault.write(Self.name, text.canonical)
    }
}

package enum Challenge {
    /// The 32 bytes of a challenge as the service sends it; `nil` for anything else.
    package static func bytes(_ challenge: String?) -> [UInt8]? {
        guard let bytes = challenge.flatMap(Texts.fromBase64), bytes.count == 32 else { return nil }
        return bytes
    }

    /// What App Attest signs.
    package static func clientDataHash(_ challenge: String?) -> [UInt8]? {
        bytes(challenge).map(Texts.sha256)
    }
}
