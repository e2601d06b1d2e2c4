#include "train/session/plan_command_line.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "core/error.h"
#include "machine/hardware_override.h"
#include "train/config/flag_table.h"

namespace strata::train {
namespace {

template <typename Number>
Number number(std::string_view flag, std::string_view text, Number least, std::string_view what) {
  Number found{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), found);
  if (error != std::errc() || end != text.data() + text.size() || found < least)
    throw InvalidArgument(fmt::format("{}: found '{}', expected {}", flag, text, what));
  return found;
}

/// Gives each flag its value, whether it is typed as "--flag value" or as "--flag=value".
class Words {
 public:
  Words(int argc, const char* const* argv) : words_(argv + 1, argv + argc) {}

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

void take(const std::string& word, Words& words, PlanCommandLine& parsed) {
  constexpr std::string_view kCount = "a whole number from 1";
  if (word == "--help" || word == "-h") {
    parsed.help = true;
  } else if (word == "--hardware") {
    parsed.hardware = machine::split_hardware_list(words.value_of(word));
    if (parsed.hardware.empty())
      throw InvalidArgument("--hardware: found '', expected names such as rtx4090,h100");
  } else if (word == "--target-memory" || word == "--target_memory") {
    const std::string targets = words.value_of(word);
    parsed.targets.clear();
    for (const std::string_view target : listed(targets)) parsed.targets.emplace_back(target);
    if (parsed.targets.empty()) parsed.targets.emplace_back();  // refused by name
  } else if (word == "--world" || word == "--world-size" || word == "--world_size") {
    parsed.world = number(word, words.value_of(word), 1, kCount);
  } else if (word == "--hosts") {
    parsed.hosts = number(word, words.value_of(word), 1, kCount);
  } else if (word == "--price") {
    parsed.prices.clear();
    const std::string prices = words.value_of(word);
    for (const std::string_view part : listed(prices))
      if (!part.empty())
        parsed.prices.push_back(
            number(word, part, 0.0, "a price per device and hour, such as 2.5"));
  } else if (word == "--explain") {
    parsed.explains = true;
  } else if (word == "--json") {
    parsed.json = true;
  } else if (word == "--write-config" || word == "--write_config") {
    parsed.config_to_write = words.value_of(word);
  } else {
    parsed.train.push_back(words.whole());
  }
}

}  // namespace

PlanCommandLine parse_plan_command_line(int argc, const char* const* argv) {
  PlanCommandLine parsed;
  std::string problems;
  for (Words words(argc, argv); !words.done();) {
    try {
      take(words.next(), words, parsed);
    } catch (const InvalidArgument& error) {
      problems += (problems.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  const std::size_t machines = std::max<std::size_t>(parsed.hardware.size(), 1);
  if (problems.empty() && parsed.prices.size() > 1 && parsed.prices.size() != machines)
    problems = fmt::format("--price: found {} prices for {} machines; give one, or one for each",
                           parsed.prices.size(), machines);
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
       plan compare FORESEEN MEASURED

Says, without weights, data, ranks or a GPU, how a training run would fit into memory, how fast it
would be and what binds it. Settings of batch, ZeRO, checkpointing and offload that are not given
are chosen by the planner; all flags of train work (train --help).

  --target-memory SIZE|auto   memory of each GPU in all, or of each process on the CPU [all of it];
                              24GB,16GB,12GB plans for each: memory against time
  --strategy NAME             conservative, balanced, aggressive or maximum [balanced]
  --allow-offload FARTHEST    none, host or disk [disk, where the machine has one]
  --allow-lossy LIST          what of --state-recipe may be chosen although results change: of
                              bf16-moments, packed-bf16-moments, 8bit, bf16-sr [none]
  --hardware A[,B...]         machines to plan for, one line each: names of configs/hardware or
                              files of doctor --write-hardware [this machine]; figures of a
                              machine change by KEY=VALUE after its name: rtx4090,link=12GB/s,
                              disk=none,h100 is two machines (docs/formats/hardware.md)
  --world N                   ranks [all devices of the hardware]
  --hosts N                   hosts of the hardware [as its file says]
  --price P[,P...]            price of a device for an hour, for all or for each machine
  --plan FILE                 say what this Plan needs, how long its steps are, and whether it fits
  --explain                   list the settings that were compared, with their foreseen times
  --write-plan FILE           write the Plan, for train --plan
  --write-config FILE         write the settings as a DeepSpeed JSON, for train --config
  --json                      print JSON instead of text

compare says how far off a plan was, operation by operation, worst first, from two directories of
train --memory-report: that of a plan (with --print-plan --steps 0) and that of a run.

Exit status: 0 if every machine has a plan, 1 if one has none, 2 for a flag or value that is wrong
by itself, 78 for settings that contradict one another and for files and names that are not known.
)";
}

}  // namespace strata::train
