/// Digests, base64 and ids, without a framework of Apple's.
package enum Texts {
    private static let base64Digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")

    package static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    package static func base64(_ bytes: [UInt8]) -> String {
        var out = ""
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let count = min(3, bytes.count - start)
            var bits = 0
            for offset in 0..<3 { bits = bits << 8 | (offset < count ? Int(bytes[start + offset]) : 0) }
            for place in 0..<4 { out.append(place > count ? "=" : base64Digits[bits >> (18 - 6 * place) & 63]) }
        }
        return out
    }

    /// `nil` unless it is standard base64 with padding and nothing else.
    package static func fromBase64(_ text: String) -> [UInt8]? {
        let digits = Array(text)
        guard digits.count % 4 == 0 else { return nil }
        let padding = digits.reversed().prefix { $0 == "=" }.count
        guard padding <= 2 else { return nil }
        var found: [UInt8] = []
        var bits = 0
        for (index, digit) in digits.enumerated() {
            guard let value = index >= digits.count - padding ? 0 : base64Digits.firstIndex(of: digit) else { return nil }
            bits = bits << 6 | value
            if index % 4 == 3 {
                for shift in [16, 8, 0] { found.append(UInt8(bits >> shift & 255)) }
                bits = 0
            }
        }
        found.removeLast(padding)
        return base64(found) == text ? found : nil
    }

    /// A UUIDv7 (RFC 9562) of this moment and 16 random bytes.
    package static func timeOrderedID(nowMs: Int64, random: [UInt8]) -> String {
        var bytes = random
        for index in 0..<6 { bytes[index] = UInt8(truncatingIfNeeded: nowMs >> Int64(40 - 8 * index)) }
        bytes[6] = bytes[6] & 15 | 0x70
        bytes[8] = bytes[8] & 63 | 0x80
        let digits = Array(hex(bytes))
        return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
    }

    /// SHA-256 (FIPS 180-4).
    package static func sha256(_ message: [UInt8]) -> [UInt8] {
        var state: [UInt32] = [
            0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
        ]
        var padded = message + [0x80]
        while padded.count % 64 != 56 { padded.append(0) }
        for shift in stride(from: 56, through: 0, by: -8) {
            padded.append(UInt8(truncatingIfNeeded: UInt64(message.count) * 8 >> UInt64(shift)))
        }
        for start in stride(from: 0, to: padded.count, by: 64) {
            mix(Array(padded[start..<start + 64]), into: &state)
        }
        return state.flatMap { word in [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> UInt32($0)) } }
    }

    private static func mix(_ block: [UInt8], into state: inout [UInt32]) {
        func turned(_ word: UInt32, _ bits: UInt32) -> UInt32 { word >> bits | word << (32 - bits) }
        var words: [UInt32] = (0..<16).map { index in
            (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(block[4 * index + $1]) }
        }
        for index in 16..<64 {
            let early = words[index - 15], late = words[index - 2]
            let first = turned(early, 7) ^ turned(early, 18) ^ early >> 3
            let second = turned(late, 17) ^ turned(late, 19) ^ late >> 10
            words.append(words[index - 16] &+ first &+ words[index - 7] &+ second)
        }
        var v = state
        for index in 0..<64 {
            let sum = turned(v[4], 6) ^ turned(v[4], 11) ^ turned(v[4], 25)
            let choice = v[4] & v[5] ^ ~v[4] & v[6]
            let one = v[7] &+ sum &+ choice &+ constants[index] &+ words[index]
            let other = turned(v[0], 2) ^ turned(v[0], 13) ^ turned(v[0], 22)
            let most = v[0] & v[1] ^ v[0] & v[2] ^ v[1] & v[2]
            v = [one &+ other &+ most, v[0], v[1], v[2], v[3] &+ one, v[4], v[5], v[6]]
        }
        for index in 0..<8 { state[index] = state[index] &+ v[index] }
    }

    private static let constants: [UInt32] = [
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
    ]
}
