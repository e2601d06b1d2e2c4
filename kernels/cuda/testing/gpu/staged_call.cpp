#include "kernels/cuda/testing/gpu/staged_call.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/error.h"

namespace strata::cuda {
namespace {

using kernels::Tensor;

constexpr std::size_t kAlignment = 256;     // that of arenas and of cudaMalloc
constexpr std::size_t kKeptAlignment = 16;  // the widest access of a thread
constexpr std::size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xA5}, kPoison{0xFF};

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

std::size_t span_bytes(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.type.span_bytes());
}

/// Calls visit(offset of the row in the tensor, bytes of the row).
template <typename Visit>
void for_each_row(const Tensor& tensor, const Visit& visit) {
  if (tensor.elements() == 0) return;
  const std::int64_t size = size_of(tensor.dtype());
  for (std::int64_t r = 0; r < tensor.rows(); ++r)
    visit(static_cast<std::size_t>(r * tensor.row_stride() * size),
          static_cast<std::size_t>(tensor.cols() * size));
}

}  // namespace

StagedCall::StagedCall(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                       std::size_t workspace_bytes)
    : input_count_(inputs.size()) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    places_.push_back({"input " + std::to_string(i), inputs[i], 0, false});
  for (std::size_t i = 0; i < outputs.size(); ++i)
    places_.push_back({"output " + std::to_string(i), outputs[i], 0, true});
  place(workspace_bytes);
}

void StagedCall::place(std::size_t workspace_bytes) {
  std::vector<std::size_t> order(places_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return places_[a].host.data < places_[b].host.data;
  });
  // Operands whose host bytes overlap become one region, which ends at region_end and in the block
  // at `end`.
  std::size_t end = kGuardBytes;
  const std::byte* region_end = nullptr;
  for (const std::size_t i : order) {
    Place& p = places_[i];
    const std::byte* data = p.host.data;
    if (region_end == nullptr || data >= region_end) {
      const auto shift = reinterpret_cast<std::uintptr_t>(data) % kKeptAlignment;
      p.offset = round_up(end + kGuardBytes, kAlignment) + shift;
      region_end = data;
      end = p.offset;
    } else {
      p.offset = end - static_cast<std::size_t>(region_end - data);
    }
    if (const std::byte* last = data + span_bytes(p.host); last > region_end) {
      end += static_cast<std::size_t>(last - region_end);
      region_end = last;
    }
  }
  workspace_offset_ = round_up(end + kGuardBytes, kAlignment);
  workspace_bytes_ = workspace_bytes;
  image_.assign(workspace_offset_ + workspace_bytes + kGuardBytes, kGuard);
  writable_.assign(image_.size(), false);

  const auto fill = [&](std::size_t offset, std::size_t bytes) {
    std::fill_n(image_.begin() + static_cast<std::ptrdiff_t>(offset), bytes, kPoison);
    std::fill_n(writable_.begin() + static_cast<std::ptrdiff_t>(offset), bytes, true);
  };
  fill(workspace_offset_, workspace_bytes_);
  // Whole operands are copied first, so that gaps between rows have the host's bytes.
  for (const Place& p : places_)
    if (const std::size_t bytes = span_bytes(p.host); bytes > 0)
      std::memcpy(image_.data() + p.offset, p.host.data, bytes);
  for (const Place& p : places_)
    if (p.output)
      for_each_row(p.host,
                   [&](std::size_t row, std::size_t bytes) { fill(p.offset + row, bytes); });
  // Inputs are copied after outputs were poisoned, since an output in place must hold its input.
  for (const Place& p : places_)
    if (!p.output)
      for_each_row(p.host, [&](std::size_t row, std::size_t bytes) {
        std::memcpy(image_.data() + p.offset + row, p.host.data + row, bytes);
      });
}

std::vector<Tensor> StagedCall::inputs(std::byte* base) const {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < input_count_; ++i)
    tensors.push_back({places_[i].host.type, base + places_[i].offset});
  return tensors;
}

std::vector<Tensor> StagedCall::outputs(std::byte* base) const {
  std::vector<Tensor> tensors;
  for (std::size_t i = input_count_; i < places_.size(); ++i)
    tensors.push_back({places_[i].host.type, base + places_[i].offset});
  return tensors;
}

std::span<std::byte> StagedCall::workspace(std::byte* base) const {
  return {base + workspace_offset_, workspace_bytes_};
}

std::string StagedCall::describe(std::size_t offset) const {
  const auto where = [](const std::string& name, std::size_t from, std::size_t bytes,
                        std::size_t at) {
    if (at < from) return std::to_string(from - at) + " bytes before " + name;
    if (at < from + bytes) return "byte " + std::to_string(at - from) + " of " + name;
    return std::to_string(at - from - bytes) + " bytes after " + name;
  };
  const auto distance = [&](std::size_t from, std::size_t bytes) {
    return offset < from ? from - offset : offset < from + bytes ? 0 : offset - from - bytes + 1;
  };
  std::string text = where("the workspace", workspace_offset_, workspace_bytes_, offset);
  std::size_t nearest = distance(workspace_offset_, workspace_bytes_);
  for (const Place& p : places_) {
    const std::size_t bytes = span_bytes(p.host);
    if (distance(p.offset, bytes) >= nearest) continue;
    nearest = distance(p.offset, bytes);
    text = where(p.name + " " + p.host.type.to_string(), p.offset, bytes, offset);
  }
  return text;
}

void StagedCall::finish(std::span<const std::byte> after) {
  for (std::size_t i = 0; i < image_.size(); ++i)
    if (!writable_[i] && after[i] != image_[i])
      throw InternalError("the kernel wrote " + describe(i) + ", which it may not");
  for (const Place& p : places_)
    if (p.output)
      for_each_row(p.host, [&](std::size_t row, std::size_t bytes) {
        std::memcpy(p.host.data + row, after.data() + p.offset + row, bytes);
      });
}

}  // namespace strata::cuda
