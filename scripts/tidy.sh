#!/usr/bin/env bash
# clang-tidy on one source: scripts/tidy.sh BUILD_FOLDER FILE. Prints findings alone; exit 1 if there are any.
set -euo pipefail
# Its standard error counts what it has suppressed in other people's headers, thousands a file.
errors="$(mktemp)"
trap 'rm -f "$errors"' EXIT
clang-tidy -p "$1" --quiet --warnings-as-errors='*' "$2" 2>"$errors" || { grep -v 'warnings\? generated\.$' "$errors" >&2; exit 1; }
