// Not built or tested yet: see README.md.
import SvcVisitorCore

public typealias SvcOptions = SvcVisitorCore.SvcOptions
public typealias SvcAttestation = SvcVisitorCore.SvcAttestation
public typealias SvcIdentification = SvcVisitorCore.SvcIdentification
public typealias SvcError = SvcVisitorCore.SvcError

#if canImport(UIKit) && canImport(DeviceCheck)
    import Foundation

    /// What an app uses of `SvcVisitor`, so that its tests bring their own.
    public protocol SvcIdentifying: Sendable {
        func identify(tag: String?, accountID: String?, action: String?, timeout: TimeInterval?) async throws -> SvcIdentification
        func forget() async
    }

    /// Identifies the device: one for the whole app. Asks for no permission and contacts nobody but the endpoints of its options.
    public final class SvcVisitor: SvcIdentifying {
        public static let version = "0.3.0"
        private let engine: Engine
        private let host: AppleHost
        private let activity = Activity()
        private let timeoutMs: Int64

        /// Reads and sends nothing. Throws `SvcError` `invalid_options`.
        public init(_ options: SvcOptions) throws {
            if let fault = options.fault { throw fault }
            timeoutMs = options.timeoutMs
            host = AppleHost(options)
            var isPinned: (@Sendable (URLAuthenticationChallenge) -> Bool?)?
            if !options.pins.isEmpty {
                let pins = Pins(keys: options.pins)
                isPinned = { pins.holds($0) }
            }
            engine = Engine(options, host: host, http: SessionHttp(isPinned: isPinned))
        }

        /// Sends one report. Calls at the same time for the same thing share one request; canceling the task ends this call
        /// alone. Throws `SvcError` only.
        public func identify(
            tag: String? = nil, accountID: String? = nil, action: String? = nil, timeout: TimeInterval? = nil
        ) async throws -> SvcIdentification {
            let limitMs = try milliseconds(timeout)
            var subject: [Name: Json] = [:]
            if let tag { subject["tag"] = .string(tag) }
            if let accountID { subject["account_id"] = .string(accountID) }
            if let action { subject["action"] = .string(action) }
            activity.begin()
            defer { activity.end() }
            return try await engine.identify(subject: subject, timeoutMs: limitMs)
        }

        /// The completion runs on the main queue. Canceling the task that it returns ends the call.
        @discardableResult
        public func identify(
            tag: String? = nil, accountID: String? = nil, action: String? = nil, timeout: TimeInterval? = nil,
            completion: @escaping @Sendable (Result<SvcIdentification, SvcError>) -> Void
        ) -> Task<Void, Never> {
            Task {
                let result: Result<SvcIdentification, SvcError>
                do {
                    result = .success(try await identify(tag: tag, accountID: accountID, action: action, timeout: timeout))
                } catch {
                    result = .failure(error as? SvcError ?? SvcError(code: "internal_error", message: "\(error)"))
                }
                await MainActor.run { completion(result) }
            }
        }

        /// For withdrawn consent: ends calls with `aborted`, deletes what is stored, and stores nothing from then on.
        public func forget() async {
            await engine.forget()
        }

        /// Whether a location that the app has is simulated, for the flag `location_spoofing`; `nil` where it is not known.
        public func setLocationSimulated(_ isSimulated: Bool?) {
            host.location.set(isSimulated)
        }

        private func milliseconds(_ timeout: TimeInterval?) throws -> Int64 {
            guard let timeout else { return timeoutMs }
            guard timeout > 0 else { throw SvcError(code: "invalid_options", message: "timeout is a number of seconds above 0.") }
            return Int64(min(timeout * 1_000, Double(Int32.max)).rounded(.up))
        }
    }

    /// Time in the background while calls run, in apps and their extensions: one activity for all, since each holds a thread.
    private final class Activity: @unchecked Sendable {
        // By the lock.
        private var calls = 0
        private var over: DispatchSemaphore?
        private let lock = NSLock()

        func begin() { change(1) }
        func end() { change(-1) }

        private func change(_ count: Int) {
            lock.lock()
            defer { lock.unlock() }
            calls += count
            if calls == 0 { over?.signal() }
            guard count > 0, calls == 1 else { return }
            let over = DispatchSemaphore(value: 0)
            self.over = over
            // Runs beside the calls, and once more when the system wants the time back.
            ProcessInfo.processInfo.performExpiringActivity(withReason: "svc identification") { isExpired in
                if isExpired { over.signal() } else { over.wait() }
            }
        }
    }
#endif
