// Not run yet: see README.md.
import Foundation
import XCTest

@testable import SvcVisitorCore

/// The engine with a phone, a server and App Attest that are scripts. Limits are short, and bounds on them wide.
final class EngineTests: XCTestCase {
    /// Counts, and does one step after the other, the last for ever.
    private actor Steps<Value: Sendable> {
        private let steps: [@Sendable () async throws -> Value]
        private(set) var count = 0

        init(_ steps: [@Sendable () async throws -> Value]) {
            self.steps = steps
        }

        func next() async throws -> Value {
            count += 1
            return try await steps[min(count, steps.count) - 1]()
        }
    }

    private struct Server: Http {
        let steps: Steps<HttpResponse>
        let bodies = Bodies()

        actor Bodies {
            private(set) var all: [Json] = []
            func add(_ body: Json) { all.append(body) }
        }

        func post(_ url: String, headers: [String: String], body: [UInt8], limitMs: Int64) async throws -> HttpResponse {
            if url.hasSuffix("/challenge") {
                let challenge = Texts.base64([UInt8](repeating: 7, count: 32))
                return HttpResponse(status: 200, headers: [:], body: "{\"challenge\":\"\(challenge)\"}")
            }
            await bodies.add(Json.parse(String(decoding: body, as: UTF8.self)) ?? .null)
            let steps = self.steps
            guard let found = try await within(limitMs, { try await steps.next() }) else { throw URLError(.timedOut) }
            return found
        }
    }

    /// App Attest as a script: `known` are the keys that the system has.
    private actor FakeKeys: AttestationKeys {
        nonisolated let isSupported = true
        private var known: Set<String>
        private let isAway: Bool
        private let firstTakesMs: UInt64
        private(set) var generated = 0

        init(known: Set<String> = [], isAway: Bool = false, firstTakesMs: UInt64 = 0) {
            self.known = known
            self.isAway = isAway
            self.firstTakesMs = firstTakesMs
        }

        func generate() async throws -> String {
            if isAway { throw AttestationFault.unavailable }
            generated += 1
            let made = "key-\(generated)"
            known.insert(made)
            if generated == 1, firstTakesMs > 0 { try await Task.sleep(nanoseconds: firstTakesMs * 1_000_000) }
            return made
        }

        func attest(_ keyID: String, hash: [UInt8]) throws -> [UInt8] { [1] }

        func assertion(_ keyID: String, hash: [UInt8]) throws -> [UInt8] {
            guard known.contains(keyID) else { throw AttestationFault.rejected }
            return [2]
        }
    }

    private final class Kept: Store, @unchecked Sendable {
        private var texts: [String: String]
        private let lock = NSLock()

        init(_ texts: [String: String] = [:]) {
            self.texts = texts
        }

        private func locked<Value>(_ work: () -> Value) -> Value {
            lock.lock()
            defer { lock.unlock() }
            return work()
        }

        func read(_ name: String) -> String? { locked { texts[name] } }
        func write(_ name: String, _ text: String) { locked { texts[name] = text } }
        func delete(_ name: String) { locked { texts[name] = nil } }
        var names: [String] { locked { texts.keys.sorted() } }
    }

    private struct Phone: PhoneHost {
        let userAgent = "svc-ios/0"
        let version = "0"
        var read: [Source] = [Source("build") { .object(["machine": .string("iPhone15,3"), "os_version": .string("17"), "os_build": .string("21E")]) }]
        var kept = Kept()
        var attestation: any AttestationKeys = FakeKeys()
        var store: any Store { kept }
        var keys: any AttestationKeys { attestation }

