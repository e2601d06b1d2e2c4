#include "train/report/compare_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/format_bytes.h"
#include "core/json_writer.h"
#include "core/text_table.h"
#include "train/report/warming_steps.h"

namespace strata::train {
namespace {

/// Settings that change no figure of a report: what is read, printed and written.
const std::set<std::string, std::less<>> kIncidental{"data",
                                                     "dump_state",
                                                     "log_every_seconds",
                                                     "logging_strategy",
                                                     "memory_report",
                                                     "metrics",
                                                     "print_config",
                                                     "print_plan",
                                                     "print_program",
                                                     "profile",
                                                     "steps",
                                                     "steps_per_print",
                                                     "trace",
                                                     "trace_steps",
                                                     "wall_clock_breakdown",
                                                     "write_plan"};

/// True for those, and for all that says where tools' logs go.
bool is_incidental(const std::string& setting) {
  return kIncidental.contains(setting) || setting.starts_with("logs.");
}

void require_comparable(const StoredReport& foreseen, const StoredReport& measured) {
  const AboutReport& one = foreseen.about;
  const AboutReport& other = measured.about;
  if (one.parameters != other.parameters || one.blocks != other.blocks)
    throw InvalidArgument(fmt::format(
        "{} is about another model than {}: {} with {} parameters in {} blocks, and {} with {} in "
        "{}; compare reports of one model",
        foreseen.directory, measured.directory, one.model, one.parameters, one.blocks.size(),
        other.model, other.parameters, other.blocks.size()));
  if (measured.step_seconds.empty())
    throw InvalidArgument(fmt::format(
        "{} is the report of a plan, and nothing was measured there; give first the report of a "
        "plan or run, then that of a run (train --memory-report DIR, with steps)",
        measured.directory));
}

std::string ratio(double measured, double foreseen) {
  return foreseen > 0 ? fmt::format("{:.2f}", measured / foreseen) : "-";
}

/// The steps of a run that are no warming ones, and their mean.
struct MeasuredSteps {
  std::size_t steps = 0;
  double mean_seconds = 0;
};

MeasuredSteps measured_steps(const StoredReport& measured) {
  const std::vector<double>& all = measured.step_seconds;
  const std::size_t first = warming_steps(all.size());
  const std::size_t steps = all.size() - first;
  return {steps, std::accumulate(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(), 0.0) /
                     static_cast<double>(steps)};
}

std::string step_line(const StoredReport& foreseen, const StoredReport& measured) {
  const auto [steps, mean] = measured_steps(measured);
  const double expected = foreseen.about.foreseen_seconds;
  return fmt::format("step: foreseen {:.4g} s, measured {:.4g} s ({} x), the mean of {} {}{}\n",
                     expected, mean, ratio(mean, expected), steps, steps == 1 ? "step" : "steps",
                     without_warming_text(measured.step_seconds.size()));
}

std::string operations_text(const std::vector<OperationDifference>& rows) {
  using enum TextTable::Align;
  TextTable table({{"operation"},
                   {"pass"},
                   {"queue"},
                   {"per step", right},
                   {"foreseen ms", right},
                   {"measured ms", right},
                   {"ratio", right},
                   {"difference ms", right}});
  for (const OperationDifference& row : rows) {
    const OperationTotal& of = row.of;
    table.add({of.operation, of.pass, of.queue, fmt::format("{:.6g}", of.instructions),
               fmt::format("{:.4g}", of.foreseen_ms), fmt::format("{:.4g}", *of.measured_ms),
               ratio(*of.measured_ms, of.foreseen_ms),
               fmt::format("{:+.4g}", row.difference_ms())});
  }
  return table.text();
}

std::int64_t arena_of(const StoredReport& report, const std::string& tier) {
  const auto found = report.about.arena_bytes.find(tier);
  return found == report.about.arena_bytes.end() ? 0 : found->second;
}

std::string amount_text(double bytes) { return bytes > 0 ? format_bytes(bytes) : "-"; }

std::string memory_text(const StoredReport& foreseen, const StoredReport& measured) {
  using enum TextTable::Align;
  TextTable table({{"memory"},
                   {"foreseen", right},
                   {"measured", right},
                   {"ratio", right},
                   {"difference", right}});
  for (const MemoryDifference& row : memory_differences(foreseen, measured)) {
    const double apart = row.difference();
    table.add({row.memory, amount_text(row.foreseen),
               row.measured ? amount_text(*row.measured) : "not known",
               row.measured ? ratio(*row.measured, row.foreseen) : "-",
               apart == 0 ? "-" : (apart > 0 ? "+" : "-") + format_bytes(std::abs(apart))});
  }
  return table.text();
}

/// A value as it is printed: an option that is not set has none.
std::string or_nothing(const std::string& value) { return value.empty() ? "nothing" : value; }

/// A setting that the two reports have with different values.
struct SettingDifference {
  std::string name, foreseen, measured;
};

std::vector<SettingDifference> setting_differences(const StoredReport& foreseen,
                                                   const StoredReport& measured) {
  std::vector<SettingDifference> found;
  const auto add = [&](const std::string& name, const std::string& one, const std::string& other) {
    if (or_nothing(one) != or_nothing(other) && !is_incidental(name))
      found.push_back({name, or_nothing(one), or_nothing(other)});
  };
  for (const auto& [name, value] : foreseen.about.settings) {
    const auto other = measured.about.settings.find(name);
    add(name, value, other == measured.about.settings.end() ? "" : other->second);
  }
  for (const auto& [name, value] : measured.about.settings)
    if (!foreseen.about.settings.contains(name)) add(name, "", value);
  add("ranks", std::to_string(foreseen.about.ranks), std::to_string(measured.about.ranks));
  add("device", foreseen.about.device, measured.about.device);
  return found;
}

std::string settings_text(const StoredReport& foreseen, const StoredReport& measured) {
  std::string text;
  for (const auto& [name, one, other] : setting_differences(foreseen, measured))
    text += fmt::format("  {}: {} foreseen, {} measured\n", name, one, other);
  if (text.empty()) return "";
  return "what was foreseen is not what was run, and figures differ for that, too:\n" + text + "\n";
}

/// True if the run measured how long instructions took.
bool has_times(const StoredReport& measured) {
  return std::ranges::any_of(measured.operations,
                             [](const OperationTotal& row) { return row.measured_ms.has_value(); });
}

}  // namespace

double OperationDifference::difference_ms() const {
  return of.measured_ms.value_or(0) - of.foreseen_ms;
}

std::vector<OperationDifference> differences(const StoredReport& foreseen,
                                             const StoredReport& measured) {
  require_comparable(foreseen, measured);
  std::vector<OperationDifference> rows;
  for (const OperationTotal& row : foreseen.operations) {
    rows.push_back({row});
    rows.back().of.measured_ms = 0;
  }
  for (const OperationTotal& row : measured.operations) {
    auto at = std::ranges::find_if(rows, [&](const OperationDifference& other) {
      return other.of.operation == row.operation && other.of.pass == row.pass &&
             other.of.queue == row.queue;
    });
    if (!row.measured_ms) {  // ran, but nobody knows for how long
      if (at != rows.end()) rows.erase(at);
      continue;
    }
    if (at == rows.end()) {
      at = rows.insert(rows.end(), OperationDifference{row});
      at->of.foreseen_ms = 0;
    }
    at->of.measured_ms = row.measured_ms;
  }
  std::ranges::stable_sort(rows, std::greater<>(), [](const OperationDifference& row) {
    return std::abs(row.difference_ms());
  });
  return rows;
}

double MemoryDifference::difference() const { return measured.value_or(foreseen) - foreseen; }

std::vector<MemoryDifference> memory_differences(const StoredReport& foreseen,
                                                 const StoredReport& measured) {
  std::vector<MemoryDifference> rows;
  for (const auto& [tier, bytes] : foreseen.about.arena_bytes) {
    const std::int64_t there = arena_of(measured, tier);
    if (bytes == 0 && there == 0) continue;
    rows.push_back({tier + " arena", static_cast<double>(bytes), static_cast<double>(there)});
    const auto planned = foreseen.peaks.find(tier), ran = measured.peaks.find(tier);
    if (planned != foreseen.peaks.end() && ran != measured.peaks.end())
      rows.push_back({tier + " buffers, highest", planned->second.planned, ran->second.reached});
  }
  rows.push_back({"process, highest", static_cast<double>(foreseen.about.process_bytes),
                  measured.peak_rss_bytes});
  if (measured.device_bytes)
    rows.push_back({"device in use, highest", static_cast<double>(arena_of(foreseen, "device")),
                    *measured.device_bytes});
  std::ranges::stable_sort(rows, std::greater<>(),
                           [](const MemoryDifference& row) { return std::abs(row.difference()); });
  return rows;
}

std::string comparison_text(const StoredReport& foreseen, const StoredReport& measured) {
  const std::vector<OperationDifference> rows = differences(foreseen, measured);
  std::string text = settings_text(foreseen, measured) + step_line(foreseen, measured);
  text += has_times(measured)
              ? "\n" + operations_text(rows)
              : "the run measured no instructions: it needs 3 steps or more, and on a GPU "
                "--trace or --profile\n";
  text += "\n" + memory_text(foreseen, measured);
  return text +
         "the highest of a process as measured includes pages that processes share, such as those "
         "of libraries\n";
}

std::string comparison_json(const StoredReport& foreseen, const StoredReport& measured) {
  const std::vector<OperationDifference> rows = differences(foreseen, measured);
  const auto [steps, mean] = measured_steps(measured);
  JsonWriter json;
  json.begin_object();
  json.member("foreseen_seconds_per_step", foreseen.about.foreseen_seconds);
  json.member("measured_seconds_per_step", mean).member("measured_steps", steps);
  json.key("operations").begin_array();
  if (has_times(measured))
    for (const OperationDifference& row : rows) {
      json.begin_object().member("operation", row.of.operation).member("pass", row.of.pass);
      json.member("queue", row.of.queue).member("per_step", row.of.instructions);
      json.member("foreseen_ms", row.of.foreseen_ms).member("measured_ms", *row.of.measured_ms);
      json.end_object();
    }
  json.end_array();
  json.key("memory").begin_array();
  for (const MemoryDifference& row : memory_differences(foreseen, measured)) {
    json.begin_object().member("memory", row.memory).member("foreseen_bytes", row.foreseen);
    json.key("measured_bytes");
    row.measured ? json.value(*row.measured) : json.null();
    json.end_object();
  }
  json.end_array();
  json.key("settings").begin_object();
  for (const auto& [name, one, other] : setting_differences(foreseen, measured)) {
    json.key(name).begin_object().member("foreseen", one).member("measured", other).end_object();
  }
  return json.end_object().end_object().finish() + "\n";
}

}  // namespace strata::train
