// Implements kernels/cuda/open_device.h in a build without CUDA.
#include "core/error.h"
#include "kernels/cuda/open_device.h"

namespace strata::cuda {
namespace {

constexpr const char* kWhy =
    "this build has no CUDA backend; configure where nvcc is on PATH (-DSTRATA_CUDA=ON says what "
    "is missing)";

}  // namespace

DeviceCount count_devices() { return {0, kWhy}; }

std::unique_ptr<kernels::Device> open_device(int, Libraries, Tf32) { throw HostError(kWhy); }

}  // namespace strata::cuda
