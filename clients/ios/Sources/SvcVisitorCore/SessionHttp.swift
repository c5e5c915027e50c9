import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One exchange over HTTP. Throws what `URLSession` throws, or `PinError`.
package protocol Http: Sendable {
    func post(_ url: String, headers: [String: String], body: [UInt8], limitMs: Int64) async throws -> HttpResponse
}

/// The chain of the service, as it was validated, has none of the pinned keys.
package struct PinError: Error {
    package init() {}
}

/// One ephemeral session: no cookies, no cache, no redirects. Responses of more than a mebibyte are cut.
package final class SessionHttp: NSObject, Http, URLSessionDataDelegate, @unchecked Sendable {
    private final class Exchange {
        let continuation: CheckedContinuation<(HTTPURLResponse, Data), any Error>
        var response: HTTPURLResponse?
        var data = Data()
        var hasOtherKeys = false

        init(_ continuation: CheckedContinuation<(HTTPURLResponse, Data), any Error>) {
            self.continuation = continuation
        }
    }

    private static let longest = 1 << 20
    /// Whether a server's chain has a pinned key; `nil` where the system decides alone, or the challenge is another.
    private let isPinned: (@Sendable (URLAuthenticationChallenge) -> Bool?)?
    // By the lock, as what an exchange holds.
    private let lock = NSLock()
    private var exchanges: [Int: Exchange] = [:]
    private var made: URLSession?

    package init(isPinned: (@Sendable (URLAuthenticationChallenge) -> Bool?)? = nil) {
        self.isPinned = isPinned
    }

    @discardableResult
    private func locked<Value>(_ work: () -> Value) -> Value {
        lock.lock()
        defer { lock.unlock() }
        return work()
    }

    private func session() -> URLSession {
        locked {
            if let made { return made }
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpCookieStorage = nil
            configuration.urlCache = nil
            let session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
            made = session
            return session
        }
    }

    package func post(_ url: String, headers: [String: String], body: [UInt8], limitMs: Int64) async throws -> HttpResponse {
        guard let address = URL(string: url) else { throw URLError(.badURL) }
        var request = URLRequest(url: address, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: Double(limitMs) / 1_000)
        request.httpMethod = "POST"
        request.httpBody = Data(body)
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        let asked = request
        // The session's own limit begins anew with each byte.
        guard let (response, data) = try await within(limitMs, { try await self.exchange(asked) }) else { throw URLError(.timedOut) }
        var named: [String: String] = [:]
        for (name, value) in response.allHeaderFields { named["\(name)".lowercased()] = "\(value)" }
        return HttpResponse(status: response.statusCode, headers: named, body: String(decoding: data, as: UTF8.self))
    }

    private func exchange(_ request: URLRequest) async throws -> (HTTPURLResponse, Data) {
        let task = session().dataTask(with: request)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                locked { exchanges[task.taskIdentifier] = Exchange(continuation) }
                task.resume()
                // It may have been canceled before it was noted: then nobody else ends it.
                if Task.isCancelled { finish(task, URLError(.cancelled)) }
            }
        } onCancel: {
            task.cancel()
        }
    }

    package func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        locked { exchanges[dataTask.taskIdentifier]?.response = response as? HTTPURLResponse }
        completionHandler(.allow)
    }

    package func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let isLong = locked {
            guard let exchange = exchanges[dataTask.taskIdentifier] else { return false }
            exchange.data.append(data.prefix(Self.longest - exchange.data.count))
            return exchange.data.count == Self.longest
        }
        if isLong { finish(dataTask, nil) }
    }

    package func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        finish(task, error)
    }

    private func finish(_ task: URLSessionTask, _ error: (any Error)?) {
        let (ended, response, data, hasOtherKeys) = locked { () -> (Exchange?, HTTPURLResponse?, Data, Bool) in
            let found = exchanges.removeValue(forKey: task.taskIdentifier)
            return (found, found?.response, found?.data ?? Data(), found?.hasOtherKeys ?? false)
        }
        task.cancel()
        guard let ended else { return }
        if hasOtherKeys {
            ended.continuation.resume(throwing: PinError())
        } else if error == nil, let response {
            ended.continuation.resume(returning: (response, data))
        } else {
            ended.continuation.resume(throwing: error ?? URLError(.badServerResponse))
        }
    }

    package func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    package func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard isPinned?(challenge) == false else { return completionHandler(.performDefaultHandling, nil) }
        locked { exchanges[task.taskIdentifier]?.hasOtherKeys = true }
        completionHandler(.cancelAuthenticationChallenge, nil)
    }
}

/// A public key with what stands before its own bytes in a certificate (RFC 5280, `SubjectPublicKeyInfo`): what pins are digests of.
package enum PublicKeyInfo {
    private static let rsa: [UInt8] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00]
    private static let ec: [UInt8] = [0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01]
    private static let curves: [Int: [UInt8]] = [
        256: [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
        384: [0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22],
        521: [0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23],
    ]

    /// `key` as the system exports it: PKCS #1 of RSA, of whatever size.
    package static func ofRSA(_ key: [UInt8]) -> [UInt8] { of(rsa, key) }

    /// `key` as the system exports it: an uncompressed point. `nil` for a curve without a name here.
    package static func ofEC(_ key: [UInt8], bits: Int) -> [UInt8]? { curves[bits].map { of(ec + $0, key) } }

    private static func of(_ algorithm: [UInt8], _ key: [UInt8]) -> [UInt8] {
        let kind = sequence(0x30, algorithm)
        let bytes = sequence(0x03, [0] + key)
        return sequence(0x30, kind + bytes)
    }

    private static func sequence(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        if count < 128 { return [tag, UInt8(count)] + content }
        if count < 256 { return [tag, 0x81, UInt8(count)] + content }
        return [tag, 0x82, UInt8(count >> 8), UInt8(count & 255)] + content
    }
}
