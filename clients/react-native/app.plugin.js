/**
 * Config plugin for Expo, by `expo prebuild`: in app.json, `"plugins": [["@svc/react-native", { "maven": "../svc/dist/maven" }]]`.
 * `maven` is the repository that has `svc-android`: a folder, from the folder of the app, or an address. Where it is an address
 * that everybody has in their builds already, leave it out. There is nothing to configure for iOS.
 */
const MARK = "// @svc/react-native";

/** `android/build.gradle` with the repository; `folder` is the app's. */
function withRepository(gradle, maven) {
  const kept = gradle
    .split("\n")
    .filter((line) => !line.includes(MARK))
    .join("\n");
  if (!maven) return kept;
  const place = /allprojects\s*\{\s*repositories\s*\{/;
  if (!place.test(kept)) throw new Error("@svc/react-native: android/build.gradle has no allprojects { repositories { ... } } to add a repository to.");
  // From android/, where Gradle reads it.
  const at = /^[a-z][a-z0-9+.-]*:|^\//i.test(maven) ? JSON.stringify(maven) : `rootProject.file(${JSON.stringify(`../${maven}`)})`;
  return kept.replace(place, (found) => `${found}\n        maven { url = uri(${at}) } ${MARK}`);
}

module.exports = function withSvc(config, { maven } = {}) {
  // Of the app: this package depends on nothing.
  const { withProjectBuildGradle } = require(require.resolve("expo/config-plugins", { paths: [process.cwd()] }));
  return withProjectBuildGradle(config, (given) => {
    if (given.modResults.language !== "groovy") throw new Error("@svc/react-native: android/build.gradle is not in Groovy.");
    given.modResults.contents = withRepository(given.modResults.contents, maven);
    return given;
  });
};
module.exports.withRepository = withRepository;
