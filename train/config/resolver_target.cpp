// Checks what is said about the memory to plan for.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_size.h"
#include "core/too_few_bytes.h"
#include "train/config/flag_table.h"
#include "train/config/optimizer_recipe.h"
#include "train/config/resolver.h"

namespace strata::train {
namespace {

std::string without_blanks(std::string text) {
  std::erase(text, ' ');
  return text;
}

/// True for "24GB,16GB". A part without a unit is one of a number that has a comma in it:
/// "24,000MB".
bool is_list_of_targets(const std::string& typed) {
  const std::string text = without_blanks(typed);
  const std::vector<std::string_view> parts = listed(text);
  return parts.size() > 1 && std::ranges::all_of(parts, [](std::string_view part) {
           const bool has_unit = part.find_first_not_of("0123456789. ") != part.npos;
           return part == "auto" || !both_readings_of_size(part).empty() ||
                  (has_unit && parse_byte_size(part));
         });
}

}  // namespace

void Resolver::note_given_homes() {
  const Given* limit = given("target.offload");
  if (limit == nullptr || options_.target.offload == plan::Home::disk) return;
  for (const auto& [option, home] :
       {std::pair("offload.optimizer", options_.offload.optimizer),
        std::pair("offload.parameters", options_.offload.parameters),
        std::pair("offload.activations", options_.offload.activations)})
    if (const Given* said = given(option); said != nullptr && home > options_.target.offload)
      findings_.notes.push_back(fmt::format(
          "{}: stays as it was given; {} limits what is chosen alone", said->where, limit->where));
}

void Resolver::check_lossy() {
  const Given* said = given("target.lossy");
  if (said == nullptr) return;
  std::vector<std::string> kept;
  for (const std::string& name : options_.target.lossy) {
    if (name == "none" || std::ranges::find(kept, name) != kept.end()) continue;
    TrainOptions with = options_;
    std::string unused;
    if (name == "fp32-master" || name == "packed-master" ||
        !assign(with, "state_recipe", {name}, unused).empty())
      wrong_value("target.lossy",
                  fmt::format("found '{}', expected recipes of --state-recipe that change results: "
                              "bf16-moments, packed-bf16-moments, 8bit, bf16-sr; or none",
                              name));
    else if (const std::string needs = missing_for_recipe(with); !needs.empty())
      problem(said->where, fmt::format("found {}, which needs {}; leave it out", name, needs));
    else if (with.dtype == DType::f32)
      problem(said->where,
              fmt::format("found {}, which needs parameters of 16 bits; give --dtype bf16, or "
                          "leave it out",
                          name));
    kept.push_back(name);
  }
  options_.target.lossy = kept;
  const auto unused = [&](const std::string& why) {
    findings_.notes.push_back(said->where + ": accepted, unused: " + why);
    options_.target.lossy.clear();
  };
  if (kept.empty()) return;
  if (given("plan") != nullptr)
    unused("a Plan from a file is run as it is");
  else if (const Given* recipe = given("state_recipe"))
    unused(recipe->where + " was given, and stays");
  else if (options_.target.memory.empty() && !command_line_.chooses)
    unused("without --target-memory SIZE (or auto) nothing is chosen; give both");
  else if (options_.target.strategy == plan::Strategy::conservative)
    unused("--strategy conservative changes no result");
}

void Resolver::check_target() {
  TargetOptions& target = options_.target;
  note_given_homes();
  const bool wanted = given("target.memory") != nullptr;
  if (!wanted && given("target.strategy") != nullptr) target.memory = "auto";
  if (!wanted && target.memory.empty()) {
    const Given* limit = given("target.offload");
    if (limit != nullptr && given("plan") != nullptr)
      findings_.notes.push_back(limit->where +
                                ": accepted, unused: a Plan from a file is run as it is");
    else if (limit != nullptr && !command_line_.chooses)
      findings_.notes.push_back(limit->where +
                                ": accepted, unused: it limits what --target-memory SIZE (or auto) "
                                "may choose, and without that nothing is chosen; give both");
    return;
  }
  const char* option = wanted ? "target.memory" : "target.strategy";
  if (target.memory != "auto") {
    const char* example = flag(option) != nullptr ? "24GB or 24GiB" : "\"24GB\" or \"24GiB\"";
    const std::optional<std::int64_t> bytes = parse_byte_size(target.memory);
    if (const std::string both = both_readings_of_size(target.memory); !both.empty())
      wrong_value(option,
                  fmt::format("found '{}', which has two readings; write {}", target.memory, both));
    else if (is_list_of_targets(target.memory))
      wrong_value(option, fmt::format("found '{}', expected one amount of memory; plan "
                                      "--target-memory {} plans for each",
                                      target.memory, without_blanks(target.memory)));
    else if (!bytes || *bytes == 0 || *bytes == kUnlimitedMemory)
      wrong_value(option, fmt::format("found '{}', expected an amount of memory such as 24GB (GB "
                                      "is 1e9 bytes, GiB 2^30), or auto for what is free",
                                      target.memory));
    else if (*bytes < kLeastMeantBytes)
      wrong_value(option, fmt::format("found '{}', {}", target.memory,
                                      too_few_bytes(target.memory, *bytes, example)));
  }
  const auto excludes = [&](const char* excluded, const std::string& why) {
    if (const Given* other = given(excluded))
      problem(given(option)->where,
              fmt::format("cannot be combined with {}: {}", other->where, why));
  };
  excludes("plan", "a Plan from a file is run as it is");
  excludes("offload.device_memory_bytes",
           "it limits the arena alone, and the target all memory of the device; give one of them");
}

}  // namespace strata::train