        func nowMs() -> Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }
        func elapsedMs() -> Int64 { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) }
        func random(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: .min ... .max) } }
        func sources(minimal: Bool) -> [Source] { read }
        func checks() -> [Source] { [] }
        func log(_ line: String) {}
    }

    private static let done = HttpResponse(status: 200, headers: [:], body: "{\"request_id\":\"r\"}")

    private func server(_ steps: (@Sendable () async throws -> HttpResponse)...) -> Server {
        Server(steps: Steps(steps.isEmpty ? [{ Self.done }] : steps))
    }

    private func engine(_ phone: Phone, _ server: Server, change: (inout SvcOptions) -> Void = { _ in }) -> Engine {
        var options = SvcOptions(apiKey: "svc_pk_us_development_x", endpoint: "http://localhost:1")
        change(&options)
        return Engine(options, host: phone, http: server)
    }

    private func code(_ work: () async throws -> SvcIdentification) async -> String {
        do {
            return try await work().requestID
        } catch {
            return (error as? SvcError)?.code ?? "\(error)"
        }
    }

    private func asked(_ server: Server) async {
        while true {
            let count = await server.steps.count
            if count > 0 { return }
            await Task.yield()
        }
    }

    private static let forever: @Sendable () async throws -> Json = {
        try await Task.sleep(nanoseconds: 3_600_000_000_000)
        return .null
    }

    func testASourceThatHangsCostsItsField() async throws {
        var phone = Phone()
        phone.read.append(Source("screen", read: Self.forever))
        let server = server()
        let engine = engine(phone, server) { $0.collectMs = 200 }
        for tag in ["a", "b"] { _ = try await engine.identify(subject: ["tag": .string(tag)], timeoutMs: 5_000) }
        for body in await server.bodies.all {
            XCTAssertEqual(body["signals"]?["app"]?["left_out"], .list([.string("screen")]))
            XCTAssertEqual(body["signals"]?["model"], .string("iPhone15,3"))
        }
    }

    func testEachCallerHasItsOwnLimitAndCancelingEndsItsOwnCall() async throws {
        let server = server({ try await Task.sleep(nanoseconds: 600_000_000); return Self.done })
        let engine = engine(Phone(), server)
        let subject: [Name: Json] = ["tag": .string("t")]
        async let patient = engine.identify(subject: subject, timeoutMs: 8_000)
        let hasty = await code { try await engine.identify(subject: subject, timeoutMs: 100) }
        XCTAssertEqual(hasty, "timeout")
        let canceled = Task { try await engine.identify(subject: subject, timeoutMs: 8_000) }
        canceled.cancel()
        let told = await code { try await canceled.value }
        XCTAssertEqual(told, "aborted")
        let found = try await patient
        XCTAssertEqual(found.requestID, "r")
    }

    func testAnUrgentCallPassesASlowOne() async throws {
        let server = server({ try await Task.sleep(nanoseconds: 3_000_000_000); return Self.done }, { Self.done })
        let engine = engine(Phone(), server)
        let slow = Task { try await engine.identify(subject: ["tag": .string("screen")], timeoutMs: 500) }
        await asked(server)
        let urgent = await code { try await engine.identify(subject: ["tag": .string("form")], timeoutMs: 2_000) }
        XCTAssertEqual(urgent, "r")
        let late = await code { try await slow.value }
        XCTAssertEqual(late, "timeout")
    }

    func testTextsThatLookAlikeAreOtherThings() async throws {
        let server = server()
        let engine = engine(Phone(), server)
        async let composed = engine.identify(subject: ["tag": .string("\u{e9}")], timeoutMs: 5_000)
        async let decomposed = engine.identify(subject: ["tag": .string("e\u{301}")], timeoutMs: 5_000)
        _ = try await (composed, decomposed)
        let count = await server.steps.count
        XCTAssertEqual(count, 2)
    }

    func testForgetEndsCallsAndNothingIsStoredAfterwards() async throws {
        let phone = Phone()
        let engine = engine(phone, server({ try await Task.sleep(nanoseconds: 3_000_000_000); return Self.done }))
        let running = Task { try await engine.identify(subject: [:], timeoutMs: 8_000) }
        while phone.kept.names.isEmpty { await Task.yield() }
        await engine.forget()
        let told = await code { try await running.value }
        XCTAssertEqual(told, "aborted")
        XCTAssertEqual(phone.kept.names, [])
    }

    private func format(_ server: Server) async -> String? { await server.bodies.all.last?["signals"]?["attestation"]?["format"]?.string }

    func testAKeyThatDidNotOutliveAReinstallationIsReplacedOnce() async throws {
        let recent = Int64(Date().timeIntervalSince1970 * 1_000) - 1_000
        var phone = Phone()
        phone.kept = Kept([AttestedKey.name: "{\"key_id\":\"gone\",\"pending\":false,\"attested_at_ms\":\(recent)}"])
        let keys = FakeKeys()
        phone.attestation = keys
        let server = server()
        let engine = engine(phone, server) { $0.attestation = .whenPossible }
        for tag in ["a", "b"] {
            _ = try await engine.identify(subject: ["tag": .string(tag)], timeoutMs: 5_000)
            let sent = await format(server)
            XCTAssertEqual(sent, "apple-app-attest")
        }
        let generated = await keys.generated
        XCTAssertEqual(generated, 1)
        let last = await server.bodies.all.last?["signals"]?["attestation"]
        XCTAssertEqual(last?["key_id"], .string("key-1"))
        XCTAssertNotNil(last?["assertion"])
    }

    func testCallsAtTheSameTimeMakeOneKeyAndCountersArriveInOrder() async throws {
        var phone = Phone()
        let keys = FakeKeys(firstTakesMs: 200)
        phone.attestation = keys
        let server = server()
        let engine = engine(phone, server) { $0.attestation = .whenPossible }
        async let first = engine.identify(subject: ["tag": .string("a")], timeoutMs: 5_000)
        async let second = engine.identify(subject: ["tag": .string("b")], timeoutMs: 5_000)
        _ = try await (first, second)
        let generated = await keys.generated
        XCTAssertEqual(generated, 1)
        let claims = await server.bodies.all.map { $0["signals"]?["attestation"] }
        XCTAssertNotNil(claims[0]?["attestation"])
        XCTAssertNotNil(claims[1]?["assertion"])
    }

    func testACallThatIsCanceledWhileAppleAttestsLeavesTheNextOneItsProof() async throws {
        var phone = Phone()
        phone.attestation = FakeKeys(firstTakesMs: 400)
        let server = server()
        let engine = engine(phone, server) { $0.attestation = .whenPossible }
        let hasty = await code { try await engine.identify(subject: ["tag": .string("a")], timeoutMs: 100) }
        XCTAssertEqual(hasty, "timeout")
        try await Task.sleep(nanoseconds: 1_000_000_000)
        _ = try await engine.identify(subject: ["tag": .string("b")], timeoutMs: 5_000)
        let sent = await format(server)
        XCTAssertEqual(sent, "apple-app-attest")
    }

    func testApplesServersBeingAwayIsAnotherTimesMatter() async throws {
        var phone = Phone()
        phone.attestation = FakeKeys(isAway: true)
        let server = server()
        let engine = engine(phone, server) { $0.attestation = .whenPossible }
        _ = try await engine.identify(subject: [:], timeoutMs: 5_000)
        let sent = await format(server)
        XCTAssertEqual(sent, "none")
    }

    func testNumbersAreThoseOfJSON() {
        for wrong in ["01", "+1", "1.", ".5", "1e", "-", "0x1", "1e+", "--1"] { XCTAssertNil(Json.parse(wrong), wrong) }
        for (text, value) in [("0", Json.int(0)), ("-1", .int(-1)), ("1.5e3", .double(1_500)), ("0.25", .double(0.25))] {
            XCTAssertEqual(Json.parse(text), value, text)
        }
    }

    func testAResponseWithNumbersThatNoIntHoldsIsNoEndOfTheApp() {
        for number in ["1e300", "-1e300", "1e999"] {
            let found = SvcIdentification(json: "{\"request_id\":\"r\",\"visitor_confidence\":\(number),\"suspect_score\":\(number)}")
            XCTAssertEqual(found?.requestID, "r")
            XCTAssertNil(found?.visitorConfidence)
            XCTAssertNil(found?.suspectScore)
        }
        XCTAssertEqual(SvcIdentification(json: "{\"request_id\":\"r\",\"visitor_confidence\":89.0}")?.visitorConfidence, 89)
        XCTAssertNil(Json.parse("\"\\u+12F\""))
    }

    func testWrongOptionsAreRefused() {
        let right = SvcOptions(apiKey: "svc_pk_us_development_x", endpoint: "https://id.shop.example")
        XCTAssertNil(right.fault)
        let pin = Texts.base64([UInt8](repeating: 7, count: 32))
        let wrong: [(inout SvcOptions) -> Void] = [
            { $0.apiKey = "svc_sk_us_development_x" }, { $0.apiKey += "\n" }, { $0.timeoutMs = 0 }, { $0.collectMs = .max },
            { $0.timeoutMs = .max }, { $0.endpoints = [] }, { $0.endpoints = ["ftp://a.example"] }, { $0.pins = [pin] },
            { $0.endpoints = ["http://127.example.com"] }, { $0.endpoints = ["http://localhost.example"] },
            { $0.pins = [pin, "x"] },
        ]
        for change in wrong {
            var options = right
            change(&options)
            XCTAssertEqual(options.fault?.code, "invalid_options")
        }
    }

    func testKeysHaveWhatStandsBeforeThemInACertificate() {
        XCTAssertEqual(PublicKeyInfo.ofEC([UInt8](repeating: 4, count: 65), bits: 256)?.prefix(4), [0x30, 0x59, 0x30, 0x13])
        XCTAssertEqual(PublicKeyInfo.ofEC([UInt8](repeating: 4, count: 97), bits: 384)?.prefix(4), [0x30, 0x76, 0x30, 0x10])
        XCTAssertEqual(PublicKeyInfo.ofEC([UInt8](repeating: 4, count: 133), bits: 521)?.prefix(5), [0x30, 0x81, 0x9b, 0x30, 0x10])
        XCTAssertNil(PublicKeyInfo.ofEC([], bits: 224))
        // PKCS #1 of 2,048 and 4,096 bits.
        XCTAssertEqual(PublicKeyInfo.ofRSA([UInt8](repeating: 1, count: 270)).prefix(8), [0x30, 0x82, 0x01, 0x22, 0x30, 0x0d, 0x06, 0x09])
        XCTAssertEqual(PublicKeyInfo.ofRSA([UInt8](repeating: 1, count: 526)).prefix(4), [0x30, 0x82, 0x02, 0x22])
    }
}
