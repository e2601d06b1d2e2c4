// One page per rank that outlives it: where the rank is, written with plain stores by the
// executor's observer, read by the launcher after the rank died (design 2.16). No thread, no locks.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/unique_fd.h"

namespace strata {

enum class Phase : std::uint32_t {
  starting,
  loading,
  planning,
  forward,
  backward,
  update,
  evaluate,
  saving,
  done,
  failed
};
std::string_view name_of(Phase phase);

/// The shared layout. Strings are NUL-terminated; a torn string is harmless, it is only shown.
struct StatusPageData {
  std::uint64_t magic;
  std::uint32_t version;
  std::int32_t rank;
  std::atomic<std::int64_t> step;
  std::atomic<std::uint32_t> phase;
  std::atomic<std::int64_t> instruction;  ///< index in the running Program, -1: none
  std::atomic<std::int64_t> collective;   ///< number of the last one begun
  char instruction_name[128];
  char collective_name[128];  ///< the collective under way, empty: none
  char error[2048];           ///< first error of this rank, as it will be thrown
};

/// A mapped status page. The rank writes, the launcher reads.
class StatusPage {
 public:
  /// Creates a memfd of the right size (launcher, or a rank without launcher).
  static StatusPage create(int rank);
  /// Maps an existing one. Throws HostError when the layout version differs.
  static StatusPage open(int fd);
  StatusPage(StatusPage&&) noexcept;
  StatusPage& operator=(StatusPage&&) noexcept;
  ~StatusPage();

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] StatusPageData& data() const { return *data_; }

  void set_step(std::int64_t step);
  void set_phase(Phase phase);
  /// `name` is copied (truncated).
  void set_instruction(std::int64_t index, std::string_view name);
  /// `number`: comm::Communicator::begun during the collective.
  void begin_collective(std::int64_t number, std::string_view name);
  void end_collective();
  void set_error(std::string_view message);

  /// "step 12, backward, instruction 340 'layer3.attention_backward', in collective 18
  /// 'reduce_scatter layer4.matrices'"
  [[nodiscard]] std::string describe() const;

 private:
  StatusPage(UniqueFd fd, StatusPageData* data);
  UniqueFd fd_;
  StatusPageData* data_ = nullptr;
};

}  // namespace strata
