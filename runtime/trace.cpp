#include "runtime/trace.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <numeric>

#include "core/error.h"
#include "runtime/transfer_node.h"

namespace strata::runtime {

TraceRecorder::TraceRecorder(int rank, TraceOf of, std::size_t capacity_per_queue)
    : rank_(rank), of_(of), start_(std::chrono::steady_clock::now()) {
  for (auto& events : events_) events.reserve(capacity_per_queue);
}

std::int64_t TraceRecorder::now_ns() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                              start_)
      .count();
}

bool TraceRecorder::reports_itself(const Program& program, int instruction) const {
  return of_ == TraceOf::queues &&
         !is_disk_transfer(*program.instructions[static_cast<std::size_t>(instruction)].operation);
}

void TraceRecorder::begin(const Program& program, int instruction) {
  if (reports_itself(program, instruction))
    begun_ns_[static_cast<int>(program.instructions[instruction].queue)] = now_ns();
}

void TraceRecorder::end(const Program& program, int instruction) {
  if (reports_itself(program, instruction))
    add(program, instruction, begun_ns_[static_cast<int>(program.instructions[instruction].queue)],
        now_ns());
}

void TraceRecorder::executed(const Program& program, int instruction, std::int64_t begin_ns,
                             std::int64_t end_ns) {
  const std::int64_t start_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(start_.time_since_epoch()).count();
  add(program, instruction, begin_ns - start_ns, end_ns - start_ns);
}

void TraceRecorder::add(const Program& program, int instruction, std::int64_t begin_ns,
                        std::int64_t end_ns) {
  const Instruction& in = program.instructions[instruction];
  const int queue = static_cast<int>(in.queue);
  std::vector<Event>& events = events_[queue];
  if (events.size() == events.capacity()) {
    ++dropped_[queue];
    return;
  }
  events.push_back({program.name, in.label, in.operation->name, in.cost.flops,
                    in.collective ? static_cast<double>(in.link_bytes) : in.cost.bytes, begin_ns,
                    end_ns, in.pass});
}

void TraceRecorder::write(const std::string& path) const {
  const auto close = [](std::FILE* f) { std::fclose(f); };
  std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "w"), close);
  if (!file) throw IoError(path, 0, "cannot create the trace", errno);
  std::fprintf(file.get(), "{\"traceEvents\": [\n");
  for (int q = 0; q < kQueues; ++q)
    std::fprintf(file.get(),
                 "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %d, \"tid\": %d, \"args\": "
                 "{\"name\": \"%s\"}},\n",
                 rank_, q, std::string(name_of(static_cast<Queue>(q))).c_str());
  for (int q = 0; q < kQueues; ++q)
    for (const Event& e : events_[q])
      std::fprintf(file.get(),
                   "{\"ph\": \"X\", \"name\": \"%.*s\", \"cat\": \"%s\", \"pid\": %d, \"tid\": %d, "
                   "\"ts\": %.3f, \"dur\": %.3f, \"args\": {\"operation\": \"%.*s\", \"program\": "
                   "\"%.*s\", \"flops\": %.0f, \"bytes\": %.0f}},\n",
                   static_cast<int>(e.label.size()), e.label.data(),
                   std::string(name_of(e.pass)).c_str(), rank_, q,
                   static_cast<double>(e.begin_ns) / 1e3,
                   static_cast<double>(e.end_ns - e.begin_ns) / 1e3,
                   static_cast<int>(e.operation.size()), e.operation.data(),
                   static_cast<int>(e.program.size()), e.program.data(), e.flops, e.bytes);
  std::fprintf(file.get(),
               "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %d, \"args\": {\"name\": "
               "\"rank %d\"}}\n], \"otherData\": {\"dropped\": %lld}}\n",
               rank_, rank_,
               static_cast<long long>(std::accumulate(dropped_.begin(), dropped_.end(), 0LL)));
  if (std::fflush(file.get()) != 0 || std::ferror(file.get()) != 0)
    throw IoError(path, 0, "cannot write the trace", errno);
}

}  // namespace strata::runtime
