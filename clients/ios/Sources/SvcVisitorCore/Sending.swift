import Foundation

/// What came of one attempt, or of all of them.
package enum Outcome: Sendable {
    case response(text: String, members: Json)
    case failure(SvcError)

    static func network(_ message: String) -> Outcome {
        .failure(SvcError(code: "network", message: message, retryable: true))
    }

    static func timeout(_ message: String) -> Outcome {
        .failure(SvcError(code: "timeout", message: message, retryable: true))
    }
}

/// A response as it came; names of headers in lower case.
package struct HttpResponse: Sendable {
    package let status: Int
    package let headers: [String: String]
    package let body: String

    package init(status: Int, headers: [String: String], body: String) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// Time, and one attempt at an endpoint, by its position, within a limit.
package protocol SendingLine: Sendable {
    /// Until the call ends, which who joins it may put off.
    func leftMs() async -> Int64
    func attempt(endpoint: Int, limitMs: Int64) async -> Outcome

    /// `false` where the call has ended meanwhile.
    func pause(ms: Int64) async -> Bool
    func draw() async -> Double
}

/// The rules of retries (`retry.json`) and the names of errors (`errors.json`).
package enum Sending {
    static let attempts = 3
    static let attemptMs: Int64 = 5_000
    static let firstWaitMs: Int64 = 100
    static let longestWaitMs: Int64 = 2_000

    /// `first`: the endpoint to begin with. Returns the endpoint that was used last, too.
    package static func send(
        _ line: some SendingLine, endpoints: Int, first: Int = 0
    ) async -> (outcome: Outcome, endpoint: Int) {
        var endpoint = first
        var made = 0
        while true {
            made += 1
            let limitMs = min(attemptMs, await line.leftMs())
            let outcome = await line.attempt(endpoint: endpoint, limitMs: limitMs)
            // What the system says of the network now does not change within a second.
            guard case .failure(let error) = outcome, error.retryable, error.code != "offline", made < attempts else {
                return (outcome, endpoint)
            }
            let used = endpoint
            if error.status == 0 { endpoint = (endpoint + 1) % endpoints }
            let longest = min(longestWaitMs, firstWaitMs << Int64(made - 1))
            let wait = max(error.retryAfterMs, Int64(await line.draw() * Double(longest)))
            let left = await line.leftMs()
            guard left > wait, await line.pause(ms: wait) else { return (outcome, used) }
        }
    }

    /// `endpoint` and `shownKey` for messages alone.
    package static func read(_ response: HttpResponse, nowMs: Int64, endpoint: String = "", shownKey: String = "") -> Outcome {
        let members = Json.parse(response.body)
        let isSuccess = (200..<300).contains(response.status)
        if isSuccess, let members, members["request_id"]?.string != nil {
            return .response(text: response.body, members: members)
        }
        let isRetryable = response.status == 429 || response.status >= 500
        let asked = retryAfterMs(response.headers["retry-after"], nowMs: nowMs)
        guard !isSuccess, let error = members?["error"], case .object = error else {
            let message = "\(endpoint) responded with status \(response.status), but not as the service does: is the endpoint "
                + "right, does a proxy or a Wi-Fi login page answer in its place, and does the service run behind it?"
            let failure = SvcError(
                code: "bad_response", message: message, status: response.status, retryable: isRetryable, retryAfterMs: asked)
            return .failure(failure)
        }
        let code = error["code"]?.string ?? "http_\(response.status)"
        var message = "\(response.status) \(code): \(error["message"]?.string ?? "no message")"
        if code == "unauthorized" {
            message += " The key sent is \(shownKey): is it whole, public, for iOS, and not revoked?"
        }
        let failure = SvcError(
            code: code, message: message, status: response.status, retryable: isRetryable, retryAfterMs: asked,
            requestID: members?["request_id"]?.string ?? response.headers["x-request-id"])
        return .failure(failure)
    }

    /// `Retry-After`: seconds or a date (RFC 9110, 10.2.3); 0 where there is none.
    static func retryAfterMs(_ header: String?, nowMs: Int64) -> Int64 {
        guard let header, !header.isEmpty else { return 0 }
        if header.allSatisfy({ ("0"..."9").contains($0) }) {
            return min(Int64(header) ?? 1_000_000_000, 1_000_000_000) * 1_000
        }
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        guard let date = format.date(from: header) else { return 0 }
        return max(0, Int64((date.timeIntervalSince1970 * 1_000).rounded()) - nowMs)
    }

    /// Enough of a key to tell it from others.
    static func shown(_ apiKey: String) -> String {
        apiKey.split(separator: "_").prefix(4).joined(separator: "_") + "_..." + apiKey.suffix(4)
    }
}
