#!/usr/bin/env bash
# A DeepSpeed JSON as it is: first checked and printed resolved, then used.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${STRATA_BIN:-build/bin}
config=examples/03_existing_deepspeed_json/ds_config.json
"$bin/train" --check-config "$config" --world-size 2
"$bin/mlaunch" --num_gpus 2 train --deepspeed "$config" --model llama-tiny --sequence-length 64 --max_steps 20
