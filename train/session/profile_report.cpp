#include "train/session/profile_report.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <tuple>

#include "core/json_writer.h"

namespace strata::train {
namespace {

using runtime::Queue;

/// Says for people where the device's rates come from.
std::string source_of(const machine::Machine& machine) {
  const machine::Device& device = machine.device;
  const bool guessed = device.fp32_flops.source == machine::Source::assumed;
  if (machine.host_is_device())
    return guessed ? "not measured"
                   : fmt::format("measured on {} threads", machine.processor.cores.whole());
  const std::string name = device.names.empty() ? "this device" : device.names.front();
  return (guessed ? "not known of " : std::string(name_of(device.fp32_flops.source)) + " of ") +
         name;
}

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string time_text(double seconds) {
  return std::abs(seconds) < 0.9995 ? number("%.2f ms", 1e3 * seconds) : number("%.3f s", seconds);
}

constexpr std::size_t kWidth = 100;  ///< columns in a line of the table

}  // namespace

std::string shape_of(const runtime::Instruction& in) {
  std::string text;
  const kernels::TensorType* last = nullptr;
  int repeated = 0;
  const auto close = [&] {
    if (repeated > 1) text += fmt::format(" x{}", repeated);
  };
  for (const auto* operands : {&in.inputs, &in.outputs})
    for (const runtime::Operand& operand : *operands) {
      const kernels::TensorType& type = operand.type;
      if (last != nullptr && last->dtype == type.dtype && last->shape == type.shape) {
        ++repeated;
        continue;
      }
      close();
      if (last == nullptr || last->dtype != type.dtype)
        text += (last == nullptr ? "" : ", ") + std::string(name_of(type.dtype));
      text += " [";
      for (int i = 0; i < type.shape.ndim(); ++i)
        text += fmt::format("{}{}", i == 0 ? "" : ",", type.shape[i]);
      text += "]";
      last = &type;
      repeated = 1;
    }
  close();
  return text;
}

ProfileReport make_report(const runtime::ProfileRecorder& profile,
                          const machine::Machine& machine) {
  ProfileReport report;
  report.first_step = profile.first_step();
  report.steps = profile.steps();
  report.machine = machine;
  report.queues = profile.queues();
  if (report.steps == 0) return report;
  const auto steps = static_cast<double>(report.steps);
  report.step_seconds = static_cast<double>(profile.wall_ns()) * 1e-9 / steps;
  std::map<std::tuple<Queue, std::string, std::string>, ProfileRow> rows;
  for (const runtime::InstructionTime& time : profile.instructions()) {
    const runtime::Instruction& in =
        time.program->instructions[static_cast<std::size_t>(time.instruction)];
    const std::string operation(in.operation->name), shape = shape_of(in);
    ProfileRow& row = rows[{in.queue, operation, shape}];
    row.queue = in.queue;
    row.operation = operation;
    row.shape = shape;
    const double runs = static_cast<double>(time.runs) / steps;
    row.count += runs;
    row.seconds += static_cast<double>(time.ns) * 1e-9 / steps;
    row.flops += in.demand.flops * runs;
    row.bytes += in.demand.bytes * runs;
    row.bound_seconds += machine::least_seconds(machine, in.demand) * runs;
  }
  for (auto& [key, row] : rows) {
    row.share = row.seconds / report.step_seconds;
    report.rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(report.rows, std::greater{}, &ProfileRow::loss_seconds);
  return report;
}

std::string to_json(const ProfileReport& report, int rank) {
  JsonWriter json(0);
  json.begin_object().member("rank", rank);
  json.member("first_step", report.first_step + 1).member("steps", report.steps);
  json.member("seconds_per_step", report.step_seconds);
  json.key("rates").begin_object();
  const machine::Device& device = report.machine.device;
  json.member("source", source_of(report.machine));
  json.member("fp32_flops", device.fp32_flops.value);
  json.member("half_flops", device.bf16_flops.value);
  json.member("memory_bytes", device.bytes_per_second.value);
  json.member("peer_bytes", report.machine.peer_rate.value).end_object();
  json.key("queues").begin_array();
  const auto steps = static_cast<double>(std::max<std::int64_t>(report.steps, 1));
  for (const Queue queue : runtime::kAllQueues) {
    const runtime::QueueTime& time = report.queues[static_cast<std::size_t>(queue)];
    if (time.busy_ns == 0) continue;
    json.begin_object().member("queue", name_of(queue));
    json.member("busy_seconds", static_cast<double>(time.busy_ns) * 1e-9 / steps);
    json.member("waited_seconds", static_cast<double>(time.waited_ns) * 1e-9 / steps).end_object();
  }
  json.end_array().key("rows").begin_array();
  for (const ProfileRow& row : report.rows) {
    json.begin_object().member("queue", name_of(row.queue)).member("operation", row.operation);
    json.member("shape", row.shape).member("count", row.count);
    json.member("seconds", row.seconds).member("share", row.share);
    json.member("bound_seconds", row.bound_seconds).key("ratio");
    if (row.bound_seconds > 0)
      json.value(row.seconds / row.bound_seconds);
    else
      json.null();
    json.member("loss_seconds", row.loss_seconds());
    json.member("flops", row.flops).member("bytes", row.bytes).end_object();
  }
  return json.end_array().end_object().finish();
}

std::string profile_file(std::string_view device, const std::vector<std::string>& ranks) {
  std::string text = "{\"device\": " + quoted_json(device) + ", \"ranks\": [\n";
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    text += ranks[rank];
    text += rank + 1 < ranks.size() ? ",\n" : "\n";
  }
  return text + "]}\n";
}

std::string describe(const ProfileReport& report, int most_rows) {
  const auto steps = static_cast<double>(std::max<std::int64_t>(report.steps, 1));
  const auto share = [&](std::int64_t ns) {
    return number("%.1f %%", 100 * static_cast<double>(ns) * 1e-9 / steps / report.step_seconds);
  };
  std::string text = fmt::format("profile of steps {} to {}, {} each:", report.first_step + 1,
                                 report.first_step + report.steps, time_text(report.step_seconds));
  std::int64_t waited = 0;
  for (const Queue queue : runtime::kAllQueues) {
    const runtime::QueueTime& time = report.queues[static_cast<std::size_t>(queue)];
    waited += time.waited_ns;
    if (time.busy_ns > 0)
      text += " " + std::string(name_of(queue)) + " busy " + share(time.busy_ns) + ",";
  }
  text += " computation waited " + share(waited) +
          "\nlargest loss first (time above what rates allow, " + source_of(report.machine) +
          "), per step:\n";
  text += "       loss        time   share  of bound   count  operation\n";
  for (std::size_t i = 0; i < report.rows.size() && i < static_cast<std::size_t>(most_rows); ++i) {
    const ProfileRow& row = report.rows[i];
    char line[512];
    std::snprintf(
        line, sizeof line, "%11s %11s %5.1f %%  %8s %7.6g  ", time_text(row.loss_seconds()).c_str(),
        time_text(row.seconds).c_str(), 100 * row.share,
        row.bound_seconds > 0 ? number("%.2f", row.seconds / row.bound_seconds).c_str() : "-",
        row.count);
    std::string whole = line + row.operation + " " + row.shape;
    if (row.queue != Queue::compute) whole += " (" + std::string(name_of(row.queue)) + ")";
    if (whole.size() > kWidth) whole = whole.substr(0, kWidth - 3) + "...";
    text += whole + "\n";
  }
  return text;
}

}  // namespace strata::train
