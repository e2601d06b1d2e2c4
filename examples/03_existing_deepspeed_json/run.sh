#!/usr/bin/env bash
# Checks a DeepSpeed JSON as it is, prints it resolved, and then trains with it.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${STRATA_BIN:-build/bin}
config=examples/03_existing_deepspeed_json/ds_config.json
"$bin/train" --check-config "$config" --world-size 2
"$bin/mlaunch" --num_gpus 2 train --deepspeed "$config" --model llama-tiny --sequence-length 64 --max_steps 20
