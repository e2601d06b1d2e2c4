// A record of what ran when, for ui.perfetto.dev (Chrome trace event format).
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "runtime/observer.h"

namespace strata::runtime {

/// Whose work a trace shows.
enum class TraceOf : std::uint8_t {
  queues,  ///< threads that run instructions themselves
  device,  ///< a device that instructions are enqueued on; asks its executor for times
};

/// Keeps up to `capacity` instructions per queue (reserved at construction: recording allocates
/// nothing); later ones are counted and dropped. Write after the executor is idle.
class TraceRecorder final : public Observer {
 public:
  TraceRecorder(int rank, TraceOf of, std::size_t capacity_per_queue = 200'000);
  void begin(const Program& program, int instruction) override;
  void end(const Program& program, int instruction) override;
  [[nodiscard]] bool wants_device_times() const override { return of_ == TraceOf::device; }
  void executed(const Program& program, int instruction, std::int64_t begin_ns,
                std::int64_t end_ns) override;
  /// Throws IoError. Times in microseconds since construction.
  void write(const std::string& path) const;

 private:
  struct Event {
    std::string_view program, label, operation;
    double flops, bytes;
    std::int64_t begin_ns, end_ns;
    Pass pass;
  };
  [[nodiscard]] std::int64_t now_ns() const;
  /// Whether its queue's thread measures it, by begin and end.
  [[nodiscard]] bool reports_itself(const Program& program, int instruction) const;
  void add(const Program& program, int instruction, std::int64_t begin_ns, std::int64_t end_ns);

  int rank_;
  TraceOf of_;
  std::chrono::steady_clock::time_point start_;
  std::array<std::vector<Event>, kQueues> events_;
  std::array<std::int64_t, kQueues> begun_ns_{};
  std::array<std::int64_t, kQueues> dropped_{};
};

}  // namespace strata::runtime
