/// A text by its bytes. Texts of Swift that look alike are equal, and have one hash; names in JSON, tags and accounts are not.
package struct Name: Hashable, Sendable, ExpressibleByStringLiteral {
    package let text: String

    package init(_ text: String) {
        self.text = text
    }

    package init(stringLiteral text: String) {
        self.text = text
    }

    package static func == (one: Name, other: Name) -> Bool { one.text.utf8.elementsEqual(other.text.utf8) }

    package func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }
}

/// JSON, written canonically: names sorted by UTF-16 unit, no space, numbers as ECMAScript writes them.
package indirect enum Json: Equatable, Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    case double(Double)
    case string(String)
    case list([Json])
    case object([Name: Json])

    package subscript(name: Name) -> Json? {
        guard case .object(let members) = self else { return nil }
        return members[name]
    }

    package var string: String? { if case .string(let text) = self { text } else { nil } }
    package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    package var int: Int64? { if case .int(let value) = self { value } else { nil } }
    package var list: [Json]? { if case .list(let entries) = self { entries } else { nil } }
    package var isNull: Bool { self == .null }
    package var double: Double? {
        switch self {
        case .int(let value): Double(value)
        case .double(let value): value
        default: nil
        }
    }

    package var canonical: String {
        switch self {
        case .null: return "null"
        case .bool(let value): return value ? "true" : "false"
        case .int(let value): return String(value)
        case .double(let value): return Json.number(value)
        case .string(let text): return Json.text(text)
        case .list(let entries): return "[" + entries.map(\.canonical).joined(separator: ",") + "]"
        case .object(let members):
            let names = members.keys.sorted { $0.text.utf16.lexicographicallyPrecedes($1.text.utf16) }
            let written: [String] = names.map { name in
                let value = members[name]?.canonical ?? "null"
                return "\(Json.text(name.text)):\(value)"
            }
            return "{" + written.joined(separator: ",") + "}"
        }
    }

    private static func text(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\u{8}": out += "\\b"
            case "\u{c}": out += "\\f"
            case "\n": out += "\\n"
            case "\r": out += "\\r"
            case "\t": out += "\\t"
            case let control where control.value < 32:
                let digits = String(control.value, radix: 16)
                out += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }

    /// The description of a `Double` has the shortest digits that read back as the same number; only its form differs.
    static func number(_ value: Double) -> String {
        guard value.isFinite else { return "null" }
        if value == 0 { return "0" }
        let parts = "\(abs(value))".lowercased().split(separator: "e")
        let mantissa = parts[0].split(separator: ".")
        var digits = String(mantissa[0]) + (mantissa.count > 1 ? String(mantissa[1]) : "")
        var point = mantissa[0].count + (parts.count > 1 ? Int(parts[1])! : 0)
        while digits.hasPrefix("0") { digits.removeFirst(); point -= 1 }
        while digits.hasSuffix("0") { digits.removeLast() }
        return (value < 0 ? "-" : "") + placed(digits, point)
    }

    /// Digits with the decimal point after so many of them, as ECMAScript places it.
    private static func placed(_ digits: String, _ point: Int) -> String {
        let count = digits.count
        if count <= point, point <= 21 {
            let zeros = String(repeating: "0", count: point - count)
            return "\(digits)\(zeros)"
        }
        if 0 < point, point <= 21 { return "\(digits.prefix(point)).\(digits.dropFirst(point))" }
        if -6 < point, point <= 0 {
            let zeros = String(repeating: "0", count: -point)
            return "0.\(zeros)\(digits)"
        }
        let fraction = count == 1 ? "" : ".\(digits.dropFirst(1))"
        let sign = point > 0 ? "+" : "-"
        return "\(digits.prefix(1))\(fraction)e\(sign)\(abs(point - 1))"
    }

    /// `nil` for a text that is not one JSON value.
    package static func parse(_ text: String) -> Json? {
        var reader = JsonReader(units: Array(text.unicodeScalars))
        return reader.whole()
    }
}

struct JsonReader {
    let units: [Unicode.Scalar]
    private var at = 0
    private static let deepest = 64

    init(units: [Unicode.Scalar]) {
        self.units = units
    }

