#!/usr/bin/env bash
# Trains another program's model family on the bundled text with ZeRO-2 on two ranks, resumes from the checkpoint of step 10, and writes a sample.
#   run.sh [OUT]
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${STRATA_BIN:-build/bin}
out=${1:-out/example-04}
flags=(--model examples/04_your_own_model/config.json --zero 2 --sequence-length 32 --micro-batch 4
  --steps 20 --learning-rate 1e-2 --threads 1 --save-every 10)
"$bin/mlaunch" -np 2 "$bin/example_own_model" train "${flags[@]}" --metrics "$out.jsonl" --output "$out"
printf '\n== resumed\n'
"$bin/mlaunch" -np 2 "$bin/example_own_model" train "${flags[@]}" --resume "$out/step-00000010" \
  --metrics "$out-again.jsonl" --output "$out-again"
printf '\n== a sample\n'
"$bin/example_own_model" generate --model "$out" --prompt "Alice" --tokens 60 --temperature 0.5
