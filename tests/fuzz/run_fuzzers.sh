#!/usr/bin/env bash
# Runs built fuzzers: run_fuzzers.sh SECONDS [name...], from the project's root. ./dev fuzz and ./dev test build them first.
# Each fuzzer works on a copy of its committed corpus; the exit status is 1 when any of them failed.
set -euo pipefail

# run_one_fuzzer PROGRAM SECONDS SCRATCH: one line on stdout, the log in SCRATCH. Zero seconds replays the corpus only.
run_one_fuzzer() {
  local program=$1 seconds=$2 scratch=$3
  local name=${program##*/}
  local corpus=tests/fuzz/corpus/${name#fuzz_} log=$scratch/log limit status=0
  mkdir -p "$scratch/corpus" build/fuzz/artifacts
  if ! cp -R "$corpus/." "$scratch/corpus/" 2>/dev/null; then
    echo "fuzz $name FAILED: it has no committed corpus in $corpus"
    return 1
  fi
  local seeds=${program%/*}/seeds/${name#fuzz_}  # made from examples when the fuzzer was built
  [[ ! -d $seeds ]] || cp -R "$seeds/." "$scratch/corpus/"
  if ((seconds == 0)); then limit=-runs=0; else limit=-max_total_time=$seconds; fi
  "$program" "$limit" -print_final_stats=1 -artifact_prefix="build/fuzz/artifacts/$name-" "$scratch/corpus" >"$log" 2>&1 || status=$?
  local runs
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if ((status == 0)); then
    echo "fuzz $name clean: ${runs:-0} runs, $(find "$scratch/corpus" -type f | wc -l) inputs in the corpus at the end"
  else
    tail -n 40 "$log"
    local artifact
    artifact=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
    echo "fuzz $name FAILED (exit $status), reproduce with: $program ${artifact:-(no input was written; log above)}"
    return 1
  fi
}

# run_fuzzers SECONDS [name...]: two at a time, because each keeps a core busy; 1 when any of them failed.
run_fuzzers() {
  local seconds=$1
  shift
  local -a fuzzers=()
  local program name
  if (($# > 0)); then
    for name in "$@"; do fuzzers+=("build/fuzz/tests/fuzz/fuzz_${name#fuzz_}"); done
  else
    for program in build/fuzz/tests/fuzz/fuzz_*; do [[ -f $program && -x $program ]] && fuzzers+=("$program"); done
  fi
  ((${#fuzzers[@]} > 0)) || { echo "dev: no fuzzer was built" >&2; return 1; }
  local scratch=build/fuzz/scratch failed=0 running=0
  rm -rf "$scratch"
  for program in "${fuzzers[@]}"; do
    if [[ ! -x $program ]]; then
      echo "dev: there is no fuzzer '${program##*/fuzz_}'" >&2
      failed=1
      continue
    fi
    if ((running >= 2)); then
      wait -n || failed=1
      running=$((running - 1))
    fi
    run_one_fuzzer "$program" "$seconds" "$scratch/${program##*/}" &
    running=$((running + 1))
  done
  while ((running > 0)); do
    wait -n || failed=1
    running=$((running - 1))
  done
  return "$failed"
}

run_fuzzers "$@"
