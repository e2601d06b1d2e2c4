#include "train/config/flag_table.h"

#include <algorithm>
#include <array>

#include "train/config/foreign_flags.h"
#include "train/config/option_fields.h"

namespace strata::train {
namespace {

constexpr FlagRow fixed(std::string_view spellings, std::string_view option, std::string_view word,
                        std::string_view help) {
  return {spellings, FlagUse::fixed, option, 0, 1, "[BOOL]", word, help};
}
constexpr FlagRow control(std::string_view spellings, int words, std::string_view value_name,
                          std::string_view help) {
  return {spellings, FlagUse::control, "", words, words, value_name, "", help};
}
constexpr FlagRow ignored(std::string_view spellings, int least_words, std::string_view why) {
  return {spellings, FlagUse::ignored, "", least_words, 1, "", why};
}

/// A flag whose place in the table is before the flag `next` of an option.
struct Between {
  std::string_view next;
  FlagRow row;
};
constexpr Between kBetween[] = {
    {"--model", FlagRow{"--config,--deepspeed_config,--deepspeed-config,--deepspeed",
                        FlagUse::control, "", 0, 1, "FILE", "", "DeepSpeed JSON, or its base64"}},
    {"--loss-scale", fixed("--bf16", "dtype", "bf16", "the same as --dtype bf16")},
    {"--loss-scale", fixed("--fp16", "dtype", "fp16", "the same as --dtype fp16")},
    {"--loss-scale-window",
     control("--initial-loss-scale", 1, "X", "fp16: first dynamic scale, a power of two")},
    {"--offload-activations", fixed("--offload", "offload.optimizer+offload.parameters", "cpu",
                                    "the same as --offload-optimizer cpu --offload-param cpu")},
    {"--offload-activations", fixed("--cpu-optimizer,--optimizer-cpu-offload", "offload.optimizer",
                                    "cpu", "the same as --offload-optimizer cpu")},
    {"--adam_beta1", FlagRow{"--betas", FlagUse::option, "optimizer.beta1+optimizer.beta2", 2, 2,
                             "X X", "", "decay of the two moments"}},
    {"--activation-checkpointing", control("--lr_scheduler_kwargs,--lr-scheduler-kwargs", 1, "JSON",
                                           "what a schedule of transformers needs besides: min_lr, "
                                           "min_lr_rate, num_decay_steps ...")},
    {"--autotune", fixed("--use_cpu,--no_cuda", "device", "cpu", "the same as --device cpu")},
    {"--autotune",
     FlagRow{"--fsdp", FlagUse::control, "", 0, kAnyNumber, "WORDS", "",
             "full_shard: --zero 3, shard_grad_op: --zero 2, no_shard: --zero 0; offload: to host "
             "memory"}},
};

constexpr FlagRow kLast[] = {
    control("--check-config", 1, "FILE", "check a DeepSpeed JSON, print it resolved, and stop"),
    control("--world-size", 1, "N",
            "with --check-config or --print-plan --steps 0: ranks to assume"),
    control("--hardware", 1, "NAME|FILE[,KEY=VALUE...]",
            "with --print-plan --steps 0: the machine to plan for (configs/hardware, or a file of "
            "doctor --write-hardware), and figures of it to change, such as link=12GB/s,disk=none"),
    control("--strict-config", 0, "", "unknown keys are errors"),
    control("--help,-h", 0, "", "print this text"),
    control("--version", 0, "", "print the version of Strata"),
    ignored("--local_rank", 1, "ranks come from the launcher"),
    foreign::noted("--save_safetensors,--no_save_safetensors", "weights are always safetensors",
                   ""),
    foreign::noted("--with_tracking", foreign::kMetrics),
    ignored("--ddp_timeout", 1, "there is nothing to set"),
    ignored("--dataloader_num_workers", 1, "there are no loader processes"),
};

constexpr std::array kGroups = {
    FlagGroup{"--config", "Configuration file"},
    FlagGroup{"--model", "Model and data"},
    FlagGroup{"--sequence-length", "Batch and steps"},
    FlagGroup{"--dtype", "Precision and sums over ranks"},
    FlagGroup{"--zero", "ZeRO"},
    FlagGroup{"--offload-optimizer", "Memory outside the device, and limits"},
    FlagGroup{"--optimizer", "Optimizer and learning rate"},
    FlagGroup{"--activation-checkpointing", "Activations computed again"},
    FlagGroup{"--device", "Device"},
    FlagGroup{"--output", "Checkpoints"},
    FlagGroup{"--metrics", "What is shown and recorded"},
    FlagGroup{"--check-config", "Without training"},
};

/// The spelling with every '-' or '_' inside replaced by `joint`.
std::string joined_by(char joint, std::string_view spelling) {
  std::string result(spelling);
  for (std::size_t i = result.find_first_not_of('-'); i < result.size(); ++i)
    if (result[i] == '-' || result[i] == '_') result[i] = joint;
  return result;
}

/// Makes an option's flag. A switch also takes true or false, as Hugging Face's scripts pass it.
FlagRow flag_row(const OptionRow& option) {
  const OptionKind kind = kind_of(option);
  return {.spellings = option.flag.spellings,
          .target = option.name,
          .least_words = kind.is_switch ? 0 : 1,
          .most_words = kind.is_list ? kAnyNumber : 1,
          .value_name = option.flag.value_name,
          .comma_separated = option.flag.comma_separated};
}

std::vector<FlagRow> all_flag_rows() {
  std::vector<FlagRow> rows;
  for (const OptionRow& option : option_rows()) {
    if (option.flag.spellings.empty()) continue;
    const FlagRow row = flag_row(option);
    for (const Between& between : kBetween)
      if (between.next == first_spelling(row)) rows.push_back(between.row);
    rows.push_back(row);
  }
  rows.insert(rows.end(), std::begin(kLast), std::end(kLast));
  rows.insert(rows.end(), foreign::kForeignFlags.begin(), foreign::kForeignFlags.end());
  return rows;
}

}  // namespace

std::span<const FlagRow> flag_table() {
  static const std::vector<FlagRow> rows = all_flag_rows();
  return rows;
}

std::span<const FlagGroup> flag_groups() { return kGroups; }

std::vector<std::string_view> listed(std::string_view list, char between) {
  std::vector<std::string_view> parts;
  while (!list.empty()) {
    const std::size_t comma = list.find(between);
    parts.push_back(list.substr(0, comma));
    list = comma == std::string_view::npos ? "" : list.substr(comma + 1);
  }
  return parts;
}

std::string_view first_spelling(const FlagRow& row) {
  return row.spellings.substr(0, row.spellings.find(','));
}

std::string value_name_of(const FlagRow& row) {
  const auto option = std::ranges::find(option_rows(), row.target, &OptionRow::name);
  if (!row.value_name.empty() || option == option_rows().end()) return std::string(row.value_name);
  return kind_of(*option).value_name;
}

std::string flag_of(std::string_view option) {
  for (const FlagRow& row : flag_table()) {
    if (row.use == FlagUse::option && row.target == option)
      return std::string(first_spelling(row)) + " " + value_name_of(row);
  }
  return "a value";
}

std::vector<std::string> spellings_of(const FlagRow& row) {
  std::vector<std::string> spellings;
  for (const std::string_view spelling : listed(row.spellings))
    for (const std::string& word :
         {std::string(spelling), joined_by('-', spelling), joined_by('_', spelling)})
      if (std::ranges::find(spellings, word) == spellings.end()) spellings.push_back(word);
  return spellings;
}

}  // namespace strata::train
