#include "launcher/views/status_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "core/format_bytes.h"
#include "core/text_table.h"
#include "launcher/views/told_members.h"

namespace strata::launcher {
namespace {

using Align = TextTable::Align;

constexpr const char* kUnknown = "-";

std::string without_control_characters(std::string text) {
  for (char& byte : text)
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) byte = '?';
  return text;
}

std::string word(const JsonValue& object, std::string_view name) {
  const std::string text = told_text(object, name);
  return text.empty() ? kUnknown : without_control_characters(text);
}

std::string whole(const std::optional<double>& value) {
  return value ? fmt::format("{:.0f}", *value) : kUnknown;
}

std::vector<JsonValue> all_of(const JsonValue& run, std::string_view name) {
  const auto all = told_member(run, name);
  return all && all->is(JsonKind::array) ? all->elements() : std::vector<JsonValue>{};
}

std::vector<JsonValue> ranks_of(const JsonValue& run) { return all_of(run, "ranks"); }

/// "waits for hosts for 35 s of 5 min: 1 of 4 there, 3 needed; missing: 1; refused: 2"
std::string waiting_line(const JsonValue& run) {
  const auto waiting = told_member(run, "waiting");
  if (!waiting || !waiting->is(JsonKind::object)) return "";
  const auto seconds = told_number(*waiting, "seconds"),
             limit = told_number(*waiting, "limit_seconds");
  std::string text = fmt::format(
      "waits for hosts for {} of {}: {} of {} there, {} needed",
      seconds ? duration_text(*seconds) : kUnknown, limit ? duration_text(*limit) : kUnknown,
      whole(told_number(*waiting, "hosts_there")), whole(told_number(*waiting, "hosts_of_run")),
      whole(told_number(*waiting, "hosts_needed")));
  for (const char* what : {"missing", "refused"})
    if (const std::string names = word(*waiting, what); names != kUnknown)
      text += fmt::format("; {}: {}", what, names);
  return text + "\n";
}

/// The largest that any rank tells.
std::optional<double> most(const std::vector<JsonValue>& ranks, std::string_view name) {
  std::optional<double> found;
  for (const JsonValue& rank : ranks)
    if (const auto value = told_number(rank, name); value && (!found || *value > *found))
      found = value;
  return found;
}

std::string memory_text(const JsonValue& rank) {
  const auto tiers = told_member(rank, "memory_bytes");
  if (!tiers || !tiers->is(JsonKind::object)) return kUnknown;
  std::string text;
  for (const auto& [tier, bytes] : tiers->members())
    if (bytes.is_number() && bytes.as_number() > 0)
      text += (text.empty() ? "" : ", ") + format_bytes(bytes.as_number()) + " " +
              without_control_characters(tier);
  return text.empty() ? kUnknown : text;
}

std::string phase_text(const JsonValue& rank) {
  if (told_true(rank, "ended")) return "ended";
  const char* how = told_true(rank, "frozen") ? " (frozen)"
                    : told_true(rank, "held") ? " (stopped)"
                                              : "";
  return word(rank, "phase") + how;
}

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 120) return fmt::format("{} s", whole);
  const std::int64_t minutes = whole / 60, hours = minutes / 60;
  if (hours < 2) return fmt::format("{} min", minutes);
  if (hours < 48) return fmt::format("{} h {} min", hours, minutes % 60);
  return fmt::format("{} d {} h", hours / 24, hours % 24);
}

