#!/bin/sh
# Verifies a model, and that spin refutes each way of breaking it.
#
#     scripts/model/check.sh MODEL [DEFINITION...]     package_queue, task_exchange, graph_end, index_ring,
#                                                  pipeline_end, requests or doorbell
#
# A model names the ways of breaking it by its first #defines. One that has a claim `arrives` is searched for liveness,
# too. Exit status: 0 = the protocol holds in a full search and every broken one does not; 1 = otherwise, also
# when spin or a C compiler is missing.
set -eu

model=$(cd "$(dirname "$0")" && pwd)/${1:?usage: check.sh MODEL [DEFINITION...]}.pml
shift
definitions=$*  # such as -DITEMS=3

fail() {
  echo "check.sh: $*" >&2
  exit 1
}
command -v spin >/dev/null || fail "spin is not installed (Debian: apt-get install spin)"
command -v "${CC:=cc}" >/dev/null || fail "no C compiler '$CC'"

[ -f "$model" ] || fail "there is no model $model"
broken=$(sed -n '/^#ifndef BROKEN/q; s/^#define \([A-Z_]*\) [0-9]* .*/\1/p' "$model")
claims=safety
if grep -q '^ltl arrives' "$model"; then claims="safety liveness"; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# A model that has not changed is not compiled again where there is ccache.
ccache=$(command -v ccache || true)
build_pan() {
  $ccache "$CC" $optimise -w "$@" -c pan.c
  "$CC" -o pan pan.o
}

# verify CLAIM [DEFINITION...]: one search; its report is in `report`. Liveness is under weak fairness, which
# costs a copy of the states a process: it goes two rounds of the ring (each slot reused once), safety three.
verify() {
  claim=$1
  shift
  packages=3
  [ "$claim" = safety ] || packages=2
  # shellcheck disable=SC2086
  spin -a "-DPACKAGES=$packages" $definitions "$@" "$model" >spin.out || fail "spin rejects the model: $(cat spin.out)"
  if [ "$claim" = safety ]; then
    build_pan -DSAFETY -DNOCLAIM
    ./pan -m100000 >report
  else
    build_pan -DNFAIR=3
    ./pan -a -f -m100000 >report
  fi
}
full_search() { ! grep -q -e 'Search not completed' -e 'max search depth too small' -e 'out of memory' report; }

optimise=-O2
for claim in $claims; do
  verify "$claim"
  { grep -q 'errors: 0' report && full_search; } || fail "the protocol, $claim: $(cat report)"
  echo "protocol, $claim: no error in $(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' report) states"
done

optimise=-O0  # refuted in less time than it takes to optimise
for variant in $broken; do
  for claim in $claims; do
    verify "$claim" "-DBROKEN=$variant"
    ! grep -q 'errors: [1-9]' report || break
  done
  grep -q 'errors: [1-9]' report || fail "$variant is not refuted: $(cat report)"
  echo "$variant: refuted, $claim: $(sed -n 's/^pan:[0-9]*: \(.*\) (at depth.*/\1/p' report)"
done
