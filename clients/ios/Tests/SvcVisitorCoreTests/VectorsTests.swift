// Not run yet: see README.md.
import Foundation
import XCTest

@testable import SvcVisitorCore

/// The cases that all SDKs share; one of an unknown kind fails.
final class VectorsTests: XCTestCase {
    func testRetry() async throws { try await run("retry", least: 40) }
    func testErrors() async throws { try await run("errors", least: 30) }
    func testCanonical() async throws { try await run("canonical", least: 40) }
    func testReport() async throws { try await run("report", least: 8) }
    func testToken() async throws { try await run("token", least: 10) }
    func testAttestation() async throws { try await run("attestation", least: 15) }
    func testApps() async throws { try await run("apps", least: 30) }

    /// Copied there by build.sh.
    private static let folder = Bundle.module.resourceURL!.appendingPathComponent("vectors")

    private func run(_ file: String, least: Int) async throws {
        // Half of a pair, which no text of Swift has, makes its line unreadable: lines are read one by one.
        let lines = try String(contentsOf: Self.folder.appendingPathComponent("\(file).json"), encoding: .utf8).split(separator: "\n")
        XCTAssertTrue(lines[0].hasPrefix("{\"format\": 1,"))
        var ran = 0
        for line in lines.dropFirst().dropLast() {
            guard let one = Json.parse(line.hasSuffix(",") ? String(line.dropLast()) : String(line)) else {
                XCTAssertTrue(line.contains("half of an emoji"), String(line))
                continue
            }
            if let only = one["only"]?.list, !only.contains(.string("swift")) { continue }
            if let platform = one["given"]?["platform"]?.string, platform != "ios" { continue }
            let found = try await result(of: one)
            // By bytes: texts of Swift that look alike are equal.
            XCTAssertEqual(Array(found.canonical.utf8), Array(one["expect"]!.canonical.utf8), one["name"]!.string!)
            ran += 1
        }
        XCTAssertGreaterThanOrEqual(ran, least)
    }

    private struct UnknownKind: Error {}

    private func result(of one: Json) async throws -> Json {
        let given = one["given"]!
        switch one["kind"]!.string! {
        case "send": return await sent(given)
        case "response": return said(Sending.read(http(given["response"]!), nowMs: given["epoch_ms"]!.int!))
        case "canonical":
            let text = given.canonical
            return .object(["text": .string(text), "sha256": .string(Texts.hex(Texts.sha256(Array(text.utf8))))])
        case "report": return reported(given, read: one["expect"]!["read"]!)
        case "token": return token(given)
        case "client_data_hash": return Challenge.clientDataHash(given.string).map { .string(Texts.hex($0)) } ?? .null
        case "ios_key": return key(given)
        case "app_request": return try await asked(given)
        case "app_refusal": return refused(one["expect"]!)
        default: throw UnknownKind()
        }
    }

    private func said(_ outcome: Outcome) -> Json {
        switch outcome {
        case .response(_, let members): return .object(["response": members])
        case .failure(let error):
            return .object([
                "error": .object([
                    "code": .string(error.code), "status": .int(Int64(error.status)), "retryable": .bool(error.retryable),
                    "retry_after_ms": .int(error.retryAfterMs), "request_id": error.requestID.map { .string($0) } ?? .null,
                ])
            ])
        }
    }

    private func http(_ step: Json) -> HttpResponse {
        var headers: [String: String] = [:]
        if case .object(let named) = step["headers"] { for (name, value) in named { headers[name.text.lowercased()] = value.string } }
        return HttpResponse(status: Int(step["status"]!.int!), headers: headers, body: step["body"]!.string!)
    }

    private actor Scripted: SendingLine {
        let given: Json
        let read: @Sendable (Json) -> HttpResponse
        var now: Int64 = 0
        var drawn = 0
        var attempts: [Json] = []

        init(_ given: Json, read: @escaping @Sendable (Json) -> HttpResponse) {
            self.given = given
            self.read = read
        }

        func leftMs() -> Int64 { given["timeout_ms"]!.int! - now }

        func draw() -> Double {
            let draws = given["draws"]!.list!
            drawn += 1
            return draws[(drawn - 1) % draws.count].double!
        }

        func pause(ms: Int64) -> Bool {
            now += ms
            return true
        }

        func attempt(endpoint: Int, limitMs: Int64) -> Outcome {
            let script = given["script"]!.list!
            let step = script[min(attempts.count, script.count - 1)]
            attempts.append(.object(["endpoint": .int(Int64(endpoint)), "at_ms": .int(now)]))
            let took = step["after_ms"]?.int ?? 0
            if step["fault"]?.string == "silence" || took >= limitMs {
                now += limitMs
                return .timeout("")
            }
            now += took
            if step["fault"]?.string == "network" { return .network("") }
            return Sending.read(read(step), nowMs: given["epoch_ms"]!.int! + now)
        }
    }

    private func sent(_ given: Json) async -> Json {
        if given["online"]?.bool == false {
            let offline = said(.failure(SvcError(code: "offline", message: "", retryable: true)))
            return .object(["attempts": .list([]), "ended_at_ms": .int(0), "error": offline["error"]!])
        }
        let line = Scripted(given) { [self] in http($0) }
        let count = Int(given["endpoints"]!.int!)
        let sent = await Sending.send(line, endpoints: count)
        guard case .object(var found) = said(sent.outcome) else { return .null }
        found["attempts"] = .list(await line.attempts)
        found["ended_at_ms"] = .int(await line.now)
        return .object(found)
    }

