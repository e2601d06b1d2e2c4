// Implements kernels/cuda/cudnn_attention.h where headers of cuDNN or its frontend are missing.
#include "core/error.h"
#include "kernels/cuda/cudnn_attention.h"

namespace strata::cuda {
namespace {

[[noreturn]] void refuse() {
  throw HostError(
      "this build has no attention by cuDNN: cudnn.h or cudnn_frontend.h was not found when it was "
      "configured (STRATA_CUDNN_FRONTEND names the frontend's folder)");
}

}  // namespace

std::string why_not_cudnn(const std::string&) { return ""; }

class CudnnPlanner::Implementation {};
class CudnnAttention::Implementation {};

CudnnPlanner::CudnnPlanner(const CudnnFiles&, const std::string&) { refuse(); }
CudnnPlanner::~CudnnPlanner() = default;
CudnnPlan CudnnPlanner::plan(const AttentionProblem&) const { refuse(); }
int CudnnPlanner::architecture() const { refuse(); }
std::int64_t CudnnPlanner::version() const { refuse(); }

CudnnAttention::CudnnAttention(const CudnnFiles&, int, std::function<void(const std::string&)>) {
  refuse();
}
CudnnAttention::~CudnnAttention() = default;
bool CudnnAttention::attention(kernels::Stream&, const kernels::KernelCall&) { refuse(); }
bool CudnnAttention::attention_backward(kernels::Stream&, const kernels::KernelCall&) { refuse(); }
std::int64_t CudnnAttention::version() const { refuse(); }

}  // namespace strata::cuda
