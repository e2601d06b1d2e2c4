#include "kernels/cpu/cpu_stream.h"

#include <memory>

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/tile_product.h"

namespace strata::kernels {

CpuDevice::CpuDevice(int threads) : pool_(threads, be_single_threaded) {
  const CpuFeatures features = detect_cpu_features();
  limit_libraries(features);
  matmul_ = std::make_unique<MatmulEngine>(pool_, features);
}

CpuDevice::~CpuDevice() = default;

DeviceCapabilities CpuDevice::capabilities() const {
  DeviceCapabilities capabilities;
  capabilities.workers = pool_.threads();
  return capabilities;
}

}  // namespace strata::kernels
