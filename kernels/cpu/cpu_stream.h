// The CPU device: a thread pool, the engine of matrix products, and the stream on it.
#pragma once

#include <memory>

#include "kernels/cpu/thread_pool.h"
#include "kernels/device/stream.h"
#include "kernels/ops/operation.h"

namespace strata::kernels {

class MatmulEngine;  // kernels/cpu/matmul.h

/// Owns what CPU kernels share. Two devices in one process are independent.
class CpuDevice {
 public:
  explicit CpuDevice(int threads);
  ~CpuDevice();
  [[nodiscard]] ThreadPool& pool() { return pool_; }
  [[nodiscard]] MatmulEngine& matmul() { return *matmul_; }
  [[nodiscard]] DeviceCapabilities capabilities() const;

 private:
  ThreadPool pool_;
  std::unique_ptr<MatmulEngine> matmul_;
};

/// Runs kernels inline on the calling thread and the device's pool.
class CpuStream final : public Stream {
 public:
  explicit CpuStream(CpuDevice& device) : device_(device) {}
  [[nodiscard]] CpuDevice& device() { return device_; }
  [[nodiscard]] ThreadPool& pool() { return device_.pool(); }
  [[nodiscard]] MatmulEngine& matmul() { return device_.matmul(); }

 private:
  CpuDevice& device_;
};

/// Returns `stream` as the CpuStream that every stream given to a CPU kernel is.
inline CpuStream& cpu(Stream& stream) { return static_cast<CpuStream&>(stream); }

/// The CPU backend's kernels.
const KernelTable& cpu_kernels();

}  // namespace strata::kernels
