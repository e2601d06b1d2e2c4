// The steps of resolve(), and private to it.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "train/config/command_line.h"
#include "train/config/deepspeed_json.h"
#include "train/config/option_fields.h"
#include "train/config/resolve.h"

namespace strata::train {

class Resolver {
 public:
  Resolver(const ParsedCommandLine& command_line, const DeepSpeedSettings& file, int world,
           const ModelConfig& model);
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Takes every option from its flag, else from the file.
  void take_given_values();
  /// Takes steps or epochs, and how often things happen.
  void take_length();
  /// Sets the defaults for going on from stored weights, for options that are not given.
  void take_stored_model(const StoredModel& stored);
  /// Takes what the optimizer's type implies for other options.
  void take_optimizer();
  void take_precision();
  void take_batch();
  /// Takes bucket sizes from the model's width if the file says "auto".
  void take_zero();
  void take_scheduler();
  void take_recomputation();
  /// Call after take_zero() and take_recomputation().
  void take_offload();
  /// Says which flags and keys nothing reads, and answers the "auto" of such keys. Call after all
  /// that takes values.
  void check_unread();
  /// Checks combinations of options.
  void check();
  /// Throws ConfigError if there are problems; InvalidArgument if all of them are values of flags
  /// that are wrong by themselves, as parse_train_command_line() does.
  ResolvedConfig finish();

 private:
  struct Source {
    Origin origin = Origin::default_value;
    std::string where;
  };

  void take(const OptionField& field);
  /// The text "--lr 2e-4 wins over ds.json:1: optimizer.params.lr: 1e-3".
  static std::string contradiction(const Given& flag, const Given& file);
  void note_contradiction(const Given& flag, const Given& file);
  [[nodiscard]] const Given* flag(std::string_view option) const;
  [[nodiscard]] const Given* in_file(std::string_view option) const;
  /// The source of the value: the flag, else the file; null: neither.
  [[nodiscard]] const Given* given(std::string_view option) const;
  [[nodiscard]] const Given* fact(std::string_view path) const;
  [[nodiscard]] Origin origin(std::string_view option) const;
  /// True if neither flag nor file gives a value ("auto" gives none).
  [[nodiscard]] bool is_open(std::string_view option) const;
  /// True if the file switches 16-bit types off without leaving one of them to the flags.
  [[nodiscard]] bool file_says_fp32() const;
  /// Marks an open option as derived, and its "auto" as answered.
  void derived(std::string_view option);
  /// True if a planner chooses what is not given.
  [[nodiscard]] bool is_planned() const;
  /// True if the option's value is known only when the data are.
  [[nodiscard]] bool waits_for_data(std::string_view option) const;
  void report_open_autos();
  void problem(const std::string& where, const std::string& text);
  /// Reports a value of the option that is wrong whatever else is given.
  void wrong_value(std::string_view option, const std::string& text);
  void take_min_lr();
  void take_warmup_ratio();
  void check_schedule();
  void check_cycle();
  void check_length_of_schedule();
  void check_plan();
  void check_checkpoint_ratio();
  void check_actions();
  void check_state_recipe();
  void check_logs();
  void note_given_homes();
  void warn_of_unread(const std::vector<std::string_view>& options, std::string_view chosen);
  void warn_of_unread_flags(const std::vector<std::string_view>& options, const std::string& type);
  void warn_of_unread_keys(const std::vector<std::string_view>& options, const std::string& type);
  void note_other_minimum();
  void note_off_sections();
  /// Says that a flag which sets the option overrules a section that is off in the file and has
  /// other keys that would count; "" if none does.
  [[nodiscard]] std::string off_section(std::string_view section, std::string_view option) const;
  void check_target();
  void check_lossy();
  void check_loss_scale();
  void check_checkpoints();
  void check_virtual_ranks();
  void check_nonfinite();
  void check_model_limits();
  void take_nvme_paths();
  void check_nvme();
  void check_stages();
  void check_unused_offload();
  void note_planned();

  const ParsedCommandLine& command_line_;
  const DeepSpeedSettings& file_;
  const int world_;
  const ModelConfig& model_;
  ResolvedConfig resolved_;
  TrainOptions& options_;
  Findings findings_;
  std::size_t wrong_flags_ = 0;  ///< problems that are values of flags
  std::vector<OptionField> fields_;
  std::map<std::string, Source, std::less<>> sources_;
  Settings open_autos_;  ///< values "auto" in the file that nothing has answered yet
  std::set<std::string, std::less<>> left_open_;  ///< those that no plan depends on
};

}  // namespace strata::train
