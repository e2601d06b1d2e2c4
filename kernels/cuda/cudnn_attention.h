// Attention by cuDNN, opened at run time. Only cudnn_attention.cpp includes its frontend, a library
// of headers; a build without them has no_cudnn.cpp instead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/cuda/attention_library.h"
#include "kernels/cuda/attention_problem.h"

namespace strata::cuda {

/// Paths of the libraries, as a search found them. A process uses the first cuDNN that it opens.
struct CudnnFiles {
  std::string cudnn;   ///< libcudnn.so.9
  std::string cudart;  ///< libcudart.so, which the frontend calls; empty: the loader finds it
};

/// Returns why a cuDNN is too old for attention, or "", by its file name alone: distributions name
/// the version in it (libcudnn.so.9.14.0), PyPI's wheels do not. `path` has no symbolic links.
std::string why_not_cudnn(const std::string& path);

struct CudnnPlan {
  std::string engine;  ///< cuDNN's name for the plan: "eng6_k24=26"
  std::int64_t workspace_bytes = 0;
};

/// Finds the plans that CudnnAttention would make on a device, which need not be present.
class CudnnPlanner {
 public:
  /// `device` is cuDNN's JSON of a device's properties (deviceVer, multiProcessorCount, ...).
  /// Throws HostError when the library does not load, is older than 9.18.1, or refuses `device`.
  CudnnPlanner(const CudnnFiles& files, const std::string& device);
  ~CudnnPlanner();
  CudnnPlanner(const CudnnPlanner&) = delete;
  CudnnPlanner& operator=(const CudnnPlanner&) = delete;

  /// Returns the deterministic plan that cuDNN's heuristics prefer, for the whole batch. Throws
  /// HostError with cuDNN's reason when there is none.
  [[nodiscard]] CudnnPlan plan(const AttentionProblem& problem) const;
  /// The architecture of the device: 90 for sm_90.
  [[nodiscard]] int architecture() const;
  /// 91900 for 9.19.0.
  [[nodiscard]] std::int64_t version() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Runs attention by cuDNN on one device. Results depend on the library's version and on the plan
/// that its heuristics choose for the device and the problem; backward passes are deterministic.
class CudnnAttention final : public AttentionLibrary {
 public:
  /// Serves the current device, of `architecture` (90 for sm_90). `report` gets a message once for
  /// every problem that is left to our own kernels, with the reason. Throws HostError when the
  /// library does not load, is older than 9.18.1, or does not start.
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
