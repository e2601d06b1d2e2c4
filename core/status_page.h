// One page per rank that outlives the rank and says where it is and how far it has come. The rank
// writes it with plain stores; the launcher reads it while the rank lives and after it died (design
// 2.16). The other way it carries what the rank must obey: its lease and a word to stop. No locks.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "core/event_ring.h"
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
  char collective_name[128];                 ///< the collective under way; empty: none
  char error[2048];                          ///< first error of this rank, as it will be thrown
  std::int32_t attempt;                      ///< start of the run that the rank belongs to, from 0
  std::atomic<std::int64_t> phase_since_ns;  ///< boot_time_ns when the phase was entered
  /// Grows with whatever the rank gets done, and stands still while it waits.
  std::atomic<std::uint64_t> beats;
  /// The longest time without a beat that the rank foresees, as while a device runs a step; 0:
  /// none.
  std::atomic<std::int64_t> quiet_ns;
  std::atomic<std::int64_t> committed_step;  ///< of the last checkpoint; -1: none by this process
  char checkpoint[1024];                     ///< its folder; empty: none
  std::atomic<double> loss;                  ///< of the last step, NaN: none yet
  std::atomic<double> tokens_per_second;     ///< of all ranks, smoothed; 0: not known yet
  std::atomic<std::int64_t> tier_bytes[4];   ///< arenas on the device, pinned, pageable, on disk
  std::atomic<std::int64_t> work_ns;       ///< in which this rank waited for no other; 0: not known
  std::atomic<std::int64_t> worked_steps;  ///< over which work_ns was added up
  EventRing events;                        ///< instructions and collectives, the last ones
  /// Step of the newest checkpoint that could not be written; -1: none, or one was since.
  std::atomic<std::int64_t> failed_save_step;
  std::atomic<std::int64_t> saves_fail_since_ns;  ///< boot_time_ns of the first such failure
  char failed_save[1024];                         ///< why, of the newest one

  // What follows is written by the launcher.
  std::atomic<std::int64_t> lease_until_ns;  ///< boot_time_ns; after it the rank must not commit
  std::atomic<std::uint32_t> stop;           ///< not 0: the rank must end
  char stop_reason[512];                     ///< complete before `stop` is set
};

/// A lease that does not end.
inline constexpr std::int64_t kNoLeaseEnd = std::numeric_limits<std::int64_t>::max();

/// A mapped status page. The rank writes, the launcher reads.
class StatusPage {
 public:
  /// Creates a memfd of the right size, in the launcher or in a rank without a launcher.
  static StatusPage create(int rank, int attempt = 0);
  /// Maps an existing page. Throws HostError when its size or layout version differs.
  static StatusPage open(int fd);
  StatusPage(StatusPage&&) noexcept;
  StatusPage& operator=(StatusPage&&) noexcept;
  ~StatusPage();

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] StatusPageData& data() const { return *data_; }

  void set_step(std::int64_t step);
  /// Time in the phase starts again only if it is another phase.
  void set_phase(Phase phase);
  /// `name` is copied, and truncated if it is too long. `index` -1: none is under way.
  void set_instruction(std::int64_t index, std::string_view name);
  /// It stays shown as the one begun last.
  void end_instruction();
  /// `number` is what comm::Communicator::begun returns during the collective.
  void begin_collective(std::int64_t number, std::string_view name);
  void end_collective();
  void set_error(std::string_view message);
  /// Tells the launcher that the rank gets on. Every other setter of the rank does so, too. Any
  /// thread may call.
  void beat();
  void set_quiet(double seconds);
  void set_committed(std::int64_t step, std::string_view folder);
  /// Tells the launcher that the checkpoint of `step` could not be written; forget_failed_save()
  /// that one could. One thread at a time.
  void set_failed_save(std::int64_t step, std::string_view why);
  void forget_failed_save();
  void set_rates(double loss, double tokens_per_second);
  /// Adds the seconds of one step in which this rank waited for no other.
  void add_work(double seconds);

  /// The launcher's part. The first word to stop stays.
  void set_lease(std::int64_t until_ns);
  void order_stop(std::string_view reason);
  /// The rank's answers: true if the lease has ended; the reason to stop, nullopt: none.
  [[nodiscard]] bool lease_ended() const;
  [[nodiscard]] std::optional<std::string> stop_reason() const;

  /// Returns the name of the collective under way; "": none.
  [[nodiscard]] std::string collective_name() const;
  /// Returns the name of the instruction begun last; "": none.
  [[nodiscard]] std::string instruction_name() const;
  /// Describes where the rank is, as in "step 12, backward, instruction 340
  /// 'layer3.attention_backward', in collective 18 'reduce_scatter layer4.matrices'".
  [[nodiscard]] std::string describe() const;

 private:
  StatusPage(UniqueFd fd, StatusPageData* data);
  UniqueFd fd_;
  StatusPageData* data_ = nullptr;
};

}  // namespace strata
