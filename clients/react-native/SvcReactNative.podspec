# Not built yet: sources only. The packed file has the Swift sources of the SDK in ios/sdk, and its privacy manifest in ios.
require "json"

package = JSON.parse(File.read(File.join(__dir__, "package.json")))

Pod::Spec.new do |s|
  s.name = "SvcReactNative"
  s.version = package["version"]
  s.summary = package["description"]
  s.license = package["license"]
  s.homepage = "https://svc.example"
  s.author = "svc"
  s.source = { :path => "." }
  s.platforms = { :ios => "15.1" }
  s.swift_version = "5.9"
  s.pod_target_xcconfig = { "DEFINES_MODULE" => "YES" }
  s.source_files = "ios/**/*.{h,mm,swift}"
  s.resource_bundles = { "SvcVisitor" => ["ios/PrivacyInfo.xcprivacy"] }
  install_modules_dependencies(s)
end
