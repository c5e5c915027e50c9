/// The report of an iPhone or iPad (`report.json`): raw values of sources in, `signals` out. The schema is closed.
package enum Report {
    /// Stands in place of a value that could not be read.
    package static let fault = Json.object(["fault": .string("error")])

    package struct Given {
        /// Raw values by source; an object with `fault` for one that failed.
        package var device: [Name: Json]
        package var flags: [String] = []
        package var failedChecks: [String] = []
        package var token: String?
        package var nonce: String
        package var collectedAtMs: Int64
        package var storage = true
        package var deviceID = true
        package var minimal = false
        package var bridge: String?

        package init(device: [Name: Json], nonce: String, collectedAtMs: Int64) {
            self.device = device
            self.nonce = nonce
            self.collectedAtMs = collectedAtMs
        }
    }

    private struct Nonsense: Error {}
    private typealias Fields = [Name: Json]

    package static func signals(_ given: Given) -> Json {
        var leftOut = Set(given.failedChecks)
        func read(_ name: Name, _ fields: (Json) throws -> Fields) -> Fields {
            guard let value = given.device[name], !value.isNull else { return [:] }
            do {
                if value["fault"] != nil { throw Nonsense() }
                return try fields(value)
            } catch {
                leftOut.insert(name.text)
                return [:]
            }
        }
        var found: Fields = [
            "platform": .string("ios"), "nonce": .string(given.nonce), "collected_at": .int(given.collectedAtMs),
        ]
        func add(_ fields: Fields) { found.merge(fields) { $1 } }
        let build = read("build", Self.build)
        add(given.minimal ? build.filter { $0.key == "model" || $0.key == "os_version" } : build)
        if !given.minimal {
            add(read("cores") { ["cores": .int(try whole($0, 1...4_096))] })
            add(read("memory") { ["memory_mb": .int(try whole($0, (1 << 20)...(1 << 50)) >> 20)] })
            add(read("screen") { ["screen": try screen($0)] })
            add(read("languages") { ["languages": try languages($0)] })
            add(read("timezone") { ["timezone": .string(try text($0, 64))] })
            add(read("font_scale") { ["font_scale": .double(try factor($0, 100))] })
            var settings = read("clock_24") { value in
                guard value.bool != nil else { throw Nonsense() }
                return ["clock_24": value]
            }
            let night = read("night_mode") { value in
                guard value == .string("yes") || value == .string("no") else { throw Nonsense() }
                return ["night_mode": value]
            }
            settings.merge(night) { $1 }
            if !settings.isEmpty { found["settings"] = .object(settings) }
        }
        var about = read("app") {
            ["package": .string(try text($0["package"], 128)), "version": .string(try text($0["version"], 64))]
        }
        if given.storage, given.deviceID { add(read("identifier_for_vendor") { ["identifier_for_vendor": .string(try id($0))] }) }
        if let token = given.token { found["client_token"] = .string(token) }
        if !given.flags.isEmpty { found["flags"] = .object(Dictionary(uniqueKeysWithValues: given.flags.map { (Name($0), .bool(true)) })) }
        if let bridge = given.bridge { about["bridge"] = .string(bridge) }
        if !leftOut.isEmpty { about["left_out"] = .list(leftOut.sorted().map { .string($0) }) }
        if !about.isEmpty { found["app"] = .object(about) }
        return .object(found)
    }

    private static func build(_ value: Json) throws -> Fields {
        [
            "model": .string(try text(value["machine"], 128)), "os_version": .string(try text(value["os_version"], 32)),
            "os_build": .string(try text(value["os_build"], 96)),
        ]
    }

    private static func text(_ value: Json?, _ longest: Int) throws -> String {
        guard let found = value?.string, !found.isEmpty, found.unicodeScalars.count <= longest else { throw Nonsense() }
        return found
    }

    private static func whole(_ value: Json?, _ range: ClosedRange<Int64>) throws -> Int64 {
        guard let found = value?.int, range.contains(found) else { throw Nonsense() }
        return found
    }

    /// A number above 0 and up to 100, rounded half up to a part of one.
    private static func factor(_ value: Json?, _ parts: Double) throws -> Double {
        guard let found = value?.double, found > 0, found <= 100 else { throw Nonsense() }
        return (found * parts + 0.5).rounded(.down) / parts
    }

    private static func screen(_ value: Json) throws -> Json {
        .object([
            "width": .int(try whole(value["width"], 1...100_000)), "height": .int(try whole(value["height"], 1...100_000)),
            "scale": .double(try factor(value["scale"], 1_000)),
        ])
    }

    private static func languages(_ value: Json) throws -> Json {
        guard let found = value.list, !found.isEmpty else { throw Nonsense() }
        return .list(
            try found.prefix(5).map { one in
                guard let tag = one.string, (2...35).contains(tag.count),
                    tag.utf8.allSatisfy({ $0 == 45 || (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) })
                else { throw Nonsense() }
                return one
            })
    }

    private static func id(_ value: Json) throws -> String {
        let found = try text(value, 64)
        guard found.count >= 16, found.contains(where: { $0 != "0" && $0 != "-" }) else { throw Nonsense() }
        return found
    }
}
