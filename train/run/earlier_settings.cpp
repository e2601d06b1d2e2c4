#include "train/run/earlier_settings.h"

#include <map>
#include <sstream>
#include <string_view>
#include <vector>

#include "train/config/option_fields.h"

namespace strata::train {
namespace {

using Texts = std::map<std::string, std::string, std::less<>>;  // by the option's name

bool is_said(std::string_view name, const TrainOptions& options) {
  if (name == "scheduler.total_num_steps" || name == "scheduler.warmup_num_steps")
    return options.scheduler.type != kernels::ScheduleKind::constant;
  return name.starts_with("optimizer.") || name.starts_with("scheduler.") ||
         name == "gradient_clipping" || name == "no_decay";
}

Texts texts_of(TrainOptions options) {
  Texts texts;
  for (const OptionField& field : option_fields(options))
    if (is_said(field.name, options)) texts.emplace(field.name, text_of(field));
  return texts;
}

std::string value_in(const Texts& texts, const std::string& name) {
  const auto found = texts.find(name);
  return found == texts.end() ? "" : found->second;
}

}  // namespace

std::string training_settings(const TrainOptions& options) {
  const Texts usual = texts_of({});
  std::string all;
  for (const auto& [name, text] : texts_of(options))
    if (value_in(usual, name) != text) all += (all.empty() ? "" : ";") + name + "=" + text;
  return all;
}

std::string note_on_settings(const std::optional<std::string>& fact, const TrainOptions& options) {
  if (!fact) return "";
  Texts there = texts_of({}), here = texts_of(options);
  std::istringstream given(*fact);
  for (std::string word; std::getline(given, word, ';');)
    if (const std::size_t equals = word.find('='); equals != std::string::npos)
      there[word.substr(0, equals)] = word.substr(equals + 1);
  std::string text;
  for (const auto& [name, value] : here)
    if (const std::string earlier = value_in(there, name); earlier != value)
      text += (text.empty() ? "" : ", ") + name + " " + (earlier.empty() ? "unset" : earlier) +
              " there, " + (value.empty() ? "unset" : value) + " here";
  return text.empty() ? "" : "this run trains otherwise than the checkpoint's did: " + text;
}

}  // namespace strata::train
