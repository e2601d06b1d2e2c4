#include "train/config/read_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "core/file.h"

namespace strata::train {
namespace {

constexpr std::int64_t kMostPlanBytes = std::int64_t{64} << 20;

/// True if an object may begin or end with the line; false for lines train prints beside a Plan.
bool has_outer_brace(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \t");
  const auto is_brace = [](char letter) { return letter == '{' || letter == '}'; };
  return first != std::string_view::npos && (is_brace(line[first]) || is_brace(line[last]));
}

/// Returns the text from a line "{" to a line "}", if there are such lines. Empty lines replace
/// those before, so that messages give the file's line numbers. Accepts Windows' line ends.
std::string object_in(const std::string& text, const std::string& file) {
  std::istringstream lines(text);
  std::string object, all, stray;
  int begin = 0, end = 0, number = 0;
  for (std::string line; std::getline(lines, line); all += line + "\n") {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (begin == 0 && line == "{") begin = number;
    if (begin > 0 && end == 0) {
      object += line + "\n";
      if (line == "}") end = number;
      continue;
    }
    object += "\n";
    if (stray.empty() && has_outer_brace(line))
      stray = fmt::format("{}:{}: found '{}'", file, number, line);
  }
  if (end == 0) return all;
  if (stray.empty()) return object;
  throw ConfigError(fmt::format(
      "{} beside the Plan of lines {} to {}; leave one Plan in the file, and no other braces",
      stray, begin, end));
}

std::string text_of(const std::string& file) {
  try {
    return read_whole_file(file, kMostPlanBytes);
  } catch (const IoError& error) {
    throw ConfigError(std::string("--plan ") + error.what());
  }
}

/// The first field that puts something on the disk; empty if none does.
std::string first_on_disk(const runtime::Plan& plan) {
  using runtime::Tier;
  for (std::size_t r = 0; r < plan.saved.size(); ++r)
    for (const auto& [name, action] : plan.saved[r].actions)
      if (action == runtime::SavedAction::disk) return fmt::format("saved[{}].actions.{}", r, name);
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    const runtime::UnitPlan& unit = plan.units[u];
    const std::string tier = fmt::format("units[{}].tier.", u);
    if (unit.optimizer_tier == Tier::disk) return tier + "optimizer";
    if (unit.gradient_tier == Tier::disk) return tier + "gradient";
    if (unit.parameter_tier == Tier::disk) return tier + "parameter";
  }
  return "";
}

/// True if two operations are the same optimizer with the same numbers, in formats of its state
/// ("adamw", "adamw_8bit"). The rules of Plans decide which formats exist.
bool is_format_of(std::string_view operation, std::string_view other) {
  return operation.substr(0, operation.find('_')) == other.substr(0, other.find('_'));
}

/// A field that a flag makes equal to what the Plan has.
struct FlaggedField {
  std::string field;
  std::string found;
  std::string asked;
  std::string_view flag;
};

class PlanComparison {
 public:
  explicit PlanComparison(std::string file) : file_(std::move(file)) {}

  /// Refuses the first that differs, and names the flags for all of them.
  void same(const std::vector<FlaggedField>& fields) const {
    const FlaggedField* first = nullptr;
    std::string flags;
    for (const FlaggedField& one : fields) {
      if (one.found == one.asked) continue;
      if (first == nullptr) first = &one;
      flags += fmt::format("{}{} {}", flags.empty() ? "" : " ", one.flag, one.found);
    }
    if (first != nullptr)
      throw ConfigError(
          fmt::format("{}: {}: the Plan has {}, this run has {} ({}); give {}, or print a Plan for "
                      "this run with --print-plan --steps 0",
                      file_, first->field, first->found, first->asked, first->flag, flags));
  }

  template <typename T>
  void same(const std::string& field, T found, T asked, const char* flag) const {
    if (found == asked) return;
    refuse(field, text(found), text(asked), flag);
  }
  [[noreturn]] void refuse(const std::string& field, const std::string& found,
                           const std::string& asked, const std::string& flag,
                           const std::string& besides = "") const {
    throw ConfigError(file_ + ": " + field + ": the Plan has " + found + ", this run has " + asked +
                      " (" + flag + "); print a Plan for it with --print-plan --steps 0" + besides);
  }

  [[noreturn]] void refuse(const std::string& mistake) const {
    throw ConfigError(file_ + ": " + mistake);
  }

  static std::string text(std::int64_t number) { return std::to_string(number); }
  static std::string text(DType type) { return std::string(name_of(type)); }
  static std::string text(kernels::DeviceCapabilities::Backend backend) {
    return backend == kernels::DeviceCapabilities::Backend::cpu ? "cpu" : "cuda";
  }

 private:
  std::string file_;
};

template <typename T>
FlaggedField field_of(const char* field, T found, T asked, std::string_view flag) {
  return {field, PlanComparison::text(found), PlanComparison::text(asked), flag};
}

/// Another model is named before what differs with it.
void require_model(const PlanComparison& is, const runtime::Plan& plan,
                   const runtime::Plan& asked) {
  for (std::size_t u = 0; u < std::max(plan.units.size(), asked.units.size()); ++u) {
    const auto name = [&](const runtime::Plan& of) {
      return u < of.units.size() ? "'" + of.units[u].unit + "'" : std::string("none");
    };
    if (name(plan) != name(asked))
      is.refuse(fmt::format("units[{}].unit", u), name(plan), name(asked), "--model");
  }
  for (std::size_t u = 0; u < plan.units.size(); ++u)
    is.same(fmt::format("units[{}].elements", u), plan.units[u].elements, asked.units[u].elements,
            "--model");
}

}  // namespace

