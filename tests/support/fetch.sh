#!/usr/bin/env bash
# What ./dev setup fetches besides installed packages: promtool, and the npm packages of the Node worker and of its sample app.
# Does nothing, quickly, when all is there. Runs from any folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

say() { printf '%s\n' "dev: $*"; }
fail() { printf '%s\n' "dev: $*" >&2; exit 1; }

# A program out of a package that is not installed, because its service would start with it, and with every boot.
fetch_promtool() {
  if command -v promtool >/dev/null || [[ -x build/tools/promtool ]]; then return 0; fi
  say "fetching promtool out of Debian's prometheus (19 MB)"
  mkdir -p build/tools/deb
  (cd build/tools/deb && apt-get -qq -o Acquire::Retries=3 -o APT::Sandbox::User="$(id -un)" download prometheus &&
    dpkg-deb -x prometheus_*.deb . && mv usr/bin/promtool .. && rm -rf ../deb) ||
    fail "promtool could not be fetched; put one into the path"
}

# npm writes its own list last, so one newer than the lock file stands for a finished and current installation.
is_current() { [[ $1/node_modules/.package-lock.json -nt $1/package-lock.json ]]; }

# fetch_npm FOLDER: exactly what the lock file says. Scripts of packages are not run: none of these needs one.
fetch_npm() {
  local folder=$1
  ! is_current "$folder" || return 0
  mkdir -p build
  (
    flock 9  # Two at once would take each other's files away.
    ! is_current "$folder" || exit 0
    say "fetching the npm packages of $folder"
    cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --prefer-offline --loglevel=error >/dev/null
  ) 9>build/npm.lock || fail "npm ci failed in $folder; its message is above"
}

fetch_promtool
fetch_npm worker-agent/node
fetch_npm docs/examples/node-app
