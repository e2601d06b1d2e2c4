#include "kernels/cpu/cpu_features.h"

#include <dnnl.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "hwy/targets.h"

namespace strata::kernels {
namespace {

TEST(CpuFeatures, LargerSetsContainSmallerOnes) {
  const CpuFeatures features = detect_cpu_features();
  EXPECT_LE(features.avx512, features.avx2);
  EXPECT_LE(features.avx512_bf16, features.avx512);
  EXPECT_LE(features.amx_bf16, features.avx512_bf16);
  EXPECT_LE(features.amx_bf16, features.amx_announced);
}

TEST(CpuFeatures, FindsNothingThatTheCompilersLibraryDoesNotFind) {
  const CpuFeatures features = detect_cpu_features();
  EXPECT_EQ(features.avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(features.avx512, __builtin_cpu_supports("avx512f") &&
                                 __builtin_cpu_supports("avx512bw") &&
                                 __builtin_cpu_supports("avx512vl"));
  EXPECT_LE(features.avx512_bf16, __builtin_cpu_supports("avx512bf16") != 0);
}

TEST(CpuFeatures, AsksTwiceAndAnswersTheSame) {
  EXPECT_EQ(detect_cpu_features(), detect_cpu_features());
}

TEST(CpuFeatures, SaysWhatItFound) {
  CpuFeatures features;
  EXPECT_EQ(features.to_string(), "baseline");
  features.avx2 = features.avx512 = features.amx_announced = true;
  EXPECT_EQ(features.to_string(), "avx2 avx512 (amx announced but traps)");
}

TEST(CpuFeatures, KnowsHowWideItsVectorsAre) {
  CpuFeatures features;
  EXPECT_EQ(features.vector_bits(), 128);
  features.avx2 = true;
  EXPECT_EQ(features.vector_bits(), 256);
  features.avx512 = true;
  EXPECT_EQ(features.vector_bits(), 512);
}

TEST(CpuFeaturesDeathTest, TheChosenInstructionSetsAreThoseThatAreAllowed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const CpuFeatures features = detect_cpu_features();
  if (!features.avx512) GTEST_SKIP() << "this CPU has no AVX-512 to do without";
  EXPECT_EXIT(
      {
        setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
        std::fputs(chosen_instruction_sets().c_str(), stderr);
        std::_Exit(0);  // what a sanitizer prints at the end is no part of it
      },
      testing::ExitedWithCode(0), "oneDNN [0-9.]+ avx2$");
  const std::string chosen = chosen_instruction_sets();
  EXPECT_EQ(chosen.find("AVX3"), 0U) << chosen;
  EXPECT_NE(chosen.find(" avx512_core"), std::string::npos) << chosen;
}

// Runs in a process of its own, because oneDNN's limit cannot be lifted.
TEST(CpuFeaturesDeathTest, LimitsTheLibraries) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  if (!detect_cpu_features().avx512) GTEST_SKIP() << "this CPU has no AVX-512 to forbid";
  EXPECT_EXIT(
      {
        CpuFeatures features = detect_cpu_features();
        features.avx512 = features.avx512_bf16 = features.amx_bf16 = false;
        limit_libraries(features);
        limit_libraries(features);
        const bool limited = dnnl_get_effective_cpu_isa() == dnnl_cpu_isa_avx2 &&
                             (hwy::SupportedTargets() & HWY_AVX3) == 0;
        std::_Exit(limited ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace strata::kernels
