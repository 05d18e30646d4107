#!/bin/sh
# Installs what topsim needs, builds it and puts `topsim` on PATH and the Python module beside the system python3.
# Usage: sh install.sh [--prefix DIR] [--without-python] [--without-simgrid] [--build-only]
set -eu
cd "$(dirname "$0")"

prefix=/usr/local
python=1
simgrid=1
install=1
while [ $# -gt 0 ]; do
  case "$1" in
    --prefix) [ $# -gt 1 ] || { echo "error: --prefix needs a folder" >&2; exit 2; }; prefix=$2; shift ;;
    --prefix=*) prefix=${1#--prefix=} ;;
    --without-python) python=0 ;;
    --without-simgrid) simgrid=0 ;;
    --build-only) install=0 ;;
    -h|--help) sed -n '2,3s/^# //p' "$0"; exit 0 ;;
    *) echo "error: unknown option $1 (known: --prefix DIR, --without-python, --without-simgrid, --build-only)" >&2; exit 2 ;;
  esac
  shift
done

say() { printf '== %s\n' "$*"; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

packages="g++ cmake ninja-build pkg-config libboost-graph-dev nlohmann-json3-dev libtbb-dev libfmt-dev libcli11-dev
  libsqlite3-dev zlib1g-dev libprotobuf-dev protobuf-compiler"
[ $python = 0 ] || packages="$packages python3-dev pybind11-dev python3-numpy python3-pandas python3-matplotlib"
[ $simgrid = 0 ] || packages="$packages libsimgrid-dev"
# The report page's chart library comes from npm; where node is already there, Debian's npm stays away.
command -v npm >/dev/null 2>&1 || packages="$packages npm"

missing=""
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  say "installing Debian packages:$missing"
  as_root apt-get update -qq
  # shellcheck disable=SC2086
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

if [ -f sim/report/html/package-lock.json ]; then
  if (cd sim/report/html && [ -d node_modules/echarts ]) || (cd sim/report/html && npm ci --silent --no-audit --no-fund); then :; else
    say "npm could not fetch the chart library: --html will say what is missing; everything else works"
  fi
fi

say "building (release)"
cmake --preset release -DCMAKE_INSTALL_PREFIX="$prefix" \
  -DTOPSIM_PYTHON=$([ $python = 1 ] && echo ON || echo OFF) >/dev/null
cmake --build build/release -j "$(nproc)"

[ $install = 1 ] || exit 0
say "installing to $prefix"
if [ -w "$prefix" ] || { [ ! -e "$prefix" ] && mkdir -p "$prefix" 2>/dev/null; }; then
  cmake --install build/release >/dev/null
else
  as_root cmake --install build/release >/dev/null
fi
case ":$PATH:" in
  *":$prefix/bin:"*) say "done: topsim $("$prefix/bin/topsim" --version | head -n 1 | sed 's/^topsim //')" ;;
  *) say "done; put $prefix/bin on your PATH" ;;
esac
