// Plan::from_json reads the Plan that `train --print-plan` prints.
#include <gtest/gtest.h>

#include <cstdio>
#include <stdexcept>
#include <string>

#include "runtime/graph/plan.h"

namespace strata::tests {
namespace {

/// Returns the standard output of a run of one step on `ranks` ranks.
std::string output_of(int ranks, const std::string& arguments) {
  const std::string bin = STRATA_BIN;
  const std::string command = bin + "/mlaunch -np " + std::to_string(ranks) + " --no-prefix " +
                              bin + "/train --print-plan --steps 1 --sequence-length 16 " +
                              "--micro-batch 1 --threads 1 " + arguments;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start " + command);
  std::string text;
  char part[4096];
  while (const std::size_t size = std::fread(part, 1, sizeof part, pipe)) text.append(part, size);
  EXPECT_EQ(::pclose(pipe), 0) << command << "\n" << text;
  return text;
}

/// Returns the JSON object that begins and ends on lines of their own, or "".
std::string plan_in(const std::string& output) {
  const std::size_t begin = output.find("{\n");
  const std::size_t end = output.find("\n}\n", begin);
  if (begin == std::string::npos || end == std::string::npos) return "";
  return output.substr(begin, end + 3 - begin);
}

TEST(PrintPlan, PrintsWhatFromJsonReads) {
  struct Case {
    int ranks;
    const char* arguments;
    bool sharded, recomputed;
  };
  for (const Case& c : {Case{1, "--model gpt2-tiny", false, false},
                        Case{2,
                             "--zero 3 --model llama-tiny --dtype bf16 --accumulation 2 "
                             "--activation-checkpointing --param-persistence-threshold 0",
                             true, true}}) {
    const std::string text = plan_in(output_of(c.ranks, c.arguments));
    const runtime::Plan plan = runtime::Plan::from_json(text, "standard output");
    EXPECT_EQ(plan.to_json(), text);
    EXPECT_EQ(plan.mesh.ranks(), c.ranks);
    ASSERT_FALSE(plan.units.empty());
    EXPECT_EQ(plan.units.back().shard_parameter, c.sharded);
    EXPECT_EQ(text.find("\": \"recompute\"") != std::string::npos, c.recomputed);
  }
}

}  // namespace
}  // namespace strata::tests
