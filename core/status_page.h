// One page per rank that outlives the rank and says where it is. The executor's observer writes it
// with plain stores, the launcher reads it after the rank died (design 2.16). No locks.
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
  running,  ///< a device runs a Program, and the host does not know where in it
  saving,
  done,
  failed
};
std::string_view name_of(Phase phase);

/// The shared layout. Strings end with NUL; a torn string is harmless, since it is only shown.
struct StatusPageData {
  std::uint64_t magic;
  std::uint32_t version;
  std::int32_t rank;
  std::atomic<std::int64_t> step;
  std::atomic<std::uint32_t> phase;
  std::atomic<std::int64_t> instruction;  ///< index in the running Program; -1: none
  std::atomic<std::int64_t> collective;   ///< number of the collective begun last
  char instruction_name[128];
  char collective_name[128];  ///< the collective under way; empty: none
  char error[2048];           ///< first error of this rank, as it will be thrown
};

/// A mapped status page. The rank writes, the launcher reads.
class StatusPage {
 public:
  /// Creates a memfd of the right size, in the launcher or in a rank without a launcher.
  static StatusPage create(int rank);
  /// Maps an existing page. Throws HostError when its size or layout version differs.
  static StatusPage open(int fd);
  StatusPage(StatusPage&&) noexcept;
  StatusPage& operator=(StatusPage&&) noexcept;
  ~StatusPage();

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] StatusPageData& data() const { return *data_; }

  void set_step(std::int64_t step);
  void set_phase(Phase phase);
  /// `name` is copied, and truncated if it is too long.
  void set_instruction(std::int64_t index, std::string_view name);
  /// `number` is what comm::Communicator::begun returns during the collective.
  void begin_collective(std::int64_t number, std::string_view name);
  void end_collective();
  void set_error(std::string_view message);

  /// Describes where the rank is, as in "step 12, backward, instruction 340
  /// 'layer3.attention_backward', in collective 18 'reduce_scatter layer4.matrices'".
  [[nodiscard]] std::string describe() const;

 private:
  StatusPage(UniqueFd fd, StatusPageData* data);
  UniqueFd fd_;
  StatusPageData* data_ = nullptr;
};

}  // namespace strata
