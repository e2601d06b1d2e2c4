#include "kernels/ops/spread.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "kernels/ops/operation.h"

namespace strata::kernels {
namespace {

/// "0", "1": sharded along that dimension; "r": replicated; "p": partial sum; "z": zeros.
Spread spread_of(char letter) {
  if (letter == 'r') return kReplicated;
  if (letter == 'p') return kPartialSum;
  if (letter == 'z') return kZeros;
  return sharded(letter - '0');
}

char letter_of(Spread spread) {
  for (char letter : {'r', 'p', 'z', '0', '1'})
    if (spread_of(letter) == spread) return letter;
  return '?';
}

struct Case {
  const char* operation;
  const char* inputs;
  const char* outputs;  ///< or "!K EXPECTED": operand K does not fit, EXPECTED would
  Attributes attributes = {};
};

std::string outcome(const Case& c) {
  std::vector<Spread> inputs;
  for (const char* letter = c.inputs; *letter != 0; ++letter) inputs.push_back(spread_of(*letter));
  constexpr int kMost = 6;
  std::array<Spread, kMost> outputs;
  const std::size_t count = c.outputs[0] == '!' ? 1 : std::string_view(c.outputs).size();
  const auto rule = find_operation(c.operation).spread.of(c.attributes);
  if (const auto misfit = spread_outputs(rule, inputs, std::span(outputs).first(count)))
    return "!" + std::to_string(misfit->operand) + " " + letter_of(misfit->expected);
  std::string text;
  for (std::size_t k = 0; k < count; ++k) text += letter_of(outputs[k]);
  return text;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"accumulate", "pp", "p"},
      {"accumulate", "00", "0"},
      {"accumulate", "0p", "!1 0"},
      {"adamw", "0000r0", "0000"},
      {"adamw", "rrrrr0", "rrrr"},
      {"adamw", "000pr", "!3 0"},
      {"adamw", "000rr", "!3 0"},
      {"adamw_8bit", "000000r", "000000"},
      {"adamw_bf16", "0000r0", "000"},
      {"adamw_bf16", "rrrprr", "!3 r"},
      {"adamw_packed", "00000r0", "0000"},
      {"add", "pz", "p"},
      {"add", "zz", "z"},
      {"add_loss", "pp", "p"},
      {"add_loss", "rp", "!1 r"},
      {"attention", "0000", "00"},
      {"attention", "111r", "11"},
      {"attention", "ppp", "!0 r"},
      {"attention_backward", "0000000", "000"},
      {"attention_backward", "111111r", "111"},
      {"convert", "p", "p"},
      {"copy", "1", "1"},
      {"dropout", "00", "0"},
      {"dropout", "pr", "!0 r"},
      {"early_control", "r", "r"},
      {"early_control", "p", "!0 r"},
      {"embedding", "0rr", "0"},
      {"embedding", "r11", "1"},
      {"embedding", "r0", "!1 r"},
      {"embedding_backward", "00", "p"},
      {"embedding_backward", "00p", "p"},
      {"embedding_backward", "00r", "!2 p"},
      {"embedding_backward", "rrr", "r"},
      {"fill_zero", "", "z"},
      {"fill_zero", "", "zzz"},
      {"gelu", "0", "0"},
      {"gelu", "p", "!0 r"},
      {"gelu_backward", "11", "1"},
      {"gradient_scale", "rr", "r"},
      {"head_loss", "0r0r", "p0p"},
      {"head_loss", "prrr", "!0 r"},
      {"head_loss", "1rrr", "!0 r"},
      {"head_loss_eval", "0r0r", "p"},
      {"initialize", "", "r"},
      {"linear", "0rr", "0"},
      {"linear", "r00", "1"},
      {"linear", "11", "p"},
      {"linear", "11r", "!2 p"},
      {"linear", "pr", "!0 r"},
      {"linear", "10", "p", {{"transposed", 1}}},
      {"linear", "r10", "1", {{"transposed", 1}}},
      {"linear_backward_bias", "0", "p"},
      {"linear_backward_bias", "1", "0"},
      {"linear_backward_input", "0r", "0"},
      {"linear_backward_input", "10", "p"},
      {"linear_backward_input", "11", "p", {{"transposed", 1}}},
      {"linear_backward_weight", "00", "p"},
      {"linear_backward_weight", "1r", "0"},
      {"linear_backward_weight", "1r", "1", {{"transposed", 1}}},
      {"linear_backward_weight", "p0", "!0 0"},
      {"lion", "000r0", "000"},
      {"lion_packed", "0000r0", "000"},
      {"norm", "0rr", "00"},
      {"norm", "1r", "!0 r"},
      {"norm_backward", "00r00", "0pp"},
      {"norm_backward", "r0rr", "!0 0"},
      {"norm_squares", "p0", "p"},
      {"norm_squares", "pr", "!0 r"},
      {"norm_squares", "pp", "!1 r"},
      {"position_backward", "0", "p"},
      {"residual_add", "000", "0"},
      {"residual_add", "0p0", "!1 0"},
      {"residual_norm", "00rr0", "000", {{"bias", 1}}},
      {"residual_norm", "00r0", "000", {{"bias", 0}}},
      {"rope", "0r", "0"},
      {"rope", "1r", "1"},
      {"rope_table", "", "r"},
      {"select_rows", "00", "0"},
      {"sgd", "000r", "000", {{"momentum", 0.9}}},
      {"sgd", "00r", "00"},
      {"sgd", "0pr", "!1 0"},
      {"step_control", "rr", "rrr"},
      {"step_control", "rp", "!1 r"},
      {"swiglu", "0", "0"},
      {"swiglu_backward", "00", "0"},
  };
  return all;
}

TEST(Spread, FollowsTheRuleOfEachOperation) {
  for (const Case& c : cases())
    EXPECT_EQ(outcome(c), c.outputs) << c.operation << " of " << c.inputs;
}

TEST(Spread, IsTestedForEachOperation) {
  std::set<std::string_view> tested;
  for (const Case& c : cases()) tested.insert(c.operation);
  for (const Operation* operation : all_operations())
    EXPECT_TRUE(tested.contains(operation->name)) << operation->name;
}

TEST(Spread, OfNothingButReplicatedInputsIsReplicated) {
  for (const Operation* operation : all_operations()) {
    const std::array<Spread, 3> inputs{};
    std::array<Spread, 2> outputs{};
    EXPECT_FALSE(spread_outputs(operation->spread.of({{"bias", 1}}), inputs, outputs))
        << operation->name;
    for (Spread output : outputs)
      EXPECT_TRUE(output == kReplicated || output == kZeros) << operation->name;
  }
}

}  // namespace
}  // namespace strata::kernels
