// Not built or tested yet: see README.md.
#if canImport(UIKit) && canImport(DeviceCheck)
    import Foundation
    import Security
    import SvcVisitorCore

    /// Whether the chain that the system validated has a pinned key: never what the peer sent beside it.
    struct Pins: Sendable {
        let keys: Set<String>

        /// `nil` where the challenge is about something else; `false` also for a chain that is not trusted at all, whose error
        /// the system tells.
        func holds(_ challenge: URLAuthenticationChallenge) -> Bool? {
            guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust,
                let trust = challenge.protectionSpace.serverTrust, SecTrustEvaluateWithError(trust, nil)
            else { return nil }
            return (0..<SecTrustGetCertificateCount(trust)).contains { index in
                guard let certificate = SecTrustGetCertificateAtIndex(trust, index), let key = SecCertificateCopyKey(certificate),
                    let info = Self.info(key)
                else { return false }
                return keys.contains(Texts.base64(Texts.sha256(info)))
            }
        }

        private static func info(_ key: SecKey) -> [UInt8]? {
            guard let attributes = SecKeyCopyAttributes(key) as? [CFString: Any], let kind = attributes[kSecAttrKeyType] as? String,
                let bits = attributes[kSecAttrKeySizeInBits] as? Int, let bytes = SecKeyCopyExternalRepresentation(key, nil) as Data?
            else { return nil }
            if kind == kSecAttrKeyTypeRSA as String { return PublicKeyInfo.ofRSA(Array(bytes)) }
            if kind == kSecAttrKeyTypeECSECPrimeRandom as String { return PublicKeyInfo.ofEC(Array(bytes), bits: bits) }
            return nil
        }
    }
#endif