    private func reported(_ given: Json, read: Json) -> Json {
        guard case .object(let device) = given["device"]! else { return .null }
        let options = given["options"]!
        var report = Report.Given(device: device, nonce: given["nonce"]!.string!, collectedAtMs: given["collected_at"]!.int!)
        report.flags = given["flags"]!.list!.compactMap(\.string)
        report.failedChecks = given["failed_checks"]!.list!.compactMap(\.string)
        report.token = given["token"]!.string
        report.storage = options["storage"]!.bool!
        report.deviceID = options["device_id"]!.bool!
        report.minimal = options["minimal"]!.bool!
        report.bridge = options["bridge"]!.string
        let signals = Report.signals(report)
        return .object(["signals": signals, "bytes": .int(Int64(signals.canonical.utf8.count)), "read": read])
    }

    private final class Faulty: Store, @unchecked Sendable {
        struct Fault: Error {}
        let faults: [Json]
        var content: String?

        init(_ faults: [Json], _ content: String?) {
            self.faults = faults
            self.content = content
        }

        func read(_ name: String) throws -> String? {
            if faults.contains(.string("read")) { throw Fault() }
            return content
        }

        func write(_ name: String, _ text: String) throws {
            if faults.contains(.string("write")) { throw Fault() }
            if !faults.contains(.string("lost_write")) { content = text }
        }

        func delete(_ name: String) throws { throw Fault() }
    }

    private func token(_ given: Json) -> Json {
        let store = Faulty(given["faults"]!.list!, given["content"]!.string)
        let found = given["storage"]!.bool! ? Token.of(store) { given["made"]!.string! } : nil
        return .object(["client_token": found.map { .string($0) } ?? .null, "content": store.content.map { .string($0) } ?? .null])
    }

    private struct Unsupported: AttestationKeys {
        let isSupported = false
        func generate() async throws -> String { throw AttestationFault.unavailable }
        func attest(_ keyID: String, hash: [UInt8]) async throws -> [UInt8] { throw AttestationFault.unavailable }
        func assertion(_ keyID: String, hash: [UInt8]) async throws -> [UInt8] { throw AttestationFault.unavailable }
    }

    /// A phone, and a server that notes what it gets.
    private struct Noting: PhoneHost, Http {
        let device: [Name: Json]
        let userAgent: String
        let version: String
        let now: Int64
        let store: any Store
        let keys: any AttestationKeys = Unsupported()
        let noted = Shared<Json>()

        func nowMs() -> Int64 { now }
        func elapsedMs() -> Int64 { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) }
        func random(_ count: Int) -> [UInt8] { [UInt8](repeating: 128, count: count) }
        func sources(minimal: Bool) -> [Source] { device.map { name, value in Source(name) { value } } }
        func checks() -> [Source] { [] }
        func log(_ line: String) {}

        func post(_ url: String, headers: [String: String], body: [UInt8], limitMs: Int64) async throws -> HttpResponse {
            let named = Dictionary(uniqueKeysWithValues: headers.map { (Name($0.key), Json.string($0.value)) })
            let read = Json.parse(String(decoding: body, as: UTF8.self)) ?? .null
            noted.set(.object(["url": .string(url), "headers": .object(named), "body": read]))
            return HttpResponse(status: 200, headers: [:], body: "{\"request_id\":\"r\"}")
        }
    }

    /// What is sent for these options, subject and phone.
    private func asked(_ given: Json) async throws -> Json {
        guard case .object(let device) = given["device"]!, case .object(let subject) = given["subject"]! else { return .null }
        let wanted = given["options"]!
        var options = SvcOptions(apiKey: given["api_key"]!.string!, endpoint: given["endpoint"]!.string!)
        options.storage = wanted["storage"]!.bool!
        options.deviceID = wanted["device_id"]!.bool!
        options.minimal = wanted["minimal"]!.bool!
        options.verdict = wanted["verdict"]!.bool!
        if let bridge = wanted["bridge"], let name = bridge["name"]?.string { options.bridge = (name, bridge["version"]!.string!) }
        let phone = Noting(
            device: device, userAgent: given["user_agent"]!.string!, version: given["version"]!.string!, now: given["now_ms"]!.int!,
            store: Faulty([], given["token"]!.string))
        _ = try await Engine(options, host: phone, http: phone).identify(subject: subject, timeoutMs: 10_000)
        return phone.noted.get() ?? .null
    }

    /// What is told of a refusal, its message without what the SDK adds.
    private func refused(_ expect: Json) -> Json {
        let response = HttpResponse(status: Int(expect["status"]!.int!), headers: [:], body: expect["body"]!.canonical)
        guard case .object(var found) = expect, case .failure(let error) = Sending.read(response, nowMs: 0),
            case .object(var told)? = said(.failure(error))["error"]
        else { return .null }
        let text = error.message.replacingOccurrences(of: "\(error.status) \(error.code): ", with: "")
        told["message"] = .string(text.components(separatedBy: " The key sent is")[0])
        found["told"] = .object(told)
        return .object(found)
    }

    private func key(_ given: Json) -> Json {
        let kept = given["state"]!, event = given["event"]!
        let state = KeyState(keyID: kept["key_id"]!.string, pending: kept["pending"]!.bool!, attestedAtMs: kept["attested_at_ms"]!.int)
        let nowMs = event["now_ms"]!.int!
        let did = state.step(nowMs: nowMs)
        let response = KeyState.Response(rawValue: event["response"]!.string!)!
        let next = state.after(did, newKeyID: event["key_id"]!.string, response, nowMs: nowMs)
        return .object([
            "did": .string(did.rawValue),
            "state": .object([
                "key_id": next.keyID.map { .string($0) } ?? .null, "pending": .bool(next.pending),
                "attested_at_ms": next.attestedAtMs.map { .int($0) } ?? .null,
            ]),
        ])
    }
}