std::span<const std::string_view> options_that_plans_decide() {
  static constexpr std::string_view kDecided[] = {"zero.stage",
                                                  "zero.reduce_bucket_elements",
                                                  "zero.allgather_bucket_elements",
                                                  "zero.sub_group_elements",
                                                  "zero.prefetch_bucket_elements",
                                                  "zero.overlap_comm",
                                                  "zero.param_persistence_threshold_elements",
                                                  "zero.model_persistence_threshold_elements",
                                                  "zero.max_live_parameters_elements",
                                                  "zero.max_reuse_distance_elements",
                                                  "offload.optimizer",
                                                  "offload.parameters",
                                                  "offload.activations",
                                                  "offload.optimizer_ratio",
                                                  "offload.parameter_host_elements",
                                                  "offload.updates",
                                                  "offload.layer_major",
                                                  "offload.gradients",
                                                  "activation_checkpointing",
                                                  "recompute_norms",
                                                  "checkpoint_segments",
                                                  "checkpoint_ratio",
                                                  "actions",
                                                  "state_recipe",
                                                  "tile_elements"};
  return kDecided;
}

runtime::Plan stored_plan(const std::string& file) {
  const std::string text = text_of(file);
  if (text.find("[0] {\n") != std::string::npos)
    throw ConfigError(file +
                      ": its lines begin with the number of a rank; print the Plan with "
                      "mlaunch --no-prefix");
  return runtime::Plan::from_json(object_in(text, file), file);
}

runtime::Plan read_plan(const std::string& file, const runtime::Plan& asked,
                        const std::vector<runtime::SaveMemory>& savings, bool has_drive) {
  runtime::Plan plan = stored_plan(file);
  const PlanComparison is(file);
  if (plan.backend != asked.backend)
    is.refuse("backend", PlanComparison::text(plan.backend), PlanComparison::text(asked.backend),
              "--device", " --device " + PlanComparison::text(asked.backend));
  require_model(is, plan, asked);
  is.same<std::int64_t>("mesh.data", plan.data_ranks(), asked.data_ranks(), "ranks");
  is.same(
      {field_of("virtual_ranks", plan.virtual_ranks, asked.virtual_ranks, "--virtual-ranks"),
       field_of("micro_steps", plan.micro_steps, asked.micro_steps, "--accumulation"),
       field_of("shape.dtype", plan.shape.dtype, asked.shape.dtype, "--dtype"),
       field_of("shape.batch", plan.shape.batch, asked.shape.batch, "--micro-batch"),
       field_of("shape.sequence", plan.shape.sequence, asked.shape.sequence, "--sequence-length")});
  is.same("gradient.produced", plan.gradient.produced, asked.gradient.produced, "--dtype");
  is.same("gradient.reduced", plan.gradient.reduced, asked.gradient.reduced,
          "\"communication_data_type\"");
  is.same("gradient.accumulated", plan.gradient.accumulated, asked.gradient.accumulated,
          "\"grad_accum_dtype\"");
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    const std::string unit = fmt::format("units[{}].", u);
    const runtime::UnitRecipe &found = plan.units[u].recipe, &of_run = asked.units[u].recipe;
    const std::string &operation = found.optimizer.operation, &runs = of_run.optimizer.operation;
    if (!is_format_of(operation, runs))
      is.refuse(unit + "recipe.optimizer.operation", "'" + operation + "'", "'" + runs + "'",
                "--optimizer");
    if (operation == runs)
      is.same<std::int64_t>(unit + "recipe.optimizer.moments", found.optimizer.moments,
                            of_run.optimizer.moments, "--optimizer, --momentum");
  }
  // The time of updates decides what becomes of a step that is not finite.
  if ((plan.updates == runtime::Updates::gradient) != (asked.updates == runtime::Updates::gradient))
    is.refuse("updates", "'" + std::string(name_of(plan.updates)) + "'",
              "'" + std::string(name_of(asked.updates)) + "'", "--update-time");
  if (const std::string field = first_on_disk(plan); !field.empty() && !has_drive)
    is.refuse(field, "'disk'", "no drive", "--nvme-path DIR");
  if (asked.evaluates && !plan.evaluates)
    is.refuse("evaluates", "false", "true", "--eval-data or --eval-every");
  if (std::ranges::find(savings, plan.saving) == savings.end()) {
    if (plan.saving == runtime::SaveMemory::none)
      is.refuse(
          "the Plan is for a run that saves nothing, and has no memory for saving; leave out "
          "--output, or make the Plan with it (--output DIR --write-plan FILE)");
    plan.saving = savings.back();  // saving less, or nothing, needs less than the Plan has
  }
  for (std::size_t t = 0; t < plan.budget_bytes.size(); ++t)
    plan.budget_bytes[t] = std::min(plan.budget_bytes[t], asked.budget_bytes[t]);
  plan.host_bytes = std::min(plan.host_bytes, asked.host_bytes);
  return plan;
}

}  // namespace strata::train
