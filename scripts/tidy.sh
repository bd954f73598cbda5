#!/usr/bin/env bash
# clang-tidy in a compiler's place: scripts/tidy.sh COMPILER_OPTION... -c FILE -o OUTPUT. Prints findings alone; exit 1 if
# there are any, else it writes OUTPUT. So ccache, for which it also preprocesses, remembers sources without findings.
set -euo pipefail
if [[ " $* " == *" -E "* ]]; then exec clang++ "$@"; fi

options=()
while (($#)); do
  case "$1" in
    -c) shift ;;
    -o) output="$2"; shift 2 ;;
    *.cpp | *.cxx) file="$1"; shift ;;
    *) options+=("$1"); shift ;;
  esac
done
# Its standard error counts what it has suppressed in other people's headers, thousands a file.
errors="$(mktemp)"
trap 'rm -f "$errors"' EXIT
clang-tidy --quiet --warnings-as-errors='*' "$file" -- "${options[@]}" 2>"$errors" ||
  { grep -v 'warnings\? generated\.$' "$errors" >&2; exit 1; }
echo "no findings" >"$output"
