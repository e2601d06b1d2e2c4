// The steps of resolve(); private to it.
#pragma once

#include <map>
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

  /// Every option from its flag, else from the file.
  void take_given_values();
  /// Steps or epochs, and how often things happen.
  void take_length();
  /// Defaults for going on from stored weights, where nothing else is said.
  void take_stored_model(const StoredModel& stored);
  /// What a type of optimizer says besides.
  void take_optimizer();
  void take_precision();
  void take_batch();
  /// Bucket sizes from the model's width where the file says "auto".
  void take_zero();
  void take_scheduler();
  void take_recomputation();
  /// Call after take_zero() and take_recomputation().
  void take_offload();
  /// What no single option can be blamed for.
  void check();
  /// Throws ConfigError when there are problems.
  ResolvedConfig finish();

 private:
  struct Source {
    Origin origin = Origin::default_value;
    std::string where;
  };

  void take(const OptionField& field);
  void note_contradiction(const Given& flag, const Given& file);
  [[nodiscard]] const Given* flag(std::string_view option) const;
  [[nodiscard]] const Given* in_file(std::string_view option) const;
  /// What said the value: flag, else file; nullptr: neither.
  [[nodiscard]] const Given* given(std::string_view option) const;
  [[nodiscard]] const Given* fact(std::string_view path) const;
  [[nodiscard]] Origin origin(std::string_view option) const;
  /// Did neither flag nor file give a value ("auto" is none)?
  [[nodiscard]] bool is_open(std::string_view option) const;
  /// Does the file switch 16-bit types off, without leaving one of them to the flags?
  [[nodiscard]] bool file_says_fp32() const;
  /// Marks an open option as derived, and its "auto" as answered.
  void derived(std::string_view option);
  /// Is the value of this option known only when the data are?
  [[nodiscard]] bool waits_for_data(std::string_view option) const;
  void report_open_autos();
  void problem(const std::string& where, const std::string& text);
  void take_min_lr();
  void take_warmup_ratio();
  void check_schedule();
  void check_plan();
  void check_checkpoint_ratio();
  void check_state_recipe();
  void check_logs();
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
  std::vector<OptionField> fields_;
  std::map<std::string, Source, std::less<>> sources_;
  Settings open_autos_;  ///< "auto" of the file that nothing has answered yet
};

}  // namespace strata::train
