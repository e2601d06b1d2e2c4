#include "train/session/plan_command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/nearest_name.h"
#include "machine/hardware_override.h"
#include "train/config/flag_table.h"

namespace strata::train {
namespace {

template <typename Number>
Number number(std::string_view flag, std::string_view text, Number least, std::string_view what) {
  Number found{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), found);
  const bool is_one = error == std::errc() && end == text.data() + text.size();
  if (!is_one || !std::isfinite(static_cast<double>(found)) || found < least)
    throw InvalidArgument(fmt::format("{}: found '{}', expected {}", flag, text, what));
  return found;
}

/// Gives each flag its value, whether it is typed as "--flag value" or as "--flag=value".
class Words {
 public:
  Words(int argc, const char* const* argv) : words_(argv + 1, argv + argc) {}

  /// True if the next word is no flag.
  [[nodiscard]] bool is_value_next() const { return !done() && !words_[at_].starts_with('-'); }
  [[nodiscard]] bool done() const { return at_ == words_.size(); }
  /// Returns the next word, a flag without what follows its '='.
  std::string next() {
    std::string word = words_[at_++];
    value_.reset();
    if (const std::size_t equals = word.find('='); word.starts_with('-') && equals != word.npos) {
      value_ = word.substr(equals + 1);
      word.resize(equals);
    }
    return word;
  }
  /// Returns the last word as it was typed.
  [[nodiscard]] const std::string& whole() const { return words_[at_ - 1]; }
  /// Returns the words from the flag on, as they were typed.
  [[nodiscard]] std::string typed(std::size_t from) const {
    return fmt::format("{}", fmt::join(words_.begin() + from, words_.begin() + at_, " "));
  }
  [[nodiscard]] std::size_t at() const { return at_; }
  /// True if the last word is a flag with a value behind its '='.
  [[nodiscard]] bool has_value() const { return value_.has_value(); }
  std::string value_of(const std::string& flag) {
    if (value_) return *value_;
    if (done()) throw InvalidArgument(flag + " needs a value");
    return words_[at_++];
  }

 private:
  std::vector<std::string> words_;
  std::size_t at_ = 0;
  std::optional<std::string> value_;
};

/// Returns the name of the flag that `word` spells.
std::string flag_of_word(const std::string& word) {
  constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {"-h", "--help"},
      {"--target_memory", "--target-memory"},
      {"--world-size", "--world"},
      {"--world_size", "--world"},
      {"--write_config", "--write-config"}};
  const auto* other =
      std::ranges::find(kOthers, word, &std::pair<std::string_view, std::string_view>::first);
  return other == std::end(kOthers) ? word : std::string(other->second);
}

/// Refuses a flag that was given before with another value: which of both is meant?
class OneValueEach {
 public:
  const std::string& of(const std::string& flag, const std::string& word, std::string value) {
    const auto [at, fresh] = given_.try_emplace(flag, word, std::move(value));
    const auto& [first_word, first_value] = at->second;
    if (!fresh && first_value != value)
      throw InvalidArgument(
          fmt::format("{} {} and {} {}: two values for one setting; leave out one", first_word,
                      first_value, word, value));
    return first_value;
  }

 private:
  std::map<std::string, std::pair<std::string, std::string>> given_;  ///< by flag: word, value
};

/// Refuses a list in which a comma has nothing before or after it.
void refuse_gaps(std::string_view flag, const std::string& text, std::string_view what) {
  std::vector<std::string_view> parts = listed(text);
  if (text.ends_with(',')) parts.emplace_back();
  for (std::size_t i = 0; parts.size() > 1 && i < parts.size(); ++i)
    if (parts[i].find_first_not_of(' ') == parts[i].npos)
      throw InvalidArgument(
          fmt::format("{}: found '{}', whose part {} of {} is empty; put {} there, or leave out a "
                      "comma{}",
                      flag, text, i + 1, parts.size(), what,
                      text.ends_with(',') ? " (a blank ends a list)" : ""));
}