std::string runs_table(const std::vector<JsonValue>& runs) {
  TextTable table({{"run"},
                   {"program"},
                   {"state"},
                   {"for", Align::right},
                   {"ranks", Align::right},
                   {"step", Align::right},
                   {"loss", Align::right},
                   {"tokens/s", Align::right},
                   {"saved step", Align::right},
                   {"restarts in an hour", Align::right}});
  for (const JsonValue& run : runs) {
    const std::vector<JsonValue> ranks = ranks_of(run);
    const auto seconds = told_number(run, "seconds");
    const auto loss = most(ranks, "loss");
    const auto saved = told_number(run, "committed_step");
    const auto restarts = told_number(run, "restarts_in_hour");
    table.add(
        {word(run, "run"), word(run, "program"), word(run, "state"),
         seconds ? duration_text(*seconds) : kUnknown,
         ranks.empty() ? kUnknown : std::to_string(ranks.size()), whole(most(ranks, "step")),
         loss ? fmt::format("{:.4f}", *loss) : kUnknown, whole(most(ranks, "tokens_per_second")),
         whole(saved ? saved : most(ranks, "committed_step")),
         restarts ? whole(restarts) + " of " + whole(told_number(run, "max_restarts")) : kUnknown});
  }
  return table.text();
}

std::vector<ShownSaveFailure> save_failures(const JsonValue& run) {
  std::vector<ShownSaveFailure> found;
  for (const JsonValue& rank : ranks_of(run)) {
    const auto failure = told_member(rank, "failed_save");
    if (!failure || !failure->is(JsonKind::object)) continue;
    const ShownSaveFailure one{told_number(*failure, "step").value_or(0),
                               told_number(*failure, "seconds").value_or(0), word(*failure, "why")};
    const auto same = std::ranges::find_if(found, [&](const ShownSaveFailure& other) {
      return other.step == one.step && other.why == one.why;
    });
    if (same == found.end())
      found.push_back(one);
    else
      same->seconds = std::max(same->seconds, one.seconds);
  }
  std::ranges::stable_sort(found, std::ranges::greater(), &ShownSaveFailure::step);
  return found;
}

std::string save_failures_text(const JsonValue& run) {
  std::string text;
  for (const ShownSaveFailure& one : save_failures(run))
    text += fmt::format(
        "saves have failed for {}: the checkpoint of step {:.0f} could not be "
        "written: {}\n",
        duration_text(one.seconds), one.step, one.why);
  return text;
}

std::string trouble_text(const std::vector<JsonValue>& runs) {
  std::string text;
  for (const JsonValue& run : runs) {
    const std::string why = word(run, "why");
    std::string lines = save_failures_text(run);
    if (word(run, "state") == "no answer" && why != kUnknown) lines += "no answer: " + why + "\n";
    if (lines.empty()) continue;
    text += (runs.size() > 1 ? "run " + word(run, "run") + ":\n" : "") + lines;
  }
  return text;
}

std::string hosts_table(const JsonValue& run) {
  const std::vector<JsonValue> hosts = all_of(run, "hosts");
  if (hosts.size() < 2 && !told_member(run, "waiting")) return "";
  TextTable table({{"host"},
                   {"name"},
                   {"address"},
                   {"slots", Align::right},
                   {"ranks", Align::right},
                   {"state"},
                   {"why"}});
  for (const JsonValue& host : hosts)
    table.add({word(host, "host"), word(host, "name"), word(host, "address"),
               whole(told_number(host, "slots")), whole(told_number(host, "ranks")),
               word(host, "state"), word(host, "why")});
  return waiting_line(run) + table.text();
}

std::string ranks_table(const JsonValue& run) {
  TextTable table({{"rank", Align::right},
                   {"phase"},
                   {"for", Align::right},
                   {"got on", Align::right},
                   {"memory"},
                   {"saved in"},
                   {"where"}});
  for (const JsonValue& rank : ranks_of(run)) {
    const auto seconds = told_number(rank, "phase_seconds"),
               age = told_number(rank, "progress_age_seconds");
    table.add({whole(told_number(rank, "rank")), phase_text(rank),
               seconds ? duration_text(*seconds) : kUnknown,
               age ? duration_text(*age) + " ago" : kUnknown, memory_text(rank),
               word(rank, "checkpoint"), word(rank, "where")});
  }
  return table.text();
}

}  // namespace strata::launcher
