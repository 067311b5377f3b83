#!/bin/sh
# Make an AppImage of the folder that packaging/build.py has laid out:  appimage.sh Inkling.AppDir Inkling.AppImage
# Needs appimagetool (from the AppImage project) and its run-time file, which no package registry carries.
set -eu
if ! command -v appimagetool >/dev/null; then
  echo "appimagetool is not installed: the folder $1 is complete, but it is not one file yet" >&2
  exit 3
fi
exec appimagetool --no-appstream "$1" "$2"
