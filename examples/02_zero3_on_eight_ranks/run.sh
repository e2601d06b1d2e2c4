#!/usr/bin/env bash
# Trains with ZeRO-3 on eight ranks of this machine (two cores are enough), then samples from the model.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${STRATA_BIN:-build/bin}
out=${1:-out/example-02}
"$bin/mlaunch" -np 8 train --zero 3 --param-persistence-threshold 0 --model gpt2-tiny --sequence-length 64 --micro-batch 2 \
  --steps 200 --learning-rate 3e-3 --trace "$out.trace.json" --metrics "$out.jsonl" --output "$out"
"$bin/generate" --model "$out" --prompt "The " --tokens 120
echo "open $out.trace.json in ui.perfetto.dev: gathers run on the communication track while the compute track works"
