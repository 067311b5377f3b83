#!/bin/sh
# Sign Inkling.app, put it into a disk image, and have Apple notarise the image:
#   sh packaging/macos/dmg.sh dist/inkling-0.1.0-macos-arm64/Inkling.app dist/inkling-0.1.0-macos-arm64.dmg
# SIGN_AS        name of a "Developer ID Application" certificate in the keychain. Without it the app is signed for
#                this machine only, and others must right-click and choose Open the first time.
# NOTARY_PROFILE name under which `xcrun notarytool store-credentials` has kept the account. Without it the image is
#                not notarised.
set -eu
app=$1
image=$2
here=$(cd "$(dirname "$0")" && pwd)

# From the inside out: a signature covers what lies below it.
sign() {
  codesign --force --options runtime --entitlements "$here/entitlements.plist" \
    --sign "${SIGN_AS:--}" "$@"
}
find "$app/Contents" -type f \( -name '*.so' -o -name '*.dylib' \) -exec codesign --force --options runtime \
  --sign "${SIGN_AS:--}" {} +
find "$app/Contents" -type d -name '*.framework' -exec codesign --force --options runtime --sign "${SIGN_AS:--}" {} +
sign "$app/Contents/MacOS/inkling"
sign "$app"
codesign --verify --deep --strict --verbose=2 "$app"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -R "$app" "$folder/"
ln -s /Applications "$folder/Applications"
rm -f "$image"
hdiutil create -volname Inkling -srcfolder "$folder" -format ULFO "$image"

if [ -n "${SIGN_AS:-}" ]; then
  codesign --force --timestamp --sign "$SIGN_AS" "$image"
fi
if [ -n "${NOTARY_PROFILE:-}" ]; then
  xcrun notarytool submit "$image" --keychain-profile "$NOTARY_PROFILE" --wait
  xcrun stapler staple "$image"
  spctl --assess --type open --context context:primary-signature --verbose "$image"
fi
