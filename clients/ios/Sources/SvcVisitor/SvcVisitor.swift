// Not built or tested yet: see README.md.
@_exported import SvcVisitorCore

#if canImport(UIKit) && canImport(DeviceCheck)
    import Foundation
    import UIKit

    /// Identifies the device: one for the whole app. Asks for no permission and contacts nobody but the endpoints of its options.
    public final class SvcVisitor: Sendable {
        public static let version = "0.3.0"
        private let engine: Engine
        private let timeoutMs: Int64

        /// Reads and sends nothing. Throws `SvcError` `invalid_options`.
        public init(_ options: SvcOptions) throws {
            if let fault = options.fault { throw fault }
            timeoutMs = options.timeoutMs
            engine = Engine(options, host: AppleHost(options), http: SessionHttp(pins: options.pins))
        }

        /// Sends one report. Calls at the same time for the same thing share one request. Throws `SvcError` only.
        public func identify(
            tag: String? = nil, accountID: String? = nil, action: String? = nil, timeout: TimeInterval? = nil
        ) async throws -> SvcIdentification {
            let given = ["tag": tag, "account_id": accountID, "action": action].compactMapValues { $0 }
            let limitMs = timeout.map { Int64($0 * 1_000) } ?? timeoutMs
            let background = await UIApplication.shared.beginBackgroundTask()
            do {
                let found = try await engine.identify(subject: given, timeoutMs: limitMs)
                await UIApplication.shared.endBackgroundTask(background)
                return found
            } catch {
                await UIApplication.shared.endBackgroundTask(background)
                if error is CancellationError { throw SvcError(code: "aborted", message: "The call was canceled.") }
                throw error as? SvcError ?? SvcError(code: "internal_error", message: "A fault of the SDK: \(error)")
            }
        }

        /// The completion runs on the main queue.
        public func identify(tag: String?, completion: @escaping @Sendable (Result<SvcIdentification, SvcError>) -> Void) {
            Task {
                let result: Result<SvcIdentification, SvcError>
                do {
                    result = .success(try await identify(tag: tag))
                } catch {
                    result = .failure(error as? SvcError ?? SvcError(code: "internal_error", message: "\(error)"))
                }
                await MainActor.run { completion(result) }
            }
        }

        /// For withdrawn consent: deletes what is stored, and stores nothing from then on.
        public func forget() async {
            await engine.forget()
        }
    }
#endif