/// Splits a list at its commas, and leaves out blanks around its parts.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  for (const std::string_view part : listed(text)) {
    const std::size_t first = std::min(part.find_first_not_of(' '), part.size());
    parts.emplace_back(part.substr(first, part.find_last_not_of(' ') + 1 - first));
  }
  return parts;
}

/// Splits the targets of --target-memory. A number without unit beside others is one that was
/// written with a comma: "24,000MB".
std::vector<std::string> targets_from(const std::string& text) {
  refuse_gaps("--target-memory", text, "a target");
  const std::vector<std::string> targets = parts_of(text);
  if (targets.empty()) return {""};  // refused by name
  const auto is_bare = [](const std::string& target) {
    return !target.empty() && target.find_first_not_of("0123456789.") == target.npos;
  };
  if (targets.size() > 1 && std::ranges::any_of(targets, is_bare))
    throw InvalidArgument(fmt::format(
        "--target-memory: found '{}', where a comma separates targets, and one of them has no "
        "unit; write a number without commas, such as 24000MB, or 24GB,16GB for two targets",
        text));
  return targets;
}

void take(const std::string& word, Words& words, OneValueEach& values, PlanCommandLine& parsed) {
  constexpr std::string_view kCount = "a whole number from 1";
  const std::string flag = flag_of_word(word);
  const auto value = [&] { return values.of(flag, word, words.value_of(word)); };
  constexpr std::string_view kSwitches[] = {"--help", "--version", "--explain", "--json"};
  if (words.has_value() && std::ranges::find(kSwitches, flag) != std::end(kSwitches))
    throw InvalidArgument(fmt::format("{}: {} takes no value; leave it out", words.whole(), word));
  if (flag == "--help") {
    parsed.help = true;
  } else if (flag == "--version") {
    parsed.version = true;
  } else if (flag == "--hardware") {
    const std::string machines = value();
    refuse_gaps(flag, machines, "a machine");
    parsed.hardware = machine::split_hardware_list(machines);
    if (parsed.hardware.empty())
      throw InvalidArgument("--hardware: found '', expected names such as rtx4090,h100");
  } else if (flag == "--target-memory") {
    parsed.targets = targets_from(value());
  } else if (flag == "--world") {
    parsed.world = number(word, value(), 1, kCount);
  } else if (flag == "--hosts") {
    parsed.hosts = number(word, value(), 1, kCount);
  } else if (flag == "--price") {
    parsed.prices.clear();
    const std::string prices = value();
    refuse_gaps(flag, prices, "a price");
    for (const std::string& part : parts_of(prices))
      if (!part.empty())
        parsed.prices.push_back(
            number(word, part, 0.0, "a price per device and hour, such as 2.5"));
  } else if (flag == "--explain") {
    parsed.explains = true;
  } else if (flag == "--json") {
    parsed.json = true;
  } else if (flag == "--write-config") {
    parsed.config_to_write = value();
  } else {
    parsed.train.push_back(words.whole());
  }
}

/// Refuses a word that follows a flag of `plan` and its value, or a switch, and belongs to neither.
/// It would seem to belong to the flag of `train` before them.
void refuse_stray_word(const std::string& word, const std::string& before) {
  const bool is_list = word.starts_with(',') || before.ends_with(',');
  throw InvalidArgument(
      fmt::format("found '{}' after {}{}", word, before,
                  is_list ? fmt::format("; write a list without blanks: {}{}{}", before, word,
                                        word.ends_with(',') ? "..." : "")
                          : ", which takes no more words"));
}

/// Refuses a first word that is almost that of a command of `plan`.
void refuse_misspelt_command(std::string_view word) {
  if (word.starts_with('-')) return;
  if (const std::string meant = suggestion(word, {"compare"}); !meant.empty())
    throw InvalidArgument(fmt::format("plan has no command {}{} (see plan --help)", word, meant));
}

}  // namespace

