// Interprets facts of a DeepSpeed JSON that are no option by themselves: precision, optimizer,
// scheduler, old forms and paths of offload, autotuning.
#include <optional>
#include <span>

#include "core/nearest_name.h"
#include "train/config/deepspeed_json.h"
#include "train/config/flag_table.h"

namespace strata::train {
namespace {

/// A type of optimizer or scheduler: the option word that it becomes, and the parameters that it
/// needs, separated by commas.
struct TypeRow {
  std::string_view name;
  std::string_view option;  ///< "": not supported
  std::string_view required = "";
  bool removed = false;  ///< DeepSpeed no longer has it
};

constexpr TypeRow kSupportedOptimizers[] = {
    {"Adam", "adamw"},
    {"AdamW", "adamw"},
    {"SGD", "sgd"},
    {"Adagrad", ""},
    {"Lion", "lion"},
    {"Lamb", ""},
    {"Muon", ""},
    {"OneBitAdam", "", "", true},
    {"ZeroOneAdam", "", "", true},
    {"OneBitLamb", "", "", true},
    {"MuAdam", ""},
    {"MuAdamW", ""},
    {"MuSGD", ""},
};
constexpr TypeRow kSupportedSchedulers[] = {
    {"WarmupLR", "WarmupLR"},
    {"WarmupDecayLR", "WarmupDecayLR", "total_num_steps"},
    {"WarmupCosineLR", "WarmupCosineLR", "total_num_steps"},
    {"OneCycle", "OneCycle", "cycle_min_lr,cycle_max_lr"},
    {"LRRangeTest", "LRRangeTest"},
};

class Interpreter {
 public:
  explicit Interpreter(DeepSpeedSettings& read) : read_(read) {}

  void precision() {
    const Given* fp16 = fact("fp16.enabled");
    const Given* bf16 = fact("bf16.enabled");
    const bool half = is_true(fp16);
    const bool brain = is_true(bf16);
    if (half && brain) {
      problem(bf16->where, "found true beside " + fp16->where + ": true, expected one of them");
    } else if (half || brain) {
      read_.settings["dtype"] = {{half ? "fp16" : "bf16"}, false, (half ? fp16 : bf16)->where};
    } else if ((fp16 != nullptr && fp16->automatic) || (bf16 != nullptr && bf16->automatic)) {
      const Given* given = bf16 != nullptr && bf16->automatic ? bf16 : fp16;
      read_.settings["dtype"] = {{"auto"}, true, given->where, true};
    }
  }

  void optimizer() {
    const Given* type = fact("optimizer.type");
    if (type == nullptr) return missing_optimizer();
    const std::optional<TypeRow> row = supported(*type, kSupportedOptimizers);
    if (!row) return;
    read_.settings["optimizer.type"] = {{std::string(row->option)}, false, type->where};
    if (row->option != "adamw") return;
    const bool named_adam = same_word(type->words[0], "Adam");
    const Given* mode = fact("optimizer.params.adam_w_mode");
    const bool decoupled = !named_adam || mode == nullptr || is_true(mode);
    if (!decoupled) {
      read_.settings["optimizer.type"].words = {"adam"};
    } else if (named_adam) {
      note(type->where,
           "\"Adam\" is AdamW (decoupled weight decay), as in DeepSpeed; "
           "\"adam_w_mode\": false adds the decay to the gradient");
    }
    const Given* torch_adam = fact("optimizer.params.torch_adam");
    if (decoupled && is_true(torch_adam) && !read_.settings.contains("optimizer.weight_decay")) {
      read_.settings["optimizer.weight_decay"] = {{"0.01"}, false, torch_adam->where};
      note(torch_adam->where, "the weight decay of torch's AdamW is 0.01 when none is given");
    }
  }

  void scheduler() {
    const Given* type = fact("scheduler.type");
    if (type == nullptr) return missing_scheduler();
    const std::optional<TypeRow> row = supported(*type, kSupportedSchedulers);
    if (!row) return;
    read_.settings["scheduler.type"] = {{std::string(row->option)}, false, type->where};
    for (const std::string_view name : listed(row->required)) {
      if (read_.settings.contains("scheduler." + std::string(name))) continue;
      problem(type->where, std::string(row->name) + " needs scheduler.params." + std::string(name));
    }
  }

  void offload() {
    old_form("zero_optimization.cpu_offload", "offload.optimizer", "offload_optimizer");
    old_form("zero_optimization.cpu_offload_param", "offload.parameters", "offload_param");
    nvme_paths();
  }

  void autotuning() {
    const Given* enabled = fact("autotuning.enabled");
    if (!is_true(enabled) || setting("target.memory") != nullptr) return;
    read_.settings["target.memory"] = {{"auto"}, false, enabled->where};
    note(enabled->where,
         "what is not given is chosen by computing, as with --target-memory auto; nothing runs for "
         "it");
  }

