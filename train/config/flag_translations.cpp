#include "train/config/flag_translations.h"

#include <cmath>
#include <sstream>
#include <string_view>

#include "core/error.h"
#include "core/json.h"
#include "core/nearest_name.h"
#include "train/config/flag_table.h"
#include "train/config/json_words.h"
#include "train/config/option_fields.h"

namespace strata::train {
namespace {

/// The option that an argument of transformers' schedules sets. Throws InvalidArgument that names
/// the nearest argument.
std::string option_of_argument(const std::string& argument, const std::string& flag) {
  std::vector<std::string_view> known;
  for (const OptionRow& row : option_rows()) {
    for (const std::string_view name : listed(row.argument.names)) {
      if (name == argument) return std::string(row.name);
      known.push_back(name);
    }
  }
  throw InvalidArgument(flag + ": unknown argument '" + argument + "'" +
                        suggestion(argument, known));
}

/// The value's usual spelling ("bf16" for "bfloat16"); unchanged if the words have no meaning.
std::string meaning_of(const std::string& option, const std::vector<std::string>& words) {
  TrainOptions scratch;
  const std::vector<OptionField> fields = option_fields(scratch);
  const OptionField* field = find_field(fields, option);
  std::string text, note;
  if (field != nullptr && assign(*field, words, note).empty()) return text_of(*field);
  for (const std::string& word : words) text += word + ' ';
  return text;
}

}  // namespace

void set_option(const std::string& option, const std::vector<std::string>& words,
                const std::string& flag, ParsedCommandLine& parsed) {
  double number = 0;
  if (option == "dtype" && same_word(words[0], "auto")) return;
  if (option == "checkpoint.resume" && is_one_of(words[0], "false|none")) return;
  if (option == "checkpoint.resume" && words[0].empty())  // a variable of the shell is not set
    throw InvalidArgument(
        flag + ": found '', expected auto, required, never or the folder of a checkpoint");
  const bool is_part = option == "scheduler.warmup_num_steps" && parse_number(words[0], number) &&
                       number > 0 && number < 1;
  const bool by_epoch = option == "checkpoint.every" && same_word(words[0], "epoch");
  const auto [old, added] = parsed.settings.emplace(is_part    ? "scheduler.warmup_ratio"
                                                    : by_epoch ? "checkpoint.strategy"
                                                               : option,
                                                    Given{words, false, flag});
  if (!added && meaning_of(option, old->second.words) != meaning_of(option, words))
    throw InvalidArgument(flag + " " + words[0] + " contradicts " + old->second.where + " " +
                          old->second.words[0]);
}

void take_initial_loss_scale(const std::string& word, ParsedCommandLine& parsed) {
  const std::string flag = "--initial-loss-scale";
  double scale = 0;
  int power = 0;
  if (!parse_number(word, scale) || scale < 1 || std::frexp(scale, &power) != 0.5)
    throw InvalidArgument(flag + ": found '" + word + "', expected a power of two, such as 65536");
  set_option("loss_scale.initial_scale_power", {std::to_string(power - 1)}, flag, parsed);
}

void take_fsdp(const std::vector<std::string>& words, ParsedCommandLine& parsed) {
  std::istringstream parts(joined(words, " "));
  for (std::string word; parts >> word;) {
    if (word == "full_shard" || word == "hybrid_shard")
      set_option("zero.stage", {"3"}, "--fsdp", parsed);
    else if (word == "shard_grad_op")
      set_option("zero.stage", {"2"}, "--fsdp", parsed);
    else if (word == "no_shard")
      set_option("zero.stage", {"0"}, "--fsdp", parsed);
    else if (word == "offload") {
      set_option("offload.optimizer", {"cpu"}, "--fsdp", parsed);
      set_option("offload.parameters", {"cpu"}, "--fsdp", parsed);
    } else if (!is_one_of(word, "auto_wrap|true|false|none"))
      throw InvalidArgument(
          "--fsdp: found '" + word +
          "', expected full_shard, shard_grad_op, no_shard, offload or auto_wrap");
  }
}

void take_scheduler_arguments(const std::string& json, ParsedCommandLine& parsed) {
  const std::string flag = "--lr_scheduler_kwargs";
  JsonOptions options;
  options.fault = JsonFault::configuration;
  try {
    const JsonValue document = parse_json(json, flag, options);
    if (!document.is(JsonKind::object))
      document.fail("expected an object such as {\"min_lr\": 1e-5}");
    for (const auto& [name, value] : document.members())
      if (!value.is(JsonKind::null))
        set_option(option_of_argument(name, flag), {word_of(value)}, flag, parsed);
  } catch (const ConfigError& error) {
    throw InvalidArgument(error.what());
  }
}

}  // namespace strata::train
