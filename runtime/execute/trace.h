// Records what ran when, for ui.perfetto.dev (Chrome trace event format).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/execute/observer.h"

namespace strata::runtime {

/// Says whose work a trace shows.
enum class TraceOf : std::uint8_t {
  queues,  ///< threads that run instructions themselves
  device,  ///< a device on which instructions are enqueued; asks its executor for times
};

/// A range of steps as people count them, from 1; both ends are included.
struct TraceSteps {
  std::int64_t first = 1;
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
};

struct TraceOptions {
  int rank = 0;
  TraceOf of = TraceOf::queues;
  TraceSteps steps;
  std::size_t capacity_per_queue = 100'000;
  /// The moment from which times count, by std::chrono::steady_clock; all ranks of a run share it.
  std::int64_t zero_ns = 0;
};

/// Keeps up to `capacity_per_queue` instructions per queue, of the steps that were asked for;
/// further ones are counted and dropped. Memory is reserved at construction, so recording allocates
/// nothing. events() reads Programs: call it once the executor is idle, and while it exists.
class TraceRecorder final : public Observer {
 public:
  struct Event {
    std::int64_t run;  ///< counts executions of Programs
    const Program* program;
    std::int64_t step;  ///< counted from 1
    std::int64_t begin_ns, end_ns;
    std::int32_t instruction;
  };

  explicit TraceRecorder(const TraceOptions& options);
  /// Returns the most memory that a recorder with these options holds until it is written.
  static std::int64_t most_bytes(const TraceOptions& options) {
    return static_cast<std::int64_t>(kQueues * options.capacity_per_queue * sizeof(Event));
  }
  void starting(const Program& program, std::int64_t step) override;
  void begin(const Program& program, int instruction) override;
  void end(const Program& program, int instruction) override;
  [[nodiscard]] bool wants_device_times() const override { return options_.of == TraceOf::device; }
  void executed(const Program& program, int instruction, std::int64_t begin_ns,
                std::int64_t end_ns) override;

  /// Returns the rank's tracks as events of the format, each on a line that ends with a comma:
  /// instructions with their steps, the steps themselves, bytes of the arenas in use, and an arrow
  /// to each instruction from those of other queues that it waited for.
  [[nodiscard]] std::string events() const;
  /// Calls hear(text) for pieces of whole lines, about `piece_bytes` each, that make up events():
  /// the text of a long run is larger than what it was recorded in.
  void for_each_piece(std::size_t piece_bytes,
                      const std::function<void(std::string_view)>& hear) const;
  /// Returns what a queue ran, in the order in which it ended.
  [[nodiscard]] const std::vector<Event>& recorded(Queue queue) const {
    return events_[static_cast<std::size_t>(queue)];
  }
  /// Returns the number of instructions for which there was no room, of all queues or of one.
  [[nodiscard]] std::int64_t dropped() const;
  [[nodiscard]] std::int64_t dropped(Queue queue) const {
    return dropped_[static_cast<std::size_t>(queue)];
  }

 private:
  /// One execution of a Program.
  struct Run {
    const Program* program = nullptr;
    std::int64_t step = 0;
  };
  /// The position of a queue's thread. Queues take up Programs in the order of their start; a queue
  /// that has nothing to do in a Program is not seen there.
  struct Place {
    std::int64_t run = -1;
    Run of;
    std::int32_t instruction = 0;
    std::int64_t begun_ns = 0;
  };
  [[nodiscard]] const Instruction& of(const Event& event) const {
    return event.program->instructions[static_cast<std::size_t>(event.instruction)];
  }
  /// True if the thread of its queue measures it, by begin and end.
  [[nodiscard]] bool reports_itself(const Program& program, int instruction) const;
  /// True if what the queue runs now is of a step that was asked for; others cost no clock.
  [[nodiscard]] bool is_asked_for(const Place& place) const {
    return options_.steps.first <= place.of.step + 1 && place.of.step + 1 <= options_.steps.last;
  }
  void follow(const Program& program, int instruction);
  void add(const Program& program, int instruction, std::int64_t begin_ns, std::int64_t end_ns);
  class Pieces;
  void write_names(Pieces& pieces) const;
  void write_instructions(Pieces& pieces) const;
  void write_steps(Pieces& pieces) const;
  void write_memory(Pieces& pieces) const;
  void write_arrows(Pieces& pieces) const;
  /// Returns the events of run `run` that begin at `from` in the list of a queue.
  [[nodiscard]] std::span<const Event> of_run(int queue, std::size_t from, std::int64_t run) const;

  /// The number of runs that are kept: as many of the last ones as can be under way, and as many to
  /// come, so that a run is not overwritten while it is read.
  static constexpr std::int64_t kUnderWay = 4, kRuns = 2 * kUnderWay;

  TraceOptions options_;
  std::array<Run, kRuns> runs_{};
  std::atomic<std::int64_t> started_{0};
  std::array<std::vector<Event>, kQueues> events_;
  std::array<Place, kQueues> places_{};
  std::array<std::int64_t, kQueues> dropped_{};
};

}  // namespace strata::runtime
