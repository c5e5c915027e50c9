// Not built or tested yet: see README.md.
#if canImport(UIKit) && canImport(DeviceCheck)
    import Foundation
    import MachO
    import SvcVisitorCore

    /// Integrity checks, by the names of their flags. All are hints: a person who controls the device can hide from code in the app.
    struct IntegrityChecks: Sendable {
        let expectedBundleID: String?
        let location: Shared<Bool>

        func all() -> [Source] {
            [
                Source("jailbroken") { .bool(canWriteOutside() || two(hasKnownPaths(), isLoaded(Self.jailbreakLibraries))) },
                Source("simulator") { .bool(isSimulator) },
                Source("frida") { .bool(isLoaded(["FridaGadget", "frida-agent"])) },
                Source("hooked") { .bool(isLoaded(["MobileSubstrate", "SubstrateLoader", "libsubstitute", "ellekit", "libhooker"])) },
                Source("debugger") { .bool(isTraced()) },
                Source("app_tampering") { .bool(expectedBundleID.map { $0 != Bundle.main.bundleIdentifier } ?? false) },
                Source("vpn_active") { .bool(isVpn()) },
                Source("location_spoofing") { .bool(location.get() ?? false) },
            ]
        }

        private static let paths = [
            "/Applications/Cydia.app", "/Applications/Sileo.app", "/Library/MobileSubstrate/MobileSubstrate.dylib", "/bin/bash",
            "/usr/sbin/sshd", "/etc/apt", "/private/var/lib/apt", "/var/jb", "/usr/libexec/cydia",
        ]
        private static let jailbreakLibraries = ["MobileSubstrate", "libhooker", "ellekit", "TweakInject", "rocketbootstrap"]

        private func two(_ traits: Bool...) -> Bool { traits.filter { $0 }.count >= 2 }

        private func hasKnownPaths() -> Bool { Self.paths.contains { access($0, F_OK) == 0 } }

        private func canWriteOutside() -> Bool {
            #if targetEnvironment(simulator)
                return false
            #else
                let path = "/private/svc-\(UInt32.random(in: .min ... .max))"
                let file = open(path, O_CREAT | O_WRONLY, 0o600)
                guard file >= 0 else { return false }
                close(file)
                unlink(path)
                return true
            #endif
        }

        private func isLoaded(_ names: [String]) -> Bool {
            (0..<_dyld_image_count()).contains { index in
                guard let image = _dyld_get_image_name(index) else { return false }
                let path = String(cString: image)
                return names.contains { path.contains($0) }
            }
        }

        private var isSimulator: Bool {
            #if targetEnvironment(simulator)
                return true
            #else
                return false
            #endif
        }

        private func isTraced() -> Bool {
            var info = kinfo_proc()
            var size = MemoryLayout<kinfo_proc>.stride
            var name: [Int32] = [CTL_KERN, KERN_PROC, KERN_PROC_PID, getpid()]
            return sysctl(&name, 4, &info, &size, nil, 0) == 0 && info.kp_proc.p_flag & P_TRACED != 0
        }

        private func isVpn() -> Bool {
            guard let settings = CFNetworkCopySystemProxySettings()?.takeRetainedValue() as? [String: Any],
                let scoped = settings["__SCOPED__"] as? [String: Any]
            else { return false }
            return scoped.keys.contains { key in ["utun", "ipsec", "ppp", "tap"].contains { key.hasPrefix($0) } }
        }
    }
#endif
