#!/bin/sh
# Installs what the tests need, builds everything, runs every test and ends in one line: N passed, N failed.
# Usage: sh test.sh [--full]      --full adds the long campaigns (10,000 random scenarios, sanitizers)
set -eu
cd "$(dirname "$0")"

sh install.sh --build-only

packages="libgtest-dev libgmock-dev libbenchmark-dev clang-format chromium chromium-driver
  python3-jsonschema python3-networkx python3-distributed python3-nbformat python3-nbclient python3-ipykernel"
missing=""
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  echo "== installing Debian packages for the tests:$missing"
  as_root=""
  [ "$(id -u)" = 0 ] || as_root=sudo
  # shellcheck disable=SC2086
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

exec /usr/bin/python3 tests/run.py "$@"
