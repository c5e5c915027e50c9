// Not built or tested yet: see README.md.
#if canImport(UIKit) && canImport(DeviceCheck)
    import DeviceCheck
    import Foundation
    import SvcVisitorCore
    import UIKit

    /// What the engine needs of iOS.
    final class AppleHost: PhoneHost {
        /// Whether the app's location is simulated.
        let location = Shared<Bool>()
        let version = SvcVisitor.version
        let store: any Store = KeychainStore()
        let keys: any AttestationKeys = AppAttest()
        let userAgent: String
        private let options: SvcOptions

        init(_ options: SvcOptions) {
            self.options = options
            let system = ProcessInfo.processInfo.operatingSystemVersion
            let bundle = Bundle.main
            let build = bundle.object(forInfoDictionaryKey: "CFBundleVersion") as? String ?? "0"
            let named = "svc-ios/\(SvcVisitor.version) (iOS \(system.majorVersion).\(system.minorVersion); \(bundle.bundleIdentifier ?? "app")/\(build))"
            userAgent = String(String.UnicodeScalarView(named.unicodeScalars.filter { (32...126).contains($0.value) }))
        }

        func nowMs() -> Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

        func elapsedMs() -> Int64 { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) }

        func random(_ count: Int) -> [UInt8] {
            var generator = SystemRandomNumberGenerator()
            return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        }

        func log(_ line: String) {
            if options.debugLog { NSLog("svc: %@", line) }
        }

        func sources(minimal: Bool) -> [Source] {
            let identifying = [
                Source("identifier_for_vendor") { await Self.vendorID() },
                Source("build", isConstant: true) { await Self.build() },
                Source("app", isConstant: true) {
                    let version = Bundle.main.object(forInfoDictionaryKey: "CFBundleVersion") as? String ?? ""
                    return .object(["package": .string(Bundle.main.bundleIdentifier ?? ""), "version": .string(version)])
                },
            ]
            if minimal { return identifying }
            return identifying + [
                Source("cores", isConstant: true) { .int(Int64(ProcessInfo.processInfo.processorCount)) },
                Source("memory", isConstant: true) { .int(Int64(clamping: ProcessInfo.processInfo.physicalMemory)) },
                Source("screen", isConstant: true) { await Self.screen() },
                Source("languages") { .list(Locale.preferredLanguages.map { .string($0) }) },
                Source("timezone") { .string(TimeZone.current.identifier) },
                Source("font_scale") { await Self.fontScale() },
                Source("clock_24") { .bool(!(DateFormatter.dateFormat(fromTemplate: "j", options: 0, locale: .current) ?? "").contains("a")) },
                Source("night_mode", isConstant: true) { Self.nightMode() },
            ]
        }

        // What stands on the main thread, each by itself: an app that is busy there costs these fields alone.

        @MainActor private static func vendorID() -> Json { UIDevice.current.identifierForVendor.map { .string($0.uuidString) } ?? .null }

        @MainActor private static func build() -> Json {
            .object([
                "machine": .string(machine()), "os_version": .string(UIDevice.current.systemVersion),
                "os_build": .string(sysctl("kern.osversion") ?? ""),
            ])
        }

        @MainActor private static func screen() -> Json {
            let bounds = UIScreen.main.nativeBounds
            return .object([
                "width": .int(Int64(bounds.width)), "height": .int(Int64(bounds.height)),
                "scale": .double(Double(UIScreen.main.nativeScale)),
            ])
        }

        @MainActor private static func fontScale() -> Json { .double(Double(UIFontMetrics(forTextStyle: .body).scaledValue(for: 100) / 100)) }

        private static func nightMode() -> Json {
            switch Bundle.main.object(forInfoDictionaryKey: "UIUserInterfaceStyle") as? String {
            case "Dark": return .string("yes")
            case "Light": return .string("no")
            default: return .null
            }
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

        func checks() -> [Source] { IntegrityChecks(expectedBundleID: options.expectedBundleID, location: location).all() }
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
            let content: [CFString: Any] = [kSecValueData: Data(text.utf8), kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly]
            // What is there stays there until what is new is: a process may end between two calls.
            var status = SecItemUpdate(query(name) as CFDictionary, content as CFDictionary)
            if status == errSecItemNotFound {
                let added = query(name).merging(content) { $1 }.merging([kSecAttrSynchronizable: false]) { $1 }
                status = SecItemAdd(added as CFDictionary, nil)
            }
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
        var isSupported: Bool {
            guard #available(iOS 14, *) else { return false }
            return DCAppAttestService.shared.isSupported && Bundle.main.bundlePath.hasSuffix(".app")
        }

        func generate() async throws -> String {
            guard #available(iOS 14, *) else { throw AttestationFault.unavailable }
            return try await told { try await DCAppAttestService.shared.generateKey() }
        }

        func attest(_ keyID: String, hash: [UInt8]) async throws -> [UInt8] {
            guard #available(iOS 14, *) else { throw AttestationFault.unavailable }
            return Array(try await told { try await DCAppAttestService.shared.attestKey(keyID, clientDataHash: Data(hash)) })
        }

        func assertion(_ keyID: String, hash: [UInt8]) async throws -> [UInt8] {
            guard #available(iOS 14, *) else { throw AttestationFault.unavailable }
            return Array(try await told { try await DCAppAttestService.shared.generateAssertion(keyID, clientDataHash: Data(hash)) })
        }

        @available(iOS 14, *)
        private func told<Value>(_ work: () async throws -> Value) async throws -> Value {
            do {
                return try await work()
            } catch let error as DCError where error.code == .invalidKey || error.code == .invalidInput {
                throw AttestationFault.rejected
            } catch let error as DCError where error.code == .serverUnavailable {
                throw AttestationFault.unavailable
            }
        }
    }
#endif
