// Sorts what --report-to names: tools that have files here, those that are known, others.
#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/ascii.h"
#include "core/nearest_name.h"
#include "train/config/resolver.h"

namespace strata::train {
namespace {

constexpr std::array<std::string_view, 2> kWritten{"tensorboard", "csv"};
/// The other integrations of transformers' Trainer.
constexpr std::array<std::string_view, 14> kNotBuilt{
    "wandb",    "comet_ml",   "comet",   "mlflow", "trackio", "neptune", "clearml",
    "azure_ml", "codecarbon", "dagshub", "flyte",  "dvclive", "swanlab", "aim"};

bool is_among(const std::string& word, std::span<const std::string_view> names) {
  return std::ranges::any_of(names, [&](std::string_view name) { return same_word(word, name); });
}

}  // namespace

void Resolver::check_logs() {
  std::vector<std::string>& report_to = options_.logs.report_to;
  const Given* said = given("logs.report_to");
  const std::string where = said == nullptr ? "" : said->where;
  std::vector<std::string> kept;
  for (const std::string& word : report_to) {
    const bool all = same_word(word, "all");  // the tools that are there
    if (all || is_among(word, kWritten)) {
      std::string name = all ? "tensorboard" : word;
      name = ascii_lower_case(std::move(name));
      if (std::ranges::find(kept, name) == kept.end()) kept.push_back(name);
    } else if (is_among(word, kNotBuilt)) {
      findings_.notes.push_back(fmt::format(
          "{} {}: accepted, unused: nothing is written for it; tensorboard and csv write files",
          where, word));
    } else if (!same_word(word, "none")) {
      std::vector<std::string_view> names(kWritten.begin(), kWritten.end());
      names.insert(names.end(), kNotBuilt.begin(), kNotBuilt.end());
      wrong_value("logs.report_to", fmt::format("found '{}', expected tensorboard, csv or none{}",
                                                word, suggestion(word, names)));
    }
  }
  report_to = kept;
  if (const Given* folder = given("logs.directory"); folder != nullptr && report_to.empty())
    findings_.notes.push_back(folder->where +
                              ": nothing is written there without --report-to tensorboard or csv");
}

}  // namespace strata::train
