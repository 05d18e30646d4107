#!/bin/sh
# Installs what topsim needs, builds it and puts `topsim` on PATH and the Python module beside the system python3.
# Usage: sh install.sh [--prefix DIR] [--without-python] [--without-simgrid] [--build-only] [--for-tests]
# --build-only leaves the program in build/release; --for-tests does so and brings what the tests need (see test.sh).
set -eu
cd "$(dirname "$0")"

prefix=/usr/local
python=1
simgrid=1
install=1
tests=0
fail() { echo "error: $1" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case "$1" in
    --prefix) [ $# -gt 1 ] || fail "--prefix needs a folder"; prefix=$2; shift ;;
    --prefix=*) prefix=${1#--prefix=} ;;
    --without-python) python=0 ;;
    --without-simgrid) simgrid=0 ;;
    --build-only) install=0 ;;
    --for-tests) install=0; tests=1 ;;
    -h|--help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
    *) fail "unknown option $1; sh install.sh --help lists the known ones" ;;
  esac
  shift
done
[ -n "$prefix" ] || fail "--prefix needs a folder"
case "$prefix" in /*) ;; *) prefix=$(pwd)/$prefix ;; esac

say() { printf '== %s\n' "$*"; }
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null 2>&1; then sudo "$@"
  else fail "this needs root and there is no sudo: $*"
  fi
}

packages="g++ cmake ninja-build pkg-config libboost-graph-dev nlohmann-json3-dev libtbb-dev libfmt-dev libcli11-dev
  libsqlite3-dev zlib1g-dev"
[ $python = 0 ] || packages="$packages python3-dev pybind11-dev python3-numpy python3-pandas python3-matplotlib"
[ $simgrid = 0 ] || packages="$packages libsimgrid-dev"
[ $tests = 0 ] || packages="$packages libgtest-dev libgmock-dev libbenchmark-dev protobuf-compiler clang-format groff-base chromium chromium-driver
  python3-jsonschema python3-networkx python3-distributed python3-nbformat python3-nbclient python3-ipykernel python3-tqdm"
# The report page's chart library and what packs it come from npm; where node is already there, Debian's npm stays away.
command -v npm >/dev/null 2>&1 || packages="$packages npm"

if command -v dpkg-query >/dev/null 2>&1; then
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
else
  say "no Debian packages here; the build needs what Debian calls: $(echo "$packages" | tr -s "\n ")"
fi

page=sim/report/html  # fetched again when the lock is newer than what is there
if [ -f $page/package-lock.json ] && [ ! $page/node_modules/.package-lock.json -nt $page/package-lock.json ]; then
  say "fetching the chart library of the report page (npm)"
  (cd $page && npm ci --silent --no-audit --no-fund --ignore-scripts) ||
    say "npm could not fetch it: --html will say what is missing; everything else works"
fi

say "building in build/release (the first time takes some minutes)"
on_off() { if [ "$1" = 1 ]; then echo ON; else echo OFF; fi; }
cmake --preset release -DCMAKE_INSTALL_PREFIX="$prefix" -DTOPSIM_PYTHON="$(on_off $python)" \
  -DTOPSIM_SIMGRID="$(on_off $simgrid)" >/dev/null
cmake --build build/release -j "$(nproc)" --target program

[ $install = 1 ] || exit 0
say "installing to $prefix"
if mkdir -p "$prefix" 2>/dev/null && [ -w "$prefix" ]; then
  cmake --install build/release >/dev/null
else
  as_root cmake --install build/release >/dev/null
fi
"$prefix/bin/topsim" doctor >/dev/null || { "$prefix/bin/topsim" doctor || true; fail "the installation is not sound"; }
say "done: $("$prefix/bin/topsim" --version) in $prefix/bin"
case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *) say "put it on your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
