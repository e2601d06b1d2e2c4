// Memory of one tier of one rank: one mapping of the planned size, made before the first step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/unique_fd.h"

namespace strata::runtime {

enum class ArenaKind : std::uint8_t {
  private_memory,  ///< anonymous, huge pages where the kernel gives them
  shared_memory,   ///< memfd that ranks of this host map (never /dev/shm: 64 MB in containers)
};

/// Owns the mapping; pages are zero at first. Move-only.
class Arena {
 public:
  Arena() = default;
  /// Throws OutOfMemory naming tier and bytes.
  Arena(std::string tier, std::int64_t bytes, ArenaKind kind);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] int memfd() const { return memfd_.get(); }  ///< -1: private

 private:
  std::byte* base_ = nullptr;
  std::int64_t bytes_ = 0;
  UniqueFd memfd_;
};

}  // namespace strata::runtime
