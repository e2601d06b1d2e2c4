#include "machine/hardware_suggestion.h"

#include <gtest/gtest.h>

#include "machine/hardware_table.h"

namespace strata::machine {
namespace {

TEST(HardwareSuggestion, IsAMachineThatThereIs) {
  const struct {
    const char* name;
    const char* suggestion;
  } rows[] = {
      {"rtx409", ", did you mean 'rtx4090'?"},
      {"rtx4090x", ", did you mean 'rtx4090'?"},
      {"4090", ", did you mean 'rtx4090'?"},
      {"h1000", ", did you mean 'h100'?"},
      {"a100", ", did you mean 'a100-40', 'a100-80' or 'a100-80-pcie'?"},
      {"A100", ", did you mean 'a100-40', 'a100-80' or 'a100-80-pcie'?"},
      {"v100", ""},
      {"v100-32", ""},
      {"h100x8", ", did you mean '8xh100'?"},
      {"h100:8", ", did you mean '8xh100'?"},
      {"2xh100", ", did you mean '8xh100,devices=2'?"},
      {"1xh100", ", did you mean 'h100'?"},
      {"8xrtx4090", ", did you mean 'rtx4090,devices=8'?"},
      {"2xrtx4090", ", did you mean 'rtx4090,devices=2'?"},
      {"2xRTX4090", ", did you mean 'rtx4090,devices=2'?"},
      {"0xrtx4090", ", did you mean 'rtx4090'?"},
      {"x", ""},
      {"", ""},
  };
  for (const auto& row : rows)
    EXPECT_EQ(hardware_suggestion(row.name, hardware_names()), row.suggestion) << row.name;
}

}  // namespace
}  // namespace strata::machine
