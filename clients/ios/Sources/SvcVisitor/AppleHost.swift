// Not built or tested yet: see README.md.
#if canImport(UIKit) && canImport(DeviceCheck)
    import DeviceCheck
    import Foundation
    import SvcVisitorCore
    import UIKit

    /// What the engine needs of iOS.
    struct AppleHost: Host {
        let options: SvcOptions
        let version = SvcVisitor.version
        let store: any Store = KeychainStore()
        let keys: any AttestationKeys = AppAttest()
        let userAgent: String

        init(_ options: SvcOptions) {
            self.options = options
            let system = ProcessInfo.processInfo.operatingSystemVersion
            let bundle = Bundle.main
            let build = bundle.object(forInfoDictionaryKey: "CFBundleVersion") as? String ?? "0"
            let named = "svc-ios/\(SvcVisitor.version) (iOS \(system.majorVersion).\(system.minorVersion); \(bundle.bundleIdentifier ?? "app")/\(build))"
            userAgent = String(named.unicodeScalars.filter { (32...126).contains($0.value) }.map(Character.init))
        }

        func nowMs() -> Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

        func elapsedMs() -> Int64 { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) }

        func random(_ count: Int) -> [UInt8] {
            var generator = SystemRandomNumberGenerator()
            return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        }

        /// A request tells: `URLSession` says at once that there is no network.
        func isOnline() -> Bool { true }

        func device(minimal: Bool) async -> [String: Json] {
            var found = await screenAndApp()
            if minimal { return found }
            let process = ProcessInfo.processInfo
            found["cores"] = .int(Int64(process.processorCount))
            found["memory"] = .int(Int64(clamping: process.physicalMemory))
            found["languages"] = .list(Locale.preferredLanguages.map { .string($0) })
            found["timezone"] = .string(TimeZone.current.identifier)
            let pattern = DateFormatter.dateFormat(fromTemplate: "j", options: 0, locale: .current) ?? ""
            found["clock_24"] = .bool(!pattern.contains("a"))
            return found
        }

        /// What stands on the main thread, and no more.
        @MainActor private func screenAndApp() -> [String: Json] {
            let device = UIDevice.current
            let bounds = UIScreen.main.nativeBounds
            var found: [String: Json] = [
                "build": .object([
                    "machine": .string(Self.machine()), "os_version": .string(device.systemVersion),
                    "os_build": .string(Self.sysctl("kern.osversion") ?? ""),
                ]),
                "screen": .object([
                    "width": .int(Int64(bounds.width)), "height": .int(Int64(bounds.height)),
                    "scale": .double(Double(UIScreen.main.nativeScale)),
                ]),
                "font_scale": .double(Double(UIFontMetrics(forTextStyle: .body).scaledValue(for: 100) / 100)),
                "app": .object([
                    "package": .string(Bundle.main.bundleIdentifier ?? ""),
                    "version": .string(Bundle.main.object(forInfoDictionaryKey: "CFBundleVersion") as? String ?? ""),
                ]),
            ]
            if let id = device.identifierForVendor { found["identifier_for_vendor"] = .string(id.uuidString) }
            switch Bundle.main.object(forInfoDictionaryKey: "UIUserInterfaceStyle") as? String {
            case "Dark": found["night_mode"] = .string("yes")
            case "Light": found["night_mode"] = .string("no")
            default: break
            }
            return found
        }

        private static func machine() -> String {
            if let simulated = ProcessInfo.processInfo.environment["SIMULATOR_MODEL_IDENTIFIER"] { return simulated }
            return sysctl("hw.machine") ?? ""
        }

        private static func sysctl(_ name: String) -> String? {
            var size = 0
            guard sysctlbyname(name, nil, &size, nil, 0) == 0, size > 0 else { return nil }
            var bytes = [CChar](repeating: 0, count: size)
            guard sysctlbyname(name, &bytes, &size, nil, 0) == 0 else { return nil }
            return String(cString: bytes)
        }

        func flags() async -> (set: [String], failed: [String]) {
            (IntegrityChecks(options: options).all().filter { $0.value() }.map(\.key).sorted(), [])
        }
    }

    /// The Keychain: of this device alone, kept when the app is removed.
    struct KeychainStore: Store {
        private func query(_ name: String) -> [CFString: Any] {
            [kSecClass: kSecClassGenericPassword, kSecAttrService: "svc-visitor", kSecAttrAccount: name]
        }

        func read(_ name: String) throws -> String? {
            var wanted = query(name)
            wanted[kSecReturnData] = true
            var found: CFTypeRef?
            let status = SecItemCopyMatching(wanted as CFDictionary, &found)
            if status == errSecItemNotFound { return nil }
            guard status == errSecSuccess, let data = found as? Data else { throw KeychainError(status: status) }
            return String(data: data, encoding: .utf8)
        }

        func write(_ name: String, _ text: String) throws {
            try delete(name)
            var added = query(name)
            added[kSecValueData] = Data(text.utf8)
            added[kSecAttrAccessible] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
            added[kSecAttrSynchronizable] = false
            let status = SecItemAdd(added as CFDictionary, nil)
            guard status == errSecSuccess else { throw KeychainError(status: status) }
        }

        func delete(_ name: String) throws {
            let status = SecItemDelete(query(name) as CFDictionary)
            guard status == errSecSuccess || status == errSecItemNotFound else { throw KeychainError(status: status) }
        }
    }

    struct KeychainError: Error {
        let status: OSStatus
    }

    struct AppAttest: AttestationKeys {
        struct Unavailable: Error {}

        var isSupported: Bool {
            guard #available(iOS 14, *) else { return false }
            return DCAppAttestService.shared.isSupported && Bundle.main.bundlePath.hasSuffix(".app")
        }

        func generate() async throws -> String {
            guard #available(iOS 14, *) else { throw Unavailable() }
            return try await DCAppAttestService.shared.generateKey()
        }

        func attest(_ keyID: String, hash: [UInt8]) async throws -> [UInt8] {
            guard #available(iOS 14, *) else { throw Unavailable() }
            return Array(try await DCAppAttestService.shared.attestKey(keyID, clientDataHash: Data(hash)))
        }

        func assertion(_ keyID: String, hash: [UInt8]) async throws -> [UInt8] {
            guard #available(iOS 14, *) else { throw Unavailable() }
            return Array(try await DCAppAttestService.shared.generateAssertion(keyID, clientDataHash: Data(hash)))
        }
    }
#endif
