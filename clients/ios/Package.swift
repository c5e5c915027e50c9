// swift-tools-version:5.9
import PackageDescription

let strict: [SwiftSetting] = [.enableExperimentalFeature("StrictConcurrency")]

let package = Package(
    name: "SvcVisitor",
    platforms: [.iOS(.v13), .macOS(.v12)],
    products: [.library(name: "SvcVisitor", targets: ["SvcVisitor"])],
    targets: [
        // Everything but reading the device, the Keychain and DeviceCheck: builds on Linux, too.
        .target(name: "SvcVisitorCore", swiftSettings: strict),
        .target(
            name: "SvcVisitor",
            dependencies: ["SvcVisitorCore"],
            resources: [.copy("PrivacyInfo.xcprivacy")],
            swiftSettings: strict
        ),
        // build.sh copies the vectors there.
        .testTarget(name: "SvcVisitorCoreTests", dependencies: ["SvcVisitorCore"], resources: [.copy("vectors")]),
    ]
)
