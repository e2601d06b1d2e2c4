// Checks offload: which combinations of tiers, stages and paths make sense, and which settings have
// no effect, by themselves or beside a Plan from a file.
#include <fmt/core.h>
#include <algorithm>
#include <filesystem>

#include "train/config/make_plan.h"
#include "train/config/read_plan.h"
#include "train/config/resolver.h"

namespace strata::train {
namespace {

/// Size of the blocks that have checksums; a request consists of whole blocks.
constexpr std::int64_t kRequestUnitBytes = std::int64_t{1} << 20;

/// Normalizes a path: "/a/b/" and "/a/./b" are the same folder.
std::string plain_folder(const std::string& path) {
  std::string plain = std::filesystem::path(path).lexically_normal().string();
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  return plain;
}

}  // namespace

void Resolver::take_offload() {
  if (open_autos_.contains("offload.updates")) derived("offload.updates");
  std::int64_t& request = options_.offload.request_bytes;
  if (request % kRequestUnitBytes != 0) {
    const std::string found = std::to_string(request);
    request += kRequestUnitBytes - request % kRequestUnitBytes;
    findings_.notes.push_back(fmt::format("{}: found {}, rounded up to {}: requests are whole MiB",
                                          given("offload.request_bytes")->where, found, request));
  }
  take_nvme_paths();
  check_nvme();
  check_stages();
  check_unused_offload();
  note_planned();
}

void Resolver::take_nvme_paths() {
  const Given* said = given("offload.nvme_paths");
  if (said == nullptr) return;
  std::vector<std::string> paths, seen;
  for (const std::string& path : options_.offload.nvme_paths) {
    if (path.empty())
      return wrong_value("offload.nvme_paths", "found an empty path, expected a folder");
    const std::string plain = plain_folder(path);
    if (std::find(seen.begin(), seen.end(), plain) != seen.end()) continue;
    seen.push_back(plain);
    paths.push_back(path);
  }
  options_.offload.nvme_paths = paths;
}

void Resolver::check_nvme() {
  const OffloadOptions& o = options_.offload;
  if (given("offload.nvme_paths") != nullptr) return;
  const struct {
    plan::Home target;
    const char* option;
    const char* key;
    const char* section;
  } kinds[] = {
      {o.optimizer, "offload.optimizer", "\"nvme_path\": \"/folder/on/the/drive\" beside it",
       "zero_optimization.offload_optimizer"},
      {o.parameters, "offload.parameters", "\"nvme_path\": \"/folder/on/the/drive\" beside it",
       "zero_optimization.offload_param"},
      {o.activations, "offload.activations",
       "\"strata\": {\"nvme_paths\": [\"/folder/on/the/drive\"]}", ""},
  };
  for (const auto& kind : kinds) {
    if (kind.target != plan::Home::disk) continue;
    const Given* said = given(kind.option);
    const std::string off = off_section(kind.section, kind.option);
    problem(said->where,
            fmt::format("found nvme without a folder to use: give --nvme-path DIR or {}, or choose "
                        "cpu{}{}",
                        kind.key, off.empty() ? "" : "; ", off));
  }
}

void Resolver::check_stages() {
  const OffloadOptions& o = options_.offload;
  const std::int64_t stage = options_.zero.stage;
  const std::string at = fmt::format("at zero stage {}", stage);
  const auto from_file = [&](const char* option) { return origin(option) == Origin::file; };
  const auto note = [&](const char* option, const std::string& text) {
    findings_.notes.push_back(given(option)->where + ": " + text);
  };
  if (o.parameters != plan::Home::device && stage < 3 && from_file("offload.parameters")) {
    note("offload.parameters",
         "obeyed " + at + ", where DeepSpeed leaves parameters on the device");
  }
  if (o.optimizer == plan::Home::device) return;
  if (stage == 0 && world_ > 1) {
    note("offload.optimizer", "every rank keeps the whole optimizer state; --zero 1 shards it");
  } else if (stage == 0 && from_file("offload.optimizer")) {
    note("offload.optimizer", "obeyed " + at + "; DeepSpeed offloads from stage 1 on");
  } else if (o.optimizer == plan::Home::disk && stage < 3 && from_file("offload.optimizer")) {
    note("offload.optimizer", "obeyed " + at + ", where DeepSpeed uses host memory instead");
  }
}

void Resolver::check_unused_offload() {
  const OffloadOptions& o = options_.offload;
  const auto unused = [&](const Given* said, const std::string& why) {
    if (said != nullptr) findings_.notes.push_back(said->where + ": accepted, unused: " + why);
  };
  if (o.optimizer == plan::Home::device) {
    const Given* ratio = flag("offload.optimizer_ratio");
    if (ratio != nullptr) {
      problem(ratio->where, "found " + ratio->words[0] +
                                " and no optimizer state that leaves the device: give "
                                "--offload-optimizer cpu or nvme");
    }
    if (o.updates != UpdateTime::gradient)
      unused(given("offload.updates"), "no optimizer state leaves the device");
    const bool is_open = given("target.memory") || given("target.strategy");
    if (o.gradients && !is_open)
      unused(given("offload.gradients"),
             "no optimizer state leaves the device, and sums stay with it");
  }
  if (o.optimizer != plan::Home::device && o.optimizer_ratio < 1 &&
      o.parameters == plan::Home::disk)
    findings_.notes.push_back(given("offload.optimizer_ratio")->where +
                              ": of parameters that live on nvme all optimizer state leaves the "
                              "device, too, whatever the ratio");
  if (choices_of(options_).uses(plan::Home::disk)) return;
  // The Plan may use the drive, whether it comes from a file or from a planner.
  if (!options_.plan.empty() || given("target.memory") || given("target.strategy")) return;
  // Files often name a folder in advance, so only a flag is reported.
  unused(flag("offload.nvme_paths"), "nothing is offloaded to nvme");
  for (const char* hint : {"offload.request_bytes", "offload.queue_depth"}) {
    unused(given(hint), "nothing is offloaded to nvme");
  }
}

/// Warns of flags that --plan overrules, since people may believe that they are obeyed.
void Resolver::note_planned() {
  if (options_.plan.empty()) return;
  std::string flags;
  for (const std::string_view option : options_that_plans_decide())
    if (const Given* said = flag(option)) flags += (flags.empty() ? "" : ", ") + said->where;
  if (!flags.empty())
    findings_.notes.push_back(
        fmt::format("--plan {} decides, whatever is said by {}", options_.plan, flags));
}

}  // namespace strata::train
