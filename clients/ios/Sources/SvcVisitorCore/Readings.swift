import Foundation

/// A value that one thread sets and another one reads.
package final class Shared<Value: Sendable>: @unchecked Sendable {
    // By the lock.
    private var value: Value?
    private let lock = NSLock()

    package init() {}

    package func set(_ new: Value?) {
        lock.lock()
        value = new
        lock.unlock()
    }

    package func get() -> Value? {
        lock.lock()
        defer { lock.unlock() }
        return value
    }
}

/// What can happen once, from any thread: the first to come decides.
private final class Once<Value: Sendable>: @unchecked Sendable {
    // Guarded by the lock.
    private var waiting: CheckedContinuation<Value, any Error>?
    private var early: Result<Value, any Error>?
    private var isOver = false
    private let lock = NSLock()

    func wait(_ continuation: CheckedContinuation<Value, any Error>) {
        lock.lock()
        let found = early
        if found == nil { waiting = continuation }
        lock.unlock()
        if let found { continuation.resume(with: found) }
    }

    func end(_ result: Result<Value, any Error>) {
        lock.lock()
        let first = !isOver
        isOver = true
        let found = waiting
        waiting = nil
        if first, found == nil { early = result }
        lock.unlock()
        if first { found?.resume(with: result) }
    }
}

/// Something that others wait for in order.
final class Turn: Sendable {
    private let once = Once<Bool>()

    func end() { once.end(.success(true)) }

    /// For one who waits.
    func ended() async { _ = try? await withCheckedThrowingContinuation { once.wait($0) } }
}

/// What `work` gives, or `nil` once the time is over, whether or not the work heeds its cancellation.
package func within<Value: Sendable>(_ ms: Int64, _ work: @escaping @Sendable () async throws -> Value) async throws -> Value? {
    let once = Once<Value?>()
    let running = Task.detached {
        do {
            once.end(.success(try await work()))
        } catch {
            once.end(.failure(error))
        }
    }
    let timer = Task.detached {
        try? await Task.sleep(nanoseconds: UInt64(max(0, ms)) * 1_000_000)
        once.end(.success(nil))
        running.cancel()
    }
    defer { timer.cancel() }
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { once.wait($0) }
    } onCancel: {
        running.cancel()
        once.end(.failure(CancellationError()))
    }
}

/// Reads sources, each isolated from the others: what one of them throws, and how long it takes, is its own affair. None is
/// read twice at a time. The rules are those of `engine.json`.
actor Readings {
    static let identifying: [Name] = ["token", "identifier_for_vendor", "build", "app"]
    static let patienceMs: Int64 = 10_000

    private final class Collection {
        var found: [Name: Json] = [:]
        var open: Set<Name> = []
        var awaited: Set<Name> = []
        var done: CheckedContinuation<Void, Never>?
    }

    private final class Reading {
        let beganMs: Int64
        var waiting: [Collection] = []
        /// A collection has ended without it.
        var isLate = false

        init(beganMs: Int64) {
            self.beganMs = beganMs
        }
    }

    private let host: any PhoneHost
    private var constants: [Name: Json] = [:]
    private var late: [Name: Json] = [:]
    private var running: [Name: Reading] = [:]

    init(_ host: any PhoneHost) {
        self.host = host
    }

    func forget() {
        late = [:]
    }

    /// Values by source, `Report.fault` for one that failed or is not there in time.
    func collect(_ sources: [Source], endsAtMs: Int64) async -> [Name: Json] {
        let mine = Collection()
        for source in sources {
            if let known = constants[source.name] {
                mine.found[source.name] = known
                continue
            }
            let known = running[source.name]
            if isAwaited(source.name, known) { mine.awaited.insert(source.name) }
            let reading = known ?? Reading(beganMs: host.elapsedMs())
            reading.waiting.append(mine)
            mine.open.insert(source.name)
            if known == nil {
                running[source.name] = reading
                Task.detached { [self] in await came(source, (try? await source.read()) ?? Report.fault) }
            }
        }
        let timer = Task {
            try? await Task.sleep(nanoseconds: UInt64(max(0, endsAtMs - host.elapsedMs())) * 1_000_000)
            end(mine)
        }
        if !mine.awaited.isEmpty { await withCheckedContinuation { mine.done = $0 } }
        timer.cancel()
        for name in mine.open {
            mine.found[name] = late.removeValue(forKey: name) ?? Report.fault
            guard let reading = running[name] else { continue }
            reading.waiting.removeAll { $0 === mine }
            reading.isLate = true
        }
        return mine.found
    }

    private func isAwaited(_ name: Name, _ known: Reading?) -> Bool {
        if let known, known.isLate {
            return Self.identifying.contains(name) && host.elapsedMs() - known.beganMs < Self.patienceMs
        }
        return late[name] == nil
    }

    private func came(_ source: Source, _ value: Json) {
        guard let reading = running.removeValue(forKey: source.name) else { return }
        if value != Report.fault {
            if source.isConstant { constants[source.name] = value }
            if reading.waiting.isEmpty { late[source.name] = value }
        }
        for collection in reading.waiting {
            collection.open.remove(source.name)
            late[source.name] = nil
            collection.found[source.name] = value
            if collection.awaited.remove(source.name) != nil, collection.awaited.isEmpty { end(collection) }
        }
    }

    private func end(_ collection: Collection) {
        collection.done?.resume()
        collection.done = nil
    }
}
