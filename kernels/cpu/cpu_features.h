// Finds out which instruction sets of this CPU really work, and tells the libraries.
#pragma once

#include <string>

namespace strata::kernels {

/// The instruction sets that kernels and libraries may use. Each is announced by the CPU (CPUID),
/// enabled by the system (XCR0, permission for AMX state) and was executed once without a trap.
struct CpuFeatures {
  bool avx2 = false;    ///< with FMA and F16C
  bool avx512 = false;  ///< F, BW, CD, DQ, VL
  bool avx512_bf16 = false;
  bool amx_bf16 = false;
  bool amx_announced = false;  ///< in CPUID; some virtual machines do so and still trap

  bool operator==(const CpuFeatures&) const = default;
  /// Bits of the widest instructions for fp32: 512, 256, or 128 without AVX2.
  [[nodiscard]] int vector_bits() const { return avx512 ? 512 : avx2 ? 256 : 128; }
  /// "avx2 avx512 avx512_bf16", "(amx announced but traps)" added where it applies.
  [[nodiscard]] std::string to_string() const;
};

/// Asks CPU and operating system, and tries in a forked child what they announce; takes about a
/// millisecond. Requests AMX state for this process. Throws HostError if fork or wait fails.
CpuFeatures detect_cpu_features();

/// Keeps oneDNN and Highway away from instruction sets that are announced but not in `features`.
/// To be called before the first product; later calls with the same features change nothing.
/// ONEDNN_MAX_CPU_ISA stays in force if nothing needs to be forbidden.
void limit_libraries(const CpuFeatures& features);

/// Returns the instruction sets that were chosen for this process: of our kernels and, with its
/// version, of oneDNN, whom its environment variables may limit: "AVX3, oneDNN 2.6.3 avx512_core".
/// Limits the libraries first. Throws HostError as detect_cpu_features does.
std::string chosen_instruction_sets();

}  // namespace strata::kernels
