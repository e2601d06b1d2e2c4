#include "train/accounting/device_peak.h"

#include <algorithm>

namespace strata::train {
namespace {

struct Row {
  std::string_view device;
  double fp32, bf16, fp8;  ///< TFLOP/s, dense
  double memory;           ///< TB/s
};

// Data sheets often print only the rate with sparsity, which is twice these.
constexpr Row kRows[] = {
    // NVIDIA A100 Tensor Core GPU data sheet (2021)
    {"NVIDIA A100-SXM4-40GB", 19.5, 312, 0, 1.555},
    {"NVIDIA A100-SXM4-80GB", 19.5, 312, 0, 2.039},
    {"NVIDIA A100-PCIE-40GB", 19.5, 312, 0, 1.555},
    {"NVIDIA A100 80GB PCIe", 19.5, 312, 0, 1.935},
    // NVIDIA H100 Tensor Core GPU Architecture white paper, table of SXM5 and PCIe; NVL: data sheet
    {"NVIDIA H100 80GB HBM3", 66.9, 989.4, 1978.9, 3.35},
    {"NVIDIA H100 PCIe", 51.2, 756, 1513, 2},
    {"NVIDIA H100 NVL", 60, 835.5, 1670.5, 3.9},
    // NVIDIA H200 Tensor Core GPU data sheet: the H100's processor, so its unrounded rates
    {"NVIDIA H200", 66.9, 989.4, 1978.9, 4.8},
    {"NVIDIA GH200 480GB", 66.9, 989.4, 1978.9, 4},
    // NVIDIA L4, L40, L40S data sheets
    {"NVIDIA L4", 30.3, 121, 242, 0.3},
    {"NVIDIA L40", 90.5, 181.05, 362, 0.864},
    {"NVIDIA L40S", 91.6, 362.05, 733, 0.864},
    // NVIDIA Ampere GA102, Ada and RTX Blackwell GPU architecture white papers, appendix A. GeForce
    // cards add in fp32 at half the rate at which they add in fp16; this is the former.
    {"NVIDIA GeForce RTX 3090", 35.6, 71, 0, 0.936},
    {"NVIDIA GeForce RTX 4090", 82.6, 165.2, 330.3, 1.008},
    {"NVIDIA GeForce RTX 5090", 104.8, 209.5, 419, 1.792},
    {"NVIDIA RTX 6000 Ada Generation", 91.1, 364.2, 728.5, 0.96},
    // NVIDIA HGX platform data sheet: an eighth of the B200 board's
    {"NVIDIA B200", 75, 2250, 4500, 8},
};

}  // namespace

double peak_rate(const DevicePeak& peak, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return peak.fp32;
    case DType::bf16:
    case DType::f16:
      return peak.bf16;
    default:
      return 0;
  }
}

std::optional<DevicePeak> find_device_peak(std::string_view device) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const Row& r) { return r.device == device; });
  if (row == std::end(kRows)) return std::nullopt;
  constexpr double kTera = 1e12;
  return DevicePeak{std::string(device), row->fp32 * kTera, row->bf16 * kTera, row->fp8 * kTera,
                    row->memory * kTera};
}

}  // namespace strata::train
