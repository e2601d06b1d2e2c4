// Trains small models, and simulates their steps with the times that were measured in them: how far
// a replay is from the steps that it replays (runtime/simulator/replay.h).
//   build/bin/replay_bench [ROUNDS [FILE]]   each setting so many times, turn by turn (5); a line
//   of
//                                            JSON per setting and round goes to FILE
//   build/bin/replay_bench --check           two settings once; exits with 1 if one is 3 % off
// Ranks are threads, one core each; a drive is played by memory.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measured.h"
#include "core/error.h"
#include "core/json_writer.h"
#include "tests/training/replayed_steps.h"

namespace {

using namespace strata;
using bench::median;
using tests::StepSeconds;
using tests::TrainingCase;

constexpr std::int64_t kWarmUpSteps = 4;
constexpr double kWorst = 0.03;

struct Setting {
  std::string name;
  TrainingCase training;
};

/// Sets a step of `micro_steps` micro-batches of `micro_batch` samples per rank.
void set_batch(TrainingCase& training, int micro_batch, int micro_steps) {
  training.options.micro_batch = micro_batch;
  training.options.accumulation = micro_steps;
  training.options.global_batch =
      static_cast<std::int64_t>(micro_batch) * micro_steps * training.world;
}

Setting wide(int world, int stage) {
  Setting setting{fmt::format("{} x stage {}, width 256", world, stage),
                  tests::measurable_training(world, stage)};
  train::ModelConfig& model = setting.training.model;
  model.hidden = 256;
  model.head_size = 64;
  model.intermediate = 1024;
  return setting;
}

Setting accumulating(int world, int stage, bool layer_major) {
  Setting setting{fmt::format("{} x stage {}, 3 micro-steps{}", world, stage,
                              layer_major ? ", layer by layer" : ""),
                  tests::measurable_training(world, stage)};
  set_batch(setting.training, 1, 3);
  setting.training.options.offload.layer_major = layer_major;
  return setting;
}

const char* name_of(plan::Home home) {
  return home == plan::Home::device ? "device" : home == plan::Home::host ? "host" : "disk";
}

Setting offloaded(int world, int stage, plan::Home optimizer, plan::Home parameters) {
  Setting setting{fmt::format("{} x stage {}, optimizer on {}, parameters on {}", world, stage,
                              name_of(optimizer), name_of(parameters)),
                  tests::measurable_training(world, stage)};
  setting.training.options.offload.optimizer = optimizer;
  setting.training.options.offload.parameters = parameters;
  return setting;
}

Setting llama(int world, int stage) {
  Setting setting{fmt::format("{} x stage {}, llama in bf16, layers recomputed", world, stage),
                  tests::measurable_training(world, stage)};
  train::ModelConfig& model = setting.training.model;
  model.family = tests::tiny_llama().family;
  model.kv_heads = 2;
  model.tied_embeddings = false;
  train::TrainOptions& options = setting.training.options;
  options.dtype = options.communication_dtype = DType::bf16;
  options.activation_checkpointing = true;
  return setting;
}

std::vector<Setting> all_settings() {
  using enum plan::Home;
  std::vector<Setting> settings;
  for (const int world : {1, 2})
    for (const int stage : world == 1 ? std::vector{0} : std::vector{0, 1, 2, 3})
      settings.push_back(
          {fmt::format("{} x stage {}", world, stage), tests::measurable_training(world, stage)});
  settings.push_back(wide(1, 0));
  settings.push_back(wide(2, 3));
  settings.push_back(accumulating(1, 0, false));
  settings.push_back(accumulating(1, 0, true));
  settings.push_back(accumulating(2, 2, false));
  settings.push_back(accumulating(2, 3, true));
  settings.push_back(offloaded(1, 0, host, device));
  settings.push_back(offloaded(1, 3, host, host));
  settings.push_back(offloaded(1, 0, disk, device));
  settings.push_back(offloaded(2, 3, host, host));
  settings.push_back(offloaded(2, 3, disk, host));
  settings.push_back(llama(1, 0));
  settings.push_back(llama(2, 3));
  return settings;
}

double percent(double seconds, double measured) { return 100 * (seconds / measured - 1); }

std::string json_of(const Setting& setting, int round, const StepSeconds& seconds) {
  JsonWriter json(0);
  json.begin_object()
      .member("setting", setting.name)
      .member("round", round)
      .member("measured_ms", 1e3 * seconds.measured)
      .member("replayed_ms", 1e3 * seconds.replayed)
      .member("running_ms", 1e3 * seconds.running)
      .member("of_means_ms", 1e3 * seconds.of_means)
      .end_object();
  return json.finish();
}

/// Prints medians over the rounds; returns the errors of the replays of all of them, in percent.
std::vector<double> print_table(const std::vector<Setting>& settings,
                                const std::vector<std::vector<StepSeconds>>& found) {
  std::vector<double> errors;
  std::printf("%-62s %11s %9s %9s %9s %9s\n", "setting", "measured ms", "replayed", "worst",
              "running", "of means");
  for (std::size_t s = 0; s < settings.size(); ++s) {
    std::vector<double> measured, replayed, running, of_means;
    double worst = 0;
    for (const StepSeconds& one : found[s]) {
      measured.push_back(1e3 * one.measured);
      replayed.push_back(percent(one.replayed, one.measured));
      running.push_back(percent(one.running, one.measured));
      of_means.push_back(percent(one.of_means, one.measured));
      if (std::abs(replayed.back()) > std::abs(worst)) worst = replayed.back();
      errors.push_back(std::abs(replayed.back()));
    }
    std::printf("%-62s %11.3f %+7.3f %% %+7.3f %% %+7.2f %% %+7.2f %%\n", settings[s].name.c_str(),
                median(measured), median(replayed), worst, median(running), median(of_means));
  }
  std::printf("%zu settings, %zu replays: error %.3f %% median, %.3f %% worst\n", settings.size(),
              errors.size(), median(errors), *std::ranges::max_element(errors));
  return errors;
}

double run_all(const std::vector<Setting>& settings, int rounds, const std::string& file) {
  std::vector<std::vector<StepSeconds>> found(settings.size());
  std::ofstream lines;
  if (!file.empty()) lines.open(file);
  for (int round = 0; round < rounds; ++round)
    for (std::size_t s = 0; s < settings.size(); ++s) {
      found[s].push_back(tests::replay_steps(settings[s].training, kWarmUpSteps));
      if (lines.is_open()) lines << json_of(settings[s], round, found[s].back()) << std::endl;
    }
  if (!file.empty() && !lines) throw IoError(file, 0, "results could not be written", EIO);
  return std::ranges::max(print_table(settings, found)) / 100;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 1 && std::string_view(argv[1]) == "--check")
      return run_all(
                 {accumulating(2, 2, false), offloaded(1, 0, plan::Home::disk, plan::Home::device)},
                 1, "") < kWorst
                 ? 0
                 : 1;
    run_all(all_settings(), argc > 1 ? std::max(1, std::atoi(argv[1])) : 5,
            argc > 2 ? argv[2] : "");
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "replay_bench: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
