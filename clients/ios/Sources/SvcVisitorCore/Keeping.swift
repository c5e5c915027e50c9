/// Small texts by name. Every call may throw.
public protocol Store: Sendable {
    func read(_ name: String) throws -> String?
    func write(_ name: String, _ text: String) throws
    func delete(_ name: String) throws
}

/// The token (`token.json`): 32 lower-case hexadecimal digits, written, read back, then used.
public enum Token {
    public static let name = "token"

    /// `nil` where none can be kept.
    public static func of(_ store: some Store, made: () -> String) -> String? {
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
public struct KeyState: Equatable, Sendable {
    public enum Step: String, Sendable { case attest, assert, none }
    public enum Response: String, Sendable { case ok, failed, lost }

    public var keyID: String?
    public var pending = false
    public var attestedAtMs: Int64?
    static let dayMs: Int64 = 86_400_000

    public init(keyID: String?, pending: Bool, attestedAtMs: Int64?) {
        self.keyID = keyID
        self.pending = pending
        self.attestedAtMs = attestedAtMs
    }

    public func step(nowMs: Int64) -> Step {
        if keyID != nil, !pending { return .assert }
        guard let attestedAtMs, (0..<Self.dayMs).contains(nowMs - attestedAtMs) else { return .attest }
        return .none
    }

    public func after(_ did: Step, newKeyID: String?, _ response: Response, nowMs: Int64) -> KeyState {
        switch did {
        case .attest:
            KeyState(keyID: response == .failed ? nil : newKeyID, pending: response == .lost, attestedAtMs: nowMs)
        case .assert where response == .failed: KeyState(keyID: nil, pending: pending, attestedAtMs: attestedAtMs)
        default: self
        }
    }
}

public enum Challenge {
    /// The 32 bytes of a challenge as the service sends it; `nil` for anything else.
    public static func bytes(_ challenge: String?) -> [UInt8]? {
        guard let bytes = challenge.flatMap(Texts.fromBase64), bytes.count == 32 else { return nil }
        return bytes
    }

    /// What App Attest signs.
    public static func clientDataHash(_ challenge: String?) -> [UInt8]? {
        bytes(challenge).map(Texts.sha256)
    }
}
