// The memory of one tier on one rank: one mapping of the planned size, made before the first step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/unique_fd.h"
#include "kernels/device/device.h"

namespace strata::runtime {

enum class ArenaKind : std::uint8_t {
  private_memory,  ///< anonymous, huge pages where the kernel gives them
  shared_memory,   ///< memfd that ranks of this host map (never /dev/shm: 64 MB in containers)
};

/// Owns the memory. Move-only.
class Arena {
 public:
  Arena() = default;
  /// Takes device or pinned memory of `device`, cleared to zero. Throws OutOfMemory.
  Arena(kernels::Device& device, kernels::MemoryKind kind, std::int64_t bytes);
  /// Maps host memory of this process; its pages are zero. Throws OutOfMemory naming tier and
  /// bytes.
  Arena(std::string tier, std::int64_t bytes, ArenaKind kind);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] int memfd() const { return memfd_.get(); }  ///< -1 if the memory is private
  /// True if the host may touch the memory; else only device().copy_now does.
  [[nodiscard]] bool on_host() const { return on_host_; }
  /// Returns the device that allocated it; for arenas that are not on the host only.
  [[nodiscard]] kernels::Device& device() const { return *device_; }

 private:
  std::byte* base_ = nullptr;
  std::int64_t bytes_ = 0;
  UniqueFd memfd_;
  std::unique_ptr<kernels::Memory> memory_;  ///< memory of a device; null: mapped here
  kernels::Device* device_ = nullptr;        ///< set with memory_
  bool on_host_ = true;
};

}  // namespace strata::runtime
