// Entry point of libFuzzer; STRATA_FUZZ_TARGET is one function of fuzz_targets.h.
#include <cstdint>

#include "train/fuzz/fuzz_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strata::train::STRATA_FUZZ_TARGET(std::as_bytes(std::span(data, size)));
  return 0;
}
