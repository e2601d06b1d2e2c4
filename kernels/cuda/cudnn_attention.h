// Attention by cuDNN, opened at run time. Its frontend, a library of headers, is seen by
// cudnn_attention.cpp alone; a build without these headers has no_cudnn.cpp instead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/cuda/attention_library.h"
#include "kernels/cuda/attention_problem.h"

namespace strata::cuda {

/// Files of libraries, as a search found them. One cuDNN serves a process: the first.
struct CudnnFiles {
  std::string cudnn;   ///< libcudnn.so.9
  std::string cudart;  ///< libcudart.so, which the frontend calls; empty: the loader finds it
};

struct CudnnPlan {
  std::string engine;  ///< cuDNN's name of it: "eng6_k24=26"
  std::int64_t workspace_bytes = 0;
};

/// cuDNN's plans for a device that need not be there: what would CudnnAttention do?
class CudnnPlanner {
 public:
  /// `device`: cuDNN's JSON of a device's properties (deviceVer, multiProcessorCount, ...). Throws
  /// HostError when the library does not load, is older than 9.18.1, or refuses the description.
  CudnnPlanner(const CudnnFiles& files, const std::string& device);
  ~CudnnPlanner();
  CudnnPlanner(const CudnnPlanner&) = delete;
  CudnnPlanner& operator=(const CudnnPlanner&) = delete;

  /// The deterministic plan that cuDNN's heuristics prefer, for the whole batch. Throws HostError
  /// with cuDNN's reason when it has none.
  [[nodiscard]] CudnnPlan plan(const AttentionProblem& problem) const;
  /// 90 for sm_90.
  [[nodiscard]] int architecture() const;
  /// 91900 for 9.19.0.
  [[nodiscard]] std::int64_t version() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// cuDNN on one device. Results depend on the library's version and on the plan that its heuristics
/// choose for the device and the problem; backward passes are deterministic.
class CudnnAttention final : public AttentionLibrary {
 public:
  /// For the current device, of `architecture` (90 for sm_90). `report` is told once of every
  /// problem that is left to our own kernels, and why. Throws HostError when the library does not
  /// load, is older than 9.18.1, or does not start.
  CudnnAttention(const CudnnFiles& files, int architecture,
                 std::function<void(const std::string&)> report);
  ~CudnnAttention() override;

  bool attention(kernels::Stream& stream, const kernels::KernelCall& call) override;
  bool attention_backward(kernels::Stream& stream, const kernels::KernelCall& call) override;

  /// 91900 for 9.19.0.
  [[nodiscard]] std::int64_t version() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace strata::cuda