std::vector<std::string> plan_flags() {
  return {"--hardware", "--hosts", "--target-memory", "--world",
          "--price",    "--json",  "--explain",       "--write-config"};
}

PlanCommandLine parse_plan_command_line(int argc, const char* const* argv) {
  if (argc > 1) refuse_misspelt_command(argv[1]);
  PlanCommandLine parsed;
  std::string problems;
  OneValueEach values;
  for (Words words(argc, argv); !words.done();) {
    const std::size_t begin = words.at(), of_train = parsed.train.size();
    try {
      take(words.next(), words, values, parsed);
      const bool is_own = parsed.train.size() == of_train;
      if (const std::string before = words.typed(begin); is_own && words.is_value_next())
        refuse_stray_word(words.next(), before);
    } catch (const InvalidArgument& error) {
      problems += (problems.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  const std::size_t machines = std::max<std::size_t>(parsed.hardware.size(), 1);
  if (problems.empty() && parsed.prices.size() > 1 && parsed.prices.size() != machines)
    problems = fmt::format("--price: found {} prices for {} machine{}; give one, or one for each",
                           parsed.prices.size(), machines, machines == 1 ? "" : "s");
  if (problems.empty() && parsed.hosts > 0 && parsed.hardware.empty())
    problems = "--hosts needs --hardware: this machine is one host";
  if (problems.empty() && !parsed.config_to_write.empty() &&
      machines * std::max<std::size_t>(parsed.targets.size(), 1) > 1)
    problems = "--write-config writes the settings of one plan; name one machine and one target";
  if (!problems.empty()) throw InvalidArgument(problems);
  return parsed;
}

std::string plan_help() {
  return R"(usage: plan --model MODEL [flags]
       plan compare [--json] FORESEEN MEASURED | --page FILE REPORT RUN...

Says, without weights, data, ranks or a GPU, how a training run would fit into memory, how fast it
would be and what binds it. Settings of batch, ZeRO, checkpointing and offload that are not given
are chosen by the planner; all flags of train work (train --help).

  --target-memory SIZE|auto   memory of each GPU in all, or of each process on the CPU [all of it];
                              24GB,16GB,12GB plans for each: memory against time
  --strategy NAME             conservative, balanced or auto, aggressive, maximum [balanced]
  --allow-offload FARTHEST    none, host or disk [disk, where the machine has one]
  --allow-lossy LIST          what of --state-recipe may be chosen although results change: of
                              bf16-moments, packed-bf16-moments, 8bit, bf16-sr [none]
  --hardware A[,B...]         machines to plan for, one line each: names of configs/hardware or
                              files of doctor --write-hardware [this machine]; figures of a
                              machine change by KEY=VALUE after its name: rtx4090,link=12GB/s,
                              disk=none,h100 is two machines (docs/formats/hardware.md)
  --world N                   ranks in all [all devices of the hardware], spread evenly over --hosts
  --hosts N                   hosts of the hardware [as its file says]
  --price P[,P...]            price of a device for an hour, for all or for each machine
  --output DIR                plan for a run that saves there, which takes memory [saves nothing]
  --plan FILE                 say what this Plan needs, how long its steps are, and whether it fits
  --explain                   list the settings that were compared, with their foreseen times;
                              with --json as "compared"
  --write-plan FILE           write the Plan, for train --plan
  --write-config FILE         write the settings as a DeepSpeed JSON, for train --config
  --json                      print JSON instead of text
  --version                   print the version of Strata

compare says how far off a plan was, operation by operation, worst first, from two directories of
train --memory-report: that of a plan (with --print-plan --steps 0) and that of a run. With --page
it draws the steps of several runs in one page (plan compare -h).

Exit status: 0 if every machine has a plan, 1 if one has none, 2 for a flag or value that is wrong
by itself, 74 for a file or an output that cannot be written, 78 for settings that contradict one
another (such as more memory than the one machine has; of several, that line of the table has no
plan) and for files and names that are not known.
)";
}

}  // namespace strata::train
