// Tests the plans that cuDNN makes, without a GPU: a description stands for the device, and a
// library that runs nothing (testing/simulated/driver_stand_in.cpp) for the driver.
#include "kernels/cuda/cudnn_attention.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "core/dynamic_library.h"
#include "core/error.h"
#include "kernels/cuda/cudnn_scratch.h"
#include "kernels/cuda/library_folders.h"

namespace strata::cuda {
namespace {

struct Device {
  const char* name;
  int architecture, multiprocessors, block_shared_bytes, l2_bytes;
};

constexpr Device kH200{"NVIDIA H200", 90, 132, 232448, 60 << 20};
constexpr Device kA100{"NVIDIA A100-SXM4-80GB", 80, 108, 166912, 40 << 20};
constexpr Device kRtx4090{"NVIDIA GeForce RTX 4090", 89, 128, 101376, 72 << 20};
constexpr Device kB200{"NVIDIA B200", 100, 148, 232448, 126 << 20};
constexpr Device kRtx5090{"NVIDIA GeForce RTX 5090", 120, 170, 101376, 96 << 20};

std::string description(const Device& device) {
  const auto number = [](const char* key, std::int64_t value) {
    return std::string(",\"") + key + "\":" + std::to_string(value);
  };
  return "{\"deviceName\":\"" + std::string(device.name) + "\"" +
         number("deviceVer", device.architecture * 10) + number("driverVer", 13000) +
         number("cudaDeviceId", 0) + number("multiProcessorCount", device.multiprocessors) +
         ",\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64]" +
         number("warpSize", 32) + number("regsPerBlock", 65536) +
         number("maxRegistersPerSM", 65536) + number("maxSharedMemoryPerBlock", 49152) +
         number("maxSharedMemoryPerBlockOptin", device.block_shared_bytes) +
         number("reservedSharedMemoryPerBlock", 1024) + number("maxCtasPerSM", 24) +
         number("maxThreadsPerBlock", 1024) + number("maxThreadsPerSM", 1536) +
         number("pciDeviceId", 0) + number("isTccDriver", 0) + number("supportCoopLaunch", 1) +
         number("smClockRateKHz", 1980000) + number("memClockRateKHz", 3201000) +
         number("l2CacheSize", device.l2_bytes) + number("totalGlobalMem", std::int64_t{80} << 30) +
         "}";
}

AttentionProblem problem(bool backward, std::int64_t batch, std::int64_t sequence,
                         std::int64_t heads, std::int64_t kv_heads, std::int64_t head_size) {
  const std::int64_t packed = (heads + 2 * kv_heads) * head_size, own = heads * head_size;
  return {.backward = backward,
          .batch = batch,
          .sequence = sequence,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_size = head_size,
          .scale = 0.125F,
          .q_stride = packed,
          .k_stride = packed,
          .v_stride = packed,
          .o_stride = own,
          .dout_stride = backward ? own : 0,
          .dq_stride = backward ? packed : 0,
          .dk_stride = backward ? packed : 0,
          .dv_stride = backward ? packed : 0};
}

class CudnnAttentionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // The stand-in has the name of the driver's library, so cuDNN gets it when it opens that.
    ASSERT_NE(::dlopen(STRATA_DRIVER_STAND_IN, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE), nullptr)
        << ::dlerror();
  }
  void SetUp() override {
    try {
      files_.cudnn = DynamicLibrary::open(
                         cuda_library_search({"libcudnn.so.9"}, library_environment(),
                                             "name its folder in STRATA_CUDA_PATH to plan here"))
                         .path();
    } catch (const HostError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  [[nodiscard]] const CudnnFiles& files() const { return files_; }

  /// Expects a plan for which cudnn_scratch_bytes is enough, with at most `slack` bytes to spare.
  static void expect_plan(const CudnnPlanner& planner, const AttentionProblem& problem,
                          std::int64_t slack) {
    SCOPED_TRACE(problem.to_string() + " sm_" + std::to_string(planner.architecture()));
    const CudnnPlan plan = planner.plan(problem);
    EXPECT_FALSE(plan.engine.empty());
    const std::int64_t planned =
        cudnn_scratch_bytes(problem, problem.batch, planner.architecture());
    EXPECT_LE(plan.workspace_bytes, planned);
    EXPECT_GE(plan.workspace_bytes + slack, planned);
    EXPECT_LE(plan.workspace_bytes, cudnn_scratch_bytes(problem, problem.batch, 0));
  }

 private:
  CudnnFiles files_;
};

TEST(CudnnFile, OldVersionsAreKnownByTheirNames) {
  EXPECT_EQ(why_not_cudnn("/usr/lib/libcudnn.so.9.14.0"),
            "cuDNN 91400, attention needs 9.18.1 (91801) or later");
  EXPECT_EQ(why_not_cudnn("/usr/lib/libcudnn.so.9.18.1"), "");
  EXPECT_EQ(why_not_cudnn("/usr/lib/libcudnn.so.10.0.0"), "");
  EXPECT_EQ(why_not_cudnn("/opt/site-packages/nvidia/cudnn/lib/libcudnn.so.9"), "");
}

TEST_F(CudnnAttentionTest, PlansModelsOnH200AndTheirScratchIsKnownBeforehand) {
  const CudnnPlanner planner(files(), description(kH200));
  EXPECT_EQ(planner.architecture(), 90);
  EXPECT_GE(planner.version(), 91801);
  for (const bool backward : {false, true}) {
    expect_plan(planner, problem(backward, 16, 1024, 12, 12, 64), 4096);  // GPT-2 124M
    expect_plan(planner, problem(backward, 8, 1024, 14, 2, 64), 4096);    // Qwen2.5 0.5B
    expect_plan(planner, problem(backward, 2, 4096, 28, 4, 128), 4096);   // 7B
  }
  AttentionProblem half = problem(true, 1, 256, 8, 8, 96);
  half.dtype = DType::f16;
  expect_plan(planner, half, 4096);
  expect_plan(planner, problem(true, 3, 150, 4, 1, 256), 4 << 20);
}

TEST_F(CudnnAttentionTest, PlansOnOtherDevices) {
  for (const Device& device : {kA100, kRtx4090, kB200, kRtx5090}) {
    const CudnnPlanner planner(files(), description(device));
    EXPECT_EQ(planner.architecture(), device.architecture);
    expect_plan(planner, problem(true, 8, 1024, 16, 2, 128), 4096);
    expect_plan(planner, problem(true, 2, 1000, 12, 12, 64), 4096);
  }
}

TEST_F(CudnnAttentionTest, SaysWhyThereIsNoPlan) {
  const CudnnPlanner planner(files(), description(kA100));
  try {
    (void)planner.plan(problem(true, 2, 128, 4, 4, 256));
    FAIL() << "sm_80 has no backward pass for heads of 256";
  } catch (const HostError& error) {
    EXPECT_NE(std::string(error.what()).find("B 2 T 128 heads 4/4 D 256"), std::string::npos)
        << error.what();
  }
}

TEST_F(CudnnAttentionTest, NeedsADeviceToRun) {
  EXPECT_THROW(CudnnAttention(files(), 90, [](const std::string&) {}), HostError);
}

TEST_F(CudnnAttentionTest, RefusesABrokenDescription) {
  EXPECT_THROW(CudnnPlanner(files(), "{}"), HostError);
  EXPECT_THROW(CudnnPlanner(files(), "not json"), HostError);
}

}  // namespace
}  // namespace strata::cuda
