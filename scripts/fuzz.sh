#!/usr/bin/env bash
# Fuzzes the receiving side of the wire format: scripts/fuzz.sh [SECONDS] [BUILD_FOLDER]
#
# Contract. Builds by itself with clang++ (CLANGXX names another one) and no preset. Seeds are
# tests/fuzz/corpus, which it holds against the tool that writes them; inputs that it finds stay in
# BUILD_FOLDER/found for the next run, and one that crashes in BUILD_FOLDER/crash-*. Exit 1 on a crash, a
# stale corpus, or no clang++.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
seconds="${1:-60}"
build="$(realpath -m "${2:-$root/build/fuzz}")"
clang="${CLANGXX:-clang++}"

if ! command -v "$clang" >/dev/null; then
  echo "scripts/fuzz.sh: no $clang; libFuzzer comes with clang (scripts/bootstrap.sh --all)" >&2
  exit 1
fi
mkdir -p "$build/include" "$build/found"
ln -sfn "$root" "$build/include/esker"
flags=(-std=c++20 -O1 -g -fno-omit-frame-pointer -Wall -Wextra -Wpedantic -Wshadow -Wconversion
       -I"$root/include" -I"$build/include" -fno-sanitize-recover=all)

launcher=()
if command -v ccache >/dev/null; then launcher=(ccache); fi
# build_program NAME "FLAG..." SOURCE...: each source by a call of its own, which ccache remembers, and all at once.
build_program() {
  local name="$1" own objects=() processes=() source process
  read -ra own <<<"$2"
  shift 2
  for source; do
    objects+=("$build/$name.${source//\//_}.o")
    "${launcher[@]}" "$clang" "${flags[@]}" "${own[@]}" -c "$source" -o "${objects[-1]}" &
    processes+=($!)
  done
  for process in "${processes[@]}"; do wait "$process"; done
  "$clang" "${flags[@]}" "${own[@]}" "${objects[@]}" -o "$build/$name" -lfmt
}

cd "$root"
build_program make_corpus "" tests/fuzz/make_corpus.cpp
rm -rf "$build/corpus"
"$build/make_corpus" "$build/corpus"
if ! diff -rq "$build/corpus" "$root/tests/fuzz/corpus"; then
  echo "scripts/fuzz.sh: the seeds differ from what make_corpus writes: cp $build/corpus/* tests/fuzz/corpus/" >&2
  exit 1
fi

sources=(aggregator/wire.cpp aggregator/node_buffers.cpp aggregator/trace.cpp device/cpu/ranges.cpp device/error.cpp net/apply.cpp
         net/apply_requests.cpp net/block_bounds.cpp tests/fuzz/frame_fuzzer.cpp)
build_program frame_fuzzer -fsanitize=fuzzer,address,undefined "${sources[@]}"

# Every seed once, then random ones: a crash on a seed is reported whatever the time.
"$build/frame_fuzzer" -runs=0 -artifact_prefix="$build/" "$root/tests/fuzz/corpus"
exec "$build/frame_fuzzer" -max_total_time="$seconds" -max_len=2048 -timeout=10 -use_value_profile=1 \
  -print_final_stats=1 -artifact_prefix="$build/" "$build/found" "$root/tests/fuzz/corpus"
