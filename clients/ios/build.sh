#!/bin/sh
# Builds and tests what of the Swift package needs no framework of Apple's, on Linux or a Mac. Ends with 2 where there is no Swift.
set -eu
cd "$(dirname "$0")"
if ! command -v swift > /dev/null; then
  echo "There is no Swift here: install a toolchain of 5.9 or later (swift.org), and run this again. Nothing was built." >&2
  exit 2
fi
rm -rf Tests/SvcVisitorCoreTests/vectors
mkdir Tests/SvcVisitorCoreTests/vectors
cp ../vectors/*.json Tests/SvcVisitorCoreTests/vectors/
swift --version
swift build --target SvcVisitorCore
swift test --filter SvcVisitorCoreTests
