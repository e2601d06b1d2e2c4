#include "train/accounting/model_flops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "machine/hardware_table.h"
#include "train/models/model_family.h"

namespace strata::train {
namespace {

constexpr std::int64_t kSequence = 1024;
constexpr ModelFamily kPlain{.model_type = "plain"};
constexpr ModelFamily kGated{.model_type = "gated", .mlp_matrices = 3};
constexpr double kTokensPerStep = 524288;

ModelConfig qwen2(std::int64_t layers, std::int64_t hidden, std::int64_t intermediate,
                  std::int64_t head_size, std::int64_t heads, std::int64_t kv_heads) {
  ModelConfig model;
  model.family = &kGated;
  model.vocabulary = 151936;
  model.layers = layers;
  model.hidden = hidden;
  model.intermediate = intermediate;
  model.head_size = head_size;
  model.heads = heads;
  model.kv_heads = kv_heads;
  return model;
}

/// A line of LLM.Q's log: how long a step took, and the percentage that it prints.
struct Line {
  double milliseconds;
  const char* percent;
};

/// benchmarks/H100x1.md of LLM.Q at 7f895bd, steps 1 to 5 with `bf16` and `fp8` products.
struct Published {
  const char* name;
  ModelConfig model;
  std::vector<Line> bf16, fp8;
};

std::vector<Published> published() {
  return {{"0.5B",
           qwen2(24, 896, 4864, 64, 14, 2),
           {{3493, "46.9"}, {3492, "46.9"}, {3504, "46.8"}, {3508, "46.7"}, {3508, "46.7"}},
           {{3185, "33.6"}, {3178, "33.7"}, {3178, "33.7"}, {3196, "33.5"}, {3185, "33.6"}}},
          {"1.5B",
           qwen2(28, 1536, 8960, 128, 12, 2),
           {{8843, "57.1"}, {8849, "57.0"}, {8848, "57.0"}, {8868, "56.9"}, {8871, "56.9"}},
           {{7188, "41.2"}, {7182, "41.3"}, {7177, "41.3"}, {7183, "41.3"}, {7204, "41.1"}}},
          {"3B",
           qwen2(36, 2048, 11008, 128, 16, 2),
           {{16981, "59.2"}, {16978, "59.2"}, {16958, "59.3"}, {16959, "59.3"}, {16935, "59.3"}},
           {{13035, "43.3"}, {13032, "43.3"}, {12984, "43.4"}, {12980, "43.4"}, {12954, "43.5"}}},
          {"7B",
           qwen2(28, 3584, 18944, 128, 28, 4),
           {{38105, "59.8"}, {37961, "60.1"}, {37942, "60.1"}, {37854, "60.2"}, {37817, "60.3"}},
           {{27419, "45.3"}, {27426, "45.3"}, {27380, "45.4"}, {27340, "45.5"}, {27314, "45.5"}}},
          {"14B",
           qwen2(48, 5120, 13824, 128, 40, 8),
           {{82819, "54.7"}, {82835, "54.7"}, {83018, "54.5"}, {82745, "54.7"}, {82939, "54.6"}},
           {{55994, "43.4"}, {55993, "43.4"}, {55976, "43.4"}, {55952, "43.4"}, {55986, "43.4"}}}};
}

/// The text that LLM.Q prints: it first truncates the ideal time of each part to whole nanoseconds.
std::string printed_by_llmq(const TokenFlops& flops, const ChargedPeaks& peaks,
                            double milliseconds) {
  constexpr double kNano = 1e-9;
  const double ideal_ns = std::trunc(flops.blocks / peaks.products / kNano) +
                          std::trunc(flops.head / peaks.model / kNano) +
                          std::trunc(flops.attention / peaks.model / kNano);
  char text[16];
  std::snprintf(text, sizeof text, "%.1f",
                100 * ideal_ns * kNano * kTokensPerStep / (milliseconds / 1000));
  return text;
}

void expect_lines(const Published& row, const std::vector<Line>& lines, const ChargedPeaks& peaks) {
  const TokenFlops flops = flops_per_token(row.model, kSequence);
  for (const Line& line : lines) {
    EXPECT_EQ(printed_by_llmq(flops, peaks, line.milliseconds), line.percent)
        << row.name << ", step of " << line.milliseconds << " ms";
    // Truncation cuts at most 3 of the fastest model's 1,950 nanoseconds per token.
    const double ours =
        100 * model_flops_utilization(flops, peaks, kTokensPerStep / (line.milliseconds / 1000));
    EXPECT_NEAR(ours, std::stod(line.percent), 0.05 + 0.0016 * ours) << row.name;
  }
}

TEST(ModelFlops, PublishedUtilizationOfOneH100IsReproduced) {
  const machine::Device h100 = machine::find_hardware("h100").value().device;
  for (const Published& row : published()) {
    expect_lines(row, row.bf16, {h100.bf16_flops, h100.bf16_flops});
    expect_lines(row, row.fp8, {h100.fp8_flops, h100.bf16_flops});
  }
}

TEST(ModelFlops, NoPeakNoUtilization) {
  const TokenFlops flops = flops_per_token(qwen2(24, 896, 4864, 64, 14, 2), kSequence);
  EXPECT_FALSE(model_flops_utilization(flops, machine::Figure{}, 1000).has_value());
  EXPECT_FALSE(model_flops_utilization(flops, machine::assumed(1e15), 1000).has_value());
  EXPECT_DOUBLE_EQ(model_flops_utilization(flops, machine::measured(66.9e12), 1000).value(),
                   flops.total() * 1000 / 66.9e12);
}

TEST(ModelFlops, PartsOfQwen) {
  // The 0.5B model has 24 layers of 3 x 896 x 4864 + 2 x 896 x 896 + 2 x 896 x 128 weights.
  const TokenFlops flops = flops_per_token(qwen2(24, 896, 4864, 64, 14, 2), kSequence);
  EXPECT_EQ(flops.blocks, 6.0 * 24 * (3 * 896 * 4864 + 2 * 896 * 896 + 2 * 896 * 128));
  EXPECT_EQ(flops.head, 6.0 * 151936 * 896);
  EXPECT_EQ(flops.attention, 6.0 * 24 * 896 * 1024);
  EXPECT_EQ(flops.total(), flops.blocks + flops.head + flops.attention);
}

TEST(ModelFlops, Gpt2HasTwoMatricesInItsMlp) {
  ModelConfig model;  // 124M
  model.family = &kPlain;
  model.vocabulary = 50257;
  model.layers = 12;
  model.hidden = 768;
  model.intermediate = 3072;
  model.heads = model.kv_heads = 12;
  model.head_size = 64;
  const TokenFlops flops = flops_per_token(model, kSequence);
  EXPECT_EQ(flops.blocks, 6.0 * 12 * 12 * 768 * 768);
  EXPECT_EQ(flops.head, 6.0 * 50257 * 768);
}

TEST(ModelFlops, HeadsNeedNotAddUpToTheHiddenWidth) {
  ModelConfig model = qwen2(1, 1024, 3072, 128, 16, 8);  // Qwen3-0.6B's
  EXPECT_EQ(flops_per_token(model, kSequence).blocks,
            6.0 * 1024 * (3 * 3072 + 2048 + 2048 + 2 * 1024));
}

}  // namespace
}  // namespace strata::train
