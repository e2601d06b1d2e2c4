// Reads a trainer state; what is accepted must read back the same.
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "train/checkpoint/trainer_state.h"

// Fault 18.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  using namespace strata::train;
  const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  TrainerState state;
  try {
    state = parse_trainer_state(text, "input");
  } catch (const strata::DataError&) {  // a refusal is fine
    return 0;
  }
  STRATA_CHECK(state.step >= 0 && state.global_batch >= 1 && state.data_digest.size() == 32);
  STRATA_CHECK(parse_trainer_state(to_text(state), "written") == state);
  return 0;
}
