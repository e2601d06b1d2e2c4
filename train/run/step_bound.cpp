#include "train/run/step_bound.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "core/format_bytes.h"
#include "machine/demand.h"

namespace strata::train {
namespace {

using runtime::Queue;

/// Queues that cross a link or the disk, with their names for people.
constexpr std::array<std::pair<Queue, const char*>, 4> kMoving{{{Queue::disk_read, "disk read"},
                                                                {Queue::disk_write, "disk write"},
                                                                {Queue::upload, "upload"},
                                                                {Queue::download, "download"}}};

const runtime::QueueUsage& of(const runtime::Usage& usage, Queue queue) {
  return usage[static_cast<std::size_t>(queue)];
}

std::string key(const char* name) {
  std::string text = name;
  for (char& c : text)
    if (c == ' ') c = '_';
  return text;
}

std::string text(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

}  // namespace

bool StepBound::moves() const {
  for (const auto& [queue, name] : kMoving)
    if (of(usage, queue).bytes > 0) return true;
  return false;
}

StepBound find_bound(const runtime::Usage& usage, double steps, double seconds,
                     const machine::Machine& machine) {
  StepBound bound;
  bound.usage = usage;
  for (runtime::QueueUsage& queue : bound.usage) {
    queue.busy_seconds /= steps;
    queue.waited_seconds /= steps;
    queue.bytes = static_cast<std::int64_t>(static_cast<double>(queue.bytes) / steps);
  }
  const auto moving = [&](Queue queue, machine::Resource resource) {
    return machine::least_seconds(
        machine, {.resource = resource, .moved_bytes = of(bound.usage, queue).bytes});
  };
  const auto consider = [&](const char* name, double time) {
    if (time <= bound.bound_seconds) return;
    bound.bound_seconds = time;
    bound.limit = name;
  };
  consider("compute", of(bound.usage, Queue::compute).busy_seconds);
  consider("host updates", of(bound.usage, Queue::host).busy_seconds);
  consider("disk", moving(Queue::disk_read, machine::Resource::disk_read) +
                       moving(Queue::disk_write, machine::Resource::disk_write));
  if (!machine.host_is_device()) {
    consider("link up", moving(Queue::upload, machine::Resource::upload));
    consider("link down", moving(Queue::download, machine::Resource::download));
  }
  bound.bound_seconds = std::min(bound.bound_seconds, seconds);
  bound.reached = seconds > 0 ? bound.bound_seconds / seconds : 0;
  return bound;
}

std::string describe(const StepBound& bound) {
  std::string line = "bound " + text("%.3g s per step", bound.bound_seconds) + " (" + bound.limit +
                     "), " + text("%.0f %% of it reached", 100 * bound.reached);
  std::string moved, waits;
  for (const auto& [queue, name] : kMoving) {
    const runtime::QueueUsage& usage = of(bound.usage, queue);
    if (usage.bytes > 0)
      moved += (moved.empty() ? "; " : ", ") + std::string(name) + " " + format_bytes(usage.bytes);
    if (usage.waited_seconds >= 5e-4)
      waits += (waits.empty() ? "; computation waited " : ", ") +
               text("%.3f s for ", usage.waited_seconds) + name;
  }
  return line + moved + waits;
}

std::string to_json_members(const StepBound& bound) {
  std::string bytes, waits;
  for (const auto& [queue, name] : kMoving) {
    const runtime::QueueUsage& usage = of(bound.usage, queue);
    const std::string quoted = (bytes.empty() ? "\"" : ", \"") + key(name) + "\": ";
    bytes += quoted + std::to_string(usage.bytes);
    waits += quoted + text("%.6f", usage.waited_seconds);
  }
  return "\"bound_seconds\": " + text("%.6f", bound.bound_seconds) + ", \"bound_by\": \"" +
         bound.limit + "\", \"bound_reached\": " + text("%.4f", bound.reached) +
         ", \"moved_bytes\": {" + bytes + "}, \"waited_seconds\": {" + waits + "}";
}

}  // namespace strata::train