    mutating func whole() -> Json? {
        guard let value = value(0) else { return nil }
        skip()
        return at == units.count ? value : nil
    }

    private mutating func skip() {
        while at < units.count, " \t\n\r".unicodeScalars.contains(units[at]) { at += 1 }
    }

    private mutating func take(_ expected: Unicode.Scalar) -> Bool {
        guard at < units.count, units[at] == expected else { return false }
        at += 1
        return true
    }

    private mutating func word(_ word: String, _ value: Json) -> Json? {
        for scalar in word.unicodeScalars where !take(scalar) { return nil }
        return value
    }

    private mutating func value(_ depth: Int) -> Json? {
        skip()
        guard depth <= Self.deepest, at < units.count else { return nil }
        switch units[at] {
        case "{": return members(depth)
        case "[": return entries(depth)
        case "\"": return string().map { .string($0) }
        case "t": return word("true", .bool(true))
        case "f": return word("false", .bool(false))
        case "n": return word("null", .null)
        default: return number()
        }
    }

    private mutating func members(_ depth: Int) -> Json? {
        var found: [Name: Json] = [:]
        at += 1
        skip()
        if take("}") { return .object(found) }
        while true {
            skip()
            guard at < units.count, units[at] == "\"", let name = string() else { return nil }
            skip()
            guard take(":"), let value = value(depth + 1) else { return nil }
            found[Name(name)] = value
            skip()
            if take("}") { return .object(found) }
            guard take(",") else { return nil }
        }
    }

    private mutating func entries(_ depth: Int) -> Json? {
        var found: [Json] = []
        at += 1
        skip()
        if take("]") { return .list(found) }
        while true {
            guard let value = value(depth + 1) else { return nil }
            found.append(value)
            skip()
            if take("]") { return .list(found) }
            guard take(",") else { return nil }
        }
    }

    private mutating func string() -> String? {
        var found = String.UnicodeScalarView()
        at += 1
        while at < units.count {
            let scalar = units[at]
            at += 1
            if scalar == "\"" { return String(found) }
            if scalar.value < 32 { return nil }
            if scalar != "\\" {
                found.append(scalar)
                continue
            }
            guard let escaped = escaped() else { return nil }
            found.append(escaped)
        }
        return nil
    }

    private mutating func escaped() -> Unicode.Scalar? {
        guard at < units.count else { return nil }
        let scalar = units[at]
        at += 1
        switch scalar {
        case "\"", "\\", "/": return scalar
        case "b": return "\u{8}"
        case "f": return "\u{c}"
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "u":
            guard let high = code() else { return nil }
            guard (0xD800...0xDBFF).contains(high) else { return Unicode.Scalar(high) }
            // No text of Swift has half of a pair.
            guard take("\\"), take("u"), let low = code(), (0xDC00...0xDFFF).contains(low) else { return nil }
            return Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
        default: return nil
        }
    }

    private mutating func code() -> UInt32? {
        guard at + 4 <= units.count else { return nil }
        let digits = units[at..<at + 4]
        at += 4
        // A number in Swift may have a sign.
        guard digits.allSatisfy(\.properties.isASCIIHexDigit) else { return nil }
        return UInt32(String(String.UnicodeScalarView(digits)), radix: 16)
    }

    /// As RFC 8259 writes numbers: no `+`, no `01`, no `1.`.
    private mutating func number() -> Json? {
        let from = at
        _ = take("-")
        guard let first = digits(), first == 1 || units[at - first] != "0" else { return nil }
        var isWhole = true
        if take(".") {
            isWhole = false
            guard digits() != nil else { return nil }
        }
        if take("e") || take("E") {
            isWhole = false
            if !take("+") { _ = take("-") }
            guard digits() != nil else { return nil }
        }
        let text = String(String.UnicodeScalarView(units[from..<at]))
        if isWhole, let whole = Int64(text) { return .int(whole) }
        return Double(text).map { .double($0) }
    }

    /// How many there were; `nil` for none.
    private mutating func digits() -> Int? {
        let from = at
        while at < units.count, ("0"..."9").contains(units[at]) { at += 1 }
        return at > from ? at - from : nil
    }
}
