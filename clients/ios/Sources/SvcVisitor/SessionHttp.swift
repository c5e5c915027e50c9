// Not built or tested yet: see README.md.
#if canImport(UIKit) && canImport(DeviceCheck)
    import Foundation
    import Security
    import SvcVisitorCore

    /// One ephemeral session: no cookies, no cache, no redirects.
    final class SessionHttp: NSObject, Http, URLSessionTaskDelegate, @unchecked Sendable {
        private let pins: Set<String>
        private var failed = false
        private lazy var session: URLSession = {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpCookieStorage = nil
            configuration.urlCache = nil
            configuration.waitsForConnectivity = false
            return URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
        }()

        init(pins: Set<String>) {
            self.pins = pins
        }

        func post(_ url: String, headers: [String: String], body: [UInt8], limitMs: Int64) async throws -> HttpResponse {
            guard let address = URL(string: url) else { throw URLError(.badURL) }
            var request = URLRequest(url: address, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: Double(limitMs) / 1_000)
            request.httpMethod = "POST"
            request.httpBody = Data(body)
            for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
            let (data, response) = try await withThrowingTaskGroup(of: (Data, URLResponse).self) { group in
                group.addTask { try await self.exchange(request) }
                group.addTask {
                    try await Task.sleep(nanoseconds: UInt64(limitMs) * 1_000_000)
                    throw URLError(.timedOut)
                }
                defer { group.cancelAll() }
                return try await group.next()!
            }
            guard let http = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
            var named: [String: String] = [:]
            for (name, value) in http.allHeaderFields { named["\(name)".lowercased()] = "\(value)" }
            return HttpResponse(status: http.statusCode, headers: named, body: String(decoding: data, as: UTF8.self))
        }

        /// The session's own `async` methods need iOS 15.
        private func exchange(_ request: URLRequest) async throws -> (Data, URLResponse) {
            let running = Running()
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let task = session.dataTask(with: request) { [self] data, response, error in
                        if let data, let response {
                            continuation.resume(returning: (data, response))
                        } else {
                            continuation.resume(throwing: failed ? PinError() : error ?? URLError(.unknown))
                        }
                    }
                    running.task = task
                    task.resume()
                }
            } onCancel: {
                running.task?.cancel()
            }
        }

        private final class Running: @unchecked Sendable {
            var task: URLSessionDataTask?
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
        ) {
            completionHandler(nil)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            guard !pins.isEmpty, let trust = challenge.protectionSpace.serverTrust, SecTrustEvaluateWithError(trust, nil) else {
                return completionHandler(.performDefaultHandling, nil)
            }
            let keys = (0..<SecTrustGetCertificateCount(trust)).compactMap { index -> String? in
                guard let certificate = SecTrustGetCertificateAtIndex(trust, index), let key = SecCertificateCopyKey(certificate),
                    let point = SecKeyCopyExternalRepresentation(key, nil) as Data?, let header = Self.header(of: key)
                else { return nil }
                return Texts.base64(Texts.sha256(header + Array(point)))
            }
            failed = pins.isDisjoint(with: keys)
            completionHandler(failed ? .cancelAuthenticationChallenge : .performDefaultHandling, nil)
        }

        /// What stands before a key's own bytes in its `SubjectPublicKeyInfo`: P-256, and RSA of 2,048 bits.
        private static func header(of key: SecKey) -> [UInt8]? {
            guard let attributes = SecKeyCopyAttributes(key) as? [CFString: Any], let size = attributes[kSecAttrKeySizeInBits] as? Int
            else { return nil }
            switch size {
            case 256:
                return [
                    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
                    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
                ]
            case 2_048:
                return [
                    0x30, 0x82, 0x01, 0x22, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
                    0x03, 0x82, 0x01, 0x0f, 0x00,
                ]
            default: return nil
            }
        }
    }
#endif
