#!/bin/sh
# Installs what the tests need, builds everything, runs every test and ends in one line: N passed, N failed.
# Usage: sh test.sh [--full]      --full adds the long campaigns (10,000 random scenarios, sanitizers)
set -eu
cd "$(dirname "$0")"
sh install.sh --for-tests
TOPSIM_ALL_INSTALLED=1 exec /usr/bin/python3 tests/run.py "$@"
