// Which instruction sets of this CPU really work, and telling the libraries about it.
#pragma once

#include <string>

namespace strata::kernels {

/// What kernels and libraries may use. Each is announced by the CPU (CPUID), enabled by the kernel
/// (XCR0, and permission for AMX state) and was executed once without a trap.
struct CpuFeatures {
  bool avx2 = false;    ///< with FMA and F16C
  bool avx512 = false;  ///< F, BW, CD, DQ, VL
  bool avx512_bf16 = false;
  bool amx_bf16 = false;
  bool amx_announced = false;  ///< by CPUID; some virtual machines do and trap all the same

  bool operator==(const CpuFeatures&) const = default;
  /// Bits of the widest instructions for fp32: 512, 256, or 128 without AVX2.
  [[nodiscard]] int vector_bits() const { return avx512 ? 512 : avx2 ? 256 : 128; }
  /// "avx2 avx512 avx512_bf16", "(amx announced but traps)" added where it applies.
  [[nodiscard]] std::string to_string() const;
};

/// Asks CPU and kernel, and tries doubtful instructions in a forked child. About a millisecond.
/// Requests AMX state from the kernel for this process. Throws HostError when fork or wait fails.
CpuFeatures detect_cpu_features();

/// Keeps oneDNN and Highway away from instruction sets that are announced but not in `features`.
/// To be called before the first product; later calls with the same features change nothing. Leaves
/// ONEDNN_MAX_CPU_ISA in force when nothing needs to be forbidden.
void limit_libraries(const CpuFeatures& features);

}  // namespace strata::kernels
