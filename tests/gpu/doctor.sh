#!/usr/bin/env bash
# What the doctor says on a machine with a GPU, held against nvidia-smi and torch themselves. Under a minute.
# CUBLAME names the binary; PYTHON, else python3, is an interpreter with torch.
set -uo pipefail
cublame=${CUBLAME:?the binary} python=${PYTHON:-python3} passed=0 failed=0
check() { # NAME EXPECTED FOUND
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); echo "ok      $1: $3"; else failed=$((failed + 1)); echo "FAILED  $1: $3 where $2 was expected"; fi
}
of() { "$python" -c "import json, sys; facts = json.load(sys.stdin); print($1)"; }
smi() { nvidia-smi --query-gpu="$1" --format=csv,noheader | head -n 1; }

"$cublame" doctor --python "$python"
echo
json=$("$cublame" doctor --json --python "$python")
check "driver" "$(smi driver_version)" "$(of 'facts["driver"]["version"]' <<<"$json")"
check "GPUs" "$(nvidia-smi -L | wc -l)" "$(of 'len(facts["driver"]["library"]["gpus"])' <<<"$json")"
check "name" "$(smi name)" "$(of 'facts["driver"]["library"]["gpus"][0]["name"]' <<<"$json")"
check "capability" "$(smi compute_cap)" "$(of 'facts["driver"]["library"]["gpus"][0]["capability"]' <<<"$json")"
check "memory as torch has it" "$("$python" -c 'import torch; print(torch.cuda.get_device_properties(0).total_memory)')" \
  "$(of 'facts["driver"]["library"]["gpus"][0]["memory"]' <<<"$json")"
check "architectures as torch has them" "$("$python" -c 'import torch; print(torch.cuda.get_arch_list())')" \
  "$(of 'facts["interpreter"]["architectures"]' <<<"$json")"
check "faults" "[]" "$(of '[it["id"] for it in facts["findings"] if it["level"] == "fault"]' <<<"$json")"
check "hidden GPUs are said" "['no-device', 'CUDA_VISIBLE_DEVICES']" \
  "$(CUDA_VISIBLE_DEVICES= "$cublame" doctor --json --python "$python" | of '[it["id"] for it in facts["findings"] if it["id"] in ("no-device", "CUDA_VISIBLE_DEVICES")]')"
before=$(nvidia-smi --query-compute-apps=pid --format=csv,noheader | sort)
"$cublame" doctor >/dev/null
check "no process is left on the GPU" "$before" "$(nvidia-smi --query-compute-apps=pid --format=csv,noheader | sort)"
echo "time to ask the driver alone:"
time "$cublame" __driver
echo
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