 private:
  /// Reads the old form `path`, true or false, as "device" of `section`, which sets `option`.
  void old_form(std::string_view path, const std::string& option, const std::string& section) {
    const Given* given = fact(path);
    if (given == nullptr || given->automatic) return;
    const std::string device = is_true(given) ? "cpu" : "none";
    const Given* named = setting(option);
    if (named != nullptr && !same_word(named->words[0], device)) {
      problem(given->where, "found " + given->words[0] + ", which contradicts " + named->where +
                                ": " + named->words[0] + "; remove this old form of it");
      return;
    }
    if (named == nullptr) read_.settings[option] = {{device}, false, given->where};
    if (device == "cpu") {
      note(given->where, "an old form of \"" + section + "\": {\"device\": \"cpu\"}");
    }
  }

  /// Makes one list of the folders of both sections and of "strata". Files often name a folder in a
  /// section whose device is not nvme: that folder counts only if no other section needs one.
  void nvme_paths() {
    const Given* optimizer = path_of("offload_optimizer");
    const Given* parameters = path_of("offload_param");
    const bool optimizer_on = optimizer != nullptr && is_nvme("offload.optimizer");
    const bool parameters_on = parameters != nullptr && is_nvme("offload.parameters");
    const bool any_on = optimizer_on || parameters_on;
    if (any_on && !optimizer_on) optimizer = nullptr;
    if (any_on && !parameters_on) parameters = nullptr;
    const Given* first = optimizer != nullptr ? optimizer : parameters;
    if (first == nullptr) return;
    const Given* listed = setting("offload.nvme_paths");
    Given all = listed != nullptr ? *listed : Given{{}, false, first->where};
    for (const Given* given : {optimizer, parameters}) {
      if (given != nullptr) all.words.push_back(given->words[0]);
    }
    if (optimizer_on && parameters_on && optimizer->words != parameters->words) {
      note(parameters->where, "found " + parameters->words[0] + " beside " + optimizer->where +
                                  ": " + optimizer->words[0] +
                                  ", the state of both is striped over all folders");
    }
    read_.settings["offload.nvme_paths"] = all;
  }

  [[nodiscard]] const Given* path_of(const std::string& section) const {
    const Given* given = fact("zero_optimization." + section + ".nvme_path");
    return given == nullptr || given->automatic ? nullptr : given;
  }
  /// The setting of an option; null if it is absent or "auto".
  [[nodiscard]] const Given* setting(const std::string& option) const {
    const auto it = read_.settings.find(option);
    return it == read_.settings.end() || it->second.automatic ? nullptr : &it->second;
  }
  [[nodiscard]] bool is_nvme(const std::string& option) const {
    const Given* given = setting(option);
    return given != nullptr && same_word(given->words[0], "nvme");
  }

  [[nodiscard]] const Given* fact(std::string_view path) const {
    const auto it = read_.facts.find(path);
    return it == read_.facts.end() ? nullptr : &it->second;
  }
  static bool is_true(const Given* given) {
    return given != nullptr && !given->automatic && given->words[0] == "true";
  }
  void note(const std::string& place, const std::string& text) {
    read_.findings.notes.push_back(place + ": " + text);
  }
  void problem(const std::string& place, const std::string& text) {
    read_.findings.problems.push_back(place + ": " + text);
  }

  void missing_optimizer() {
    for (const auto& [option, given] : read_.settings) {
      if (given.where.find("optimizer.params.") == std::string::npos) continue;
      note(given.where,
           "obeyed without \"type\" beside \"params\" (AdamW unless a flag names another); "
           "DeepSpeed ignores it then");
    }
  }

  void missing_scheduler() {
    for (const auto& [option, given] : read_.settings) {
      if (option.starts_with("scheduler.")) problem(given.where, "set without scheduler.type");
    }
  }

  /// Returns the row of a supported type; else reports a problem naming the supported ones.
  std::optional<TypeRow> supported(const Given& type, std::span<const TypeRow> rows) {
    const std::string& name = type.words[0];
    std::string known;
    std::vector<std::string_view> names;
    bool foreign = false, removed = false;
    for (const TypeRow& row : rows) {
      if (same_word(row.name, name) && !row.option.empty()) return row;
      foreign = foreign || same_word(row.name, name);
      removed = removed || (row.removed && same_word(row.name, name));
      names.push_back(row.name);
      if (!row.option.empty()) known += (known.empty() ? "" : ", ") + std::string(row.name);
    }
    problem(type.where, "found '" + name + "', expected one of " + known +
                            (foreign ? "" : suggestion(name, names)) +
                            (removed ? " (DeepSpeed has removed it, too)" : ""));
    return std::nullopt;
  }

  DeepSpeedSettings& read_;
};

}  // namespace

void interpret_facts(DeepSpeedSettings& read) {
  Interpreter interpreter(read);
  interpreter.precision();
  interpreter.optimizer();
  interpreter.scheduler();
  interpreter.offload();
  interpreter.autotuning();
}

}  // namespace strata::train
