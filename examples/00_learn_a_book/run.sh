#!/usr/bin/env bash
# Trains a Llama of 0.8 million parameters on "Alice's Adventures in Wonderland" byte by byte for a minute, then samples from it.
#   run.sh [OUT [flags for train]]      of two equal flags the last one counts
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${STRATA_BIN:-build/bin}
out=${1:-out/example-00}
"$bin/mlaunch" -np 2 train --zero 3 --model llama-bytes-1m --sequence-length 128 --micro-batch 4 --steps 800 \
  --learning-rate 3e-3 --scheduler cosine --warmup-steps 50 --betas 0.9 0.99 --threads 1 --seed 1 --metrics "$out.jsonl" --output "$out" "${@:2}"
printf '\n== loss\n'
python3 - "$out.jsonl" <<'PYTHON'
import json, sys
rows = [row for row in map(json.loads, open(sys.argv[1])) if "loss" in row]
for row in rows[:: max(1, len(rows) // 10)] + rows[-1:]:
    print("step %5d  loss %.3f  %s" % (row["step"], row["loss"], "#" * round(row["loss"] * 10)))
PYTHON
printf '\n== a sample from %s, a Hugging Face directory\n' "$out"
"$bin/generate" --model "$out" --prompt "  Alice " --tokens 400 --temperature 0.6 --seed 1
