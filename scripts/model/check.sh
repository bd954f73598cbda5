#!/bin/sh
# Verifies the model of the package queue, and that spin refutes each way of breaking it.
#
#     scripts/model/check.sh
#
# Exit status: 0 = the protocol holds in a full search and every broken one does not; 1 = otherwise, also
# when spin or a C compiler is missing.
set -eu

model=$(cd "$(dirname "$0")" && pwd)/package_queue.pml
broken="RELEASE_BEFORE_READ PUBLISH_BEFORE_WRITE NO_WAIT NO_ROUND RESERVE_IN_TWO_STEPS PEEK_IN_TWO_STEPS
        NO_RELEASE"

fail() {
  echo "check.sh: $*" >&2
  exit 1
}
command -v spin >/dev/null || fail "spin is not installed (Debian: apt-get install spin)"
command -v "${CC:=cc}" >/dev/null || fail "no C compiler '$CC'"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# verify CLAIM [DEFINITION...]: one search; its report is in `report`. Liveness is under weak fairness, which
# costs a copy of the states a process: it goes two rounds of the ring (each slot reused once), safety three.
verify() {
  claim=$1
  shift
  packages=3
  [ "$claim" = safety ] || packages=2
  spin -a "-DPACKAGES=$packages" "$@" "$model" >spin.out || fail "spin rejects the model: $(cat spin.out)"
  if [ "$claim" = safety ]; then
    "$CC" -O2 -w -DSAFETY -DNOCLAIM -o pan pan.c
    ./pan -m100000 >report
  else
    "$CC" -O2 -w -DNFAIR=3 -o pan pan.c
    ./pan -a -f -m100000 >report
  fi
}
full_search() { ! grep -q -e 'Search not completed' -e 'max search depth too small' -e 'out of memory' report; }

for claim in safety liveness; do
  verify "$claim"
  { grep -q 'errors: 0' report && full_search; } || fail "the protocol, $claim: $(cat report)"
  echo "protocol, $claim: no error in $(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' report) states"
done

for variant in $broken; do
  for claim in safety liveness; do
    verify "$claim" "-DBROKEN=$variant"
    ! grep -q 'errors: [1-9]' report || break
  done
  grep -q 'errors: [1-9]' report || fail "$variant is not refuted: $(cat report)"
  echo "$variant: refuted, $claim: $(sed -n 's/^pan:[0-9]*: \(.*\) (at depth.*/\1/p' report)"
done
