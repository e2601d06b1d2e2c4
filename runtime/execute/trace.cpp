#include "runtime/execute/trace.h"

#include <fmt/core.h>
#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/clock.h"
#include "core/json_writer.h"
#include "runtime/execute/host_queues.h"
#include "runtime/graph/transfer_node.h"
#include "runtime/program/memory_timeline.h"

namespace strata::runtime {
namespace {

/// The number of the track that shows whole steps.
constexpr int kStepTrack = kQueues;

template <typename... Values>
void append(std::string& text, fmt::format_string<const Values&...> format,
            const Values&... values) {
  fmt::format_to(std::back_inserter(text), format, values...);
}

}  // namespace

/// Collects lines, and passes them on whenever they are a piece.
class TraceRecorder::Pieces {
 public:
  Pieces(std::size_t bytes, const std::function<void(std::string_view)>& hear)
      : bytes_(bytes), hear_(hear) {}
  /// Returns the text to which the next lines are to be appended.
  std::string& text() {
    if (text_.size() >= bytes_) pass_on();
    return text_;
  }
  void pass_on() {
    if (!text_.empty()) hear_(text_);
    text_.clear();
  }

 private:
  std::size_t bytes_;
  const std::function<void(std::string_view)>& hear_;
  std::string text_;
};

TraceRecorder::TraceRecorder(const TraceOptions& options) : options_(options) {
  for (auto& events : events_) events.reserve(options.capacity_per_queue);
}

void TraceRecorder::starting(const Program& program, std::int64_t step) {
  const std::int64_t run = started_.load(std::memory_order_relaxed);
  runs_[static_cast<std::size_t>(run % kRuns)] = {&program, step};
  started_.store(run + 1, std::memory_order_release);
}

bool TraceRecorder::reports_itself(const Program& program, int instruction) const {
  return options_.of == TraceOf::queues &&
         !is_disk_transfer(*program.instructions[static_cast<std::size_t>(instruction)].operation);
}

/// Finds an instruction's run: within a run, a queue begins instructions in list order.
void TraceRecorder::follow(const Program& program, int instruction) {
  Place& place = places_[static_cast<std::size_t>(program.instructions[instruction].queue)];
  const bool same_run = place.of.program == &program && instruction > place.instruction;
  place.instruction = instruction;
  if (same_run) return;
  const std::int64_t started = started_.load(std::memory_order_acquire);
  place.run = std::max(place.run + 1, started - kUnderWay);
  const auto at = [&] { return runs_[static_cast<std::size_t>(place.run % kRuns)]; };
  while (place.run + 1 < started && at().program != &program) ++place.run;
  place.of = at();
}

void TraceRecorder::begin(const Program& program, int instruction) {
  const Instruction& in = program.instructions[static_cast<std::size_t>(instruction)];
  // The instructions of a device are followed in executed().
  if (options_.of == TraceOf::device && !is_host_queue(in.queue)) return;
  follow(program, instruction);
  Place& place = places_[static_cast<std::size_t>(in.queue)];
  if (is_asked_for(place)) place.begun_ns = monotonic_ns();
}

void TraceRecorder::end(const Program& program, int instruction) {
  if (!reports_itself(program, instruction)) return;
  const Place& place = places_[static_cast<std::size_t>(program.instructions[instruction].queue)];
  if (is_asked_for(place)) add(program, instruction, place.begun_ns, monotonic_ns());
}

void TraceRecorder::executed(const Program& program, int instruction, std::int64_t begin_ns,
                             std::int64_t end_ns) {
  if (!is_host_queue(program.instructions[static_cast<std::size_t>(instruction)].queue))
    follow(program, instruction);
  add(program, instruction, begin_ns, end_ns);
}

void TraceRecorder::add(const Program& program, int instruction, std::int64_t begin_ns,
                        std::int64_t end_ns) {
  const auto queue = static_cast<std::size_t>(program.instructions[instruction].queue);
  const Place& place = places_[queue];
  if (!is_asked_for(place)) return;
  std::vector<Event>& events = events_[queue];
  if (events.size() == events.capacity()) {
    ++dropped_[queue];
    return;
  }
  events.push_back({place.run, &program, place.of.step + 1, begin_ns - options_.zero_ns,
                    end_ns - options_.zero_ns, instruction});
}

std::int64_t TraceRecorder::dropped() const {
  return std::accumulate(dropped_.begin(), dropped_.end(), std::int64_t{0});
}

void TraceRecorder::write_instructions(Pieces& pieces) const {
  for (int q = 0; q < kQueues; ++q)
    for (const Event& e : events_[static_cast<std::size_t>(q)]) {
      const Instruction& in = of(e);
      append(pieces.text(),
             R"({{"ph": "X", "name": {}, "cat": {}, "pid": {}, "tid": {}, "ts": {:.3f}, )"
             R"("dur": {:.3f}, "args": {{"step": {}, "operation": {}, "program": {}, )"
             R"("flops": {:.0f}, "bytes": {:.0f}}}}},)"
             "\n",
             quoted_json(in.label), quoted_json(name_of(in.pass)), options_.rank, q,
             static_cast<double>(e.begin_ns) / 1e3,
             static_cast<double>(e.end_ns - e.begin_ns) / 1e3, e.step,
             quoted_json(in.operation->name), quoted_json(e.program->name), in.demand.flops,
             in.collective ? static_cast<double>(in.demand.moved_bytes) : in.demand.bytes);
    }
}

/// Writes each step as a span from the first to the last instruction that computes for it; these
/// spans follow one another.
void TraceRecorder::write_steps(Pieces& pieces) const {
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> spans;
  for (const Event& e : events_[static_cast<std::size_t>(Queue::compute)]) {
    const auto [at, fresh] = spans.try_emplace(e.step, e.begin_ns, e.end_ns);
    at->second.first = std::min(at->second.first, e.begin_ns);
    at->second.second = std::max(at->second.second, e.end_ns);
  }
  for (const auto& [step, span] : spans)
    append(pieces.text(),
           R"({{"ph": "X", "name": "step {}", "cat": "step", "pid": {}, "tid": {}, "ts": {:.3f}, )"
           R"("dur": {:.3f}, "args": {{"step": {}}}}},)"
           "\n",
           step, options_.rank, kStepTrack, static_cast<double>(span.first) / 1e3,
           static_cast<double>(span.second - span.first) / 1e3, step);
}

/// Writes the bytes in use whenever they change, at the beginning of an instruction that computes.
void TraceRecorder::write_memory(Pieces& pieces) const {
  std::map<const Program*, LiveBytes> live;
  TierBytes before{};
  for (const Event& e : events_[static_cast<std::size_t>(Queue::compute)]) {
    const auto [at, fresh] = live.try_emplace(e.program);
    if (fresh) at->second = MemoryTimeline(*e.program).live_bytes();
    const TierBytes& bytes = at->second[static_cast<std::size_t>(e.instruction)];
    if (std::exchange(before, bytes) == bytes) continue;
    std::string& text = pieces.text();
    append(text,
           R"({{"ph": "C", "name": "arena bytes in use", "pid": {}, "ts": {:.3f}, "args": {{)",
           options_.rank, static_cast<double>(e.begin_ns) / 1e3);
    for (const Tier tier : {Tier::device, Tier::pinned})
      append(text, R"({}"{}": {})", tier == Tier::device ? "" : ", ", name_of(tier),
             bytes[static_cast<std::size_t>(tier)]);
    text += "}},\n";
  }
}

std::span<const TraceRecorder::Event> TraceRecorder::of_run(int queue, std::size_t from,
                                                            std::int64_t run) const {
  const std::vector<Event>& events = events_[static_cast<std::size_t>(queue)];
  std::size_t end = from;
  while (end < events.size() && events[end].run == run) ++end;
  return std::span(events).subspan(from, end - from);
}

/// Goes through the runs, which each queue took up in their order: only instructions of one run
/// wait for one another.
void TraceRecorder::write_arrows(Pieces& pieces) const {
  struct End {
    int queue;
    std::int64_t ns;
  };
  std::array<std::size_t, kQueues> from{};
  std::unordered_map<std::int32_t, End> ends;  // of a run, by instruction
  std::int64_t number = 0;
  const std::int64_t runs = started_.load(std::memory_order_relaxed);
  for (std::int64_t run = 0; run < runs; ++run) {
    ends.clear();
    std::array<std::span<const Event>, kQueues> events;
    for (int q = 0; q < kQueues; ++q) {
      const auto queue = static_cast<std::size_t>(q);
      events[queue] = of_run(q, from[queue], run);
      from[queue] += events[queue].size();
      for (const Event& e : events[queue]) ends[e.instruction] = {q, e.end_ns};
    }
    for (int q = 0; q < kQueues; ++q)
      for (const Event& e : events[static_cast<std::size_t>(q)])
        for (const std::int32_t other : of(e).waits) {
          const auto end = ends.find(other);
          if (end == ends.end()) continue;
          const std::string id = fmt::format("{}.{}", options_.rank, number++);
          // The ends lie just inside the slices, since an arrow belongs to the slice that
          // is around its end.
          const double begun = static_cast<double>(end->second.ns) / 1e3 - 0.001;
          const double ended = static_cast<double>(e.begin_ns) / 1e3;
          append(pieces.text(),
                 R"({{"ph": "s", "name": "waits for", "cat": "wait", "id": "{}", "pid": {}, )"
                 R"("tid": {}, "ts": {:.3f}}},)"
                 "\n"
                 R"({{"ph": "f", "bp": "e", "name": "waits for", "cat": "wait", "id": "{}", )"
                 R"("pid": {}, "tid": {}, "ts": {:.3f}}},)"
                 "\n",
                 id, options_.rank, end->second.queue, begun, id, options_.rank, q, ended);
        }
  }
}

void TraceRecorder::write_names(Pieces& pieces) const {
  append(pieces.text(),
         R"({{"ph": "M", "name": "process_name", "pid": {0}, "args": {{"name": "rank {0}"}}}},
{{"ph": "M", "name": "thread_name", "pid": {0}, "tid": {1}, "args": {{"name": "steps"}}}},
{{"ph": "M", "name": "thread_sort_index", "pid": {0}, "tid": {1}, "args": {{"sort_index": -1}}}},
)",
         options_.rank, kStepTrack);
  for (int q = 0; q < kQueues; ++q)
    append(
        pieces.text(),
        R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": "{}"}}}},)"
        "\n",
        options_.rank, q, name_of(static_cast<Queue>(q)));
}

void TraceRecorder::for_each_piece(std::size_t piece_bytes,
                                   const std::function<void(std::string_view)>& hear) const {
  Pieces pieces(piece_bytes, hear);
  write_names(pieces);
  write_steps(pieces);
  write_instructions(pieces);
  write_memory(pieces);
  write_arrows(pieces);
  pieces.pass_on();
}

std::string TraceRecorder::events() const {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  std::string text;
  for_each_piece(kPieceBytes, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace strata::runtime
