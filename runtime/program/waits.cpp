#include "runtime/program/waits.h"

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/program/stretches.h"

namespace strata::runtime {
namespace {

constexpr std::int32_t kNone = -1;

/// The instructions that touched a stretch of an arena last: the writer, and a reader per queue.
struct LastTouch {
  std::int32_t writer = kNone;
  std::array<std::int32_t, kQueues> readers;
  LastTouch() { readers.fill(kNone); }
};

/// Tells what is complete when an instruction starts: the latest list index per queue.
using VectorClock = std::array<std::int32_t, kQueues>;

class WaitPlacer {
 public:
  explicit WaitPlacer(Program& program) : program_(program), clocks_(program.instructions.size()) {
    for (VectorClock& clock : queue_clocks_) clock.fill(kNone);
  }

  void run() {
    const auto count = static_cast<std::int32_t>(program_.instructions.size());
    for (std::int32_t i = 0; i < count; ++i) place(i);
    place_border();
  }

 private:
  void place(std::int32_t index) {
    Instruction& in = program_.instructions[index];
    needed_.fill(kNone);
    const auto reads = [&](const Operand& o) { touch(index, o, false); };
    const auto writes = [&](const Operand& o) { touch(index, o, true); };
    std::for_each(in.inputs.begin(), in.inputs.end(), reads);
    if (in.predicate) reads(*in.predicate);
    std::for_each(in.outputs.begin(), in.outputs.end(), writes);
    if (in.workspace) writes(*in.workspace);

    VectorClock& clock = queue_clocks_[static_cast<int>(in.queue)];
    in.waits.clear();
    // The latest comes first, since its clock may already cover the other queues.
    std::vector<std::int32_t> wanted;
    for (int q = 0; q < kQueues; ++q)
      if (q != static_cast<int>(in.queue) && needed_[q] != kNone) wanted.push_back(needed_[q]);
    std::sort(wanted.rbegin(), wanted.rend());
    for (std::int32_t other : wanted) {
      const int queue = static_cast<int>(program_.instructions[other].queue);
      if (clock[queue] >= other) continue;
      in.waits.push_back(other);
      for (int q = 0; q < kQueues; ++q) clock[q] = std::max(clock[q], clocks_[other][q]);
    }
    clock[static_cast<int>(in.queue)] = index;
    clocks_[index] = clock;
  }

  void touch(std::int32_t index, const Operand& operand, bool write) {
    const Instruction& in = program_.instructions[index];
    const int queue = static_cast<int>(in.queue);
    maps_[static_cast<int>(operand.tier)].visit(operand.offset_bytes,
                                                operand.offset_bytes + touched_bytes(in, operand),
                                                [&](LastTouch& touch) {
                                                  need(index, touch.writer);
                                                  if (write) {
                                                    for (std::int32_t& reader : touch.readers) {
                                                      need(index, reader);
                                                      reader = kNone;
                                                    }
                                                    touch.writer = index;
                                                  } else {
                                                    touch.readers[queue] = index;
                                                  }
                                                });
  }

  void need(std::int32_t index, std::int32_t other) {
    if (other == kNone || other == index) return;
    std::int32_t& latest = needed_[static_cast<int>(program_.instructions[other].queue)];
    latest = std::max(latest, other);
  }

  /// All Programs share the arenas: the first instruction of each queue waits until the previous
  /// Program has finished on every other queue; FIFO covers the rest.
  void place_border() {
    std::array<bool, kQueues> seen{};
    for (Instruction& in : program_.instructions) {
      bool& first = seen[static_cast<int>(in.queue)];
      if (!first) in.border_waits = ((1u << kQueues) - 1) & ~(1u << static_cast<int>(in.queue));
      first = true;
    }
  }

  Program& program_;
  std::vector<VectorClock> clocks_;
  std::array<VectorClock, kQueues> queue_clocks_{};
  std::array<std::int32_t, kQueues> needed_{};
  std::array<Stretches<LastTouch>, kTiers> maps_;
};

}  // namespace

void place_waits(Program& program) { WaitPlacer(program).run(); }

}  // namespace strata::runtime
