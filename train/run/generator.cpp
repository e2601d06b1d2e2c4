#include "train/run/generator.h"

#include <algorithm>
#include <cmath>

#include "comm/factory.h"
#include "core/error.h"
#include "core/file_system.h"
#include "kernels/math/philox.h"
#include "train/checkpoint/check_weights.h"
#include "train/config/make_plan.h"
#include "train/engine/engine.h"
#include "train/engine/weights.h"
#include "train/models/hf_config.h"
#include "train/run/host_limits.h"
#include "train/run/model_directory.h"

namespace strata::train {

struct Generator::Runtime {
  std::unique_ptr<comm::Communicator> communicator;
  std::unique_ptr<Engine> engine;
};

Generator::Generator(const GeneratorOptions& options)
    : options_(options),
      config_(read_model_config(options.model, options.own)),
      choices_(config_.vocabulary) {
  if (options_.sequence == 0)
    options_.sequence = std::min<std::int64_t>(config_.context > 0 ? config_.context : 256, 256);
  runtime_ = std::make_unique<Runtime>();
  runtime_->communicator = comm::make_communicator({}, "single");
  EngineParts parts;
  parts.programs =
      build_generation(config_, {options_.dtype, 1, options_.sequence},
                       runtime_->communicator->seat(), machine::cpu_machine(options_.threads));
  if (const std::string lacking =
          lacking_host_memory(parts.programs.arena_bytes(runtime::Tier::device), 1);
      !lacking.empty())
    throw OutOfMemory(lacking);
  parts.site = std::make_unique<CpuSite>(*runtime_->communicator, options_.threads);
  runtime_->engine = std::make_unique<Engine>(std::move(parts));
  load_weights(*runtime_->engine, ModelFiles(options_.model), *config_.family);
  PosixFileSystem files;
  check_weights(files, resolve_model_directory(options_.model), 0, 1);
}

Generator::~Generator() = default;

std::int32_t Generator::next(const std::vector<std::int32_t>& context) {
  const auto kept =
      std::min<std::size_t>(context.size(), static_cast<std::size_t>(options_.sequence));
  const std::vector<float> logits =
      runtime_->engine->logits({context.end() - static_cast<std::ptrdiff_t>(kept), context.end()});
  const auto best = std::max_element(logits.begin(), logits.begin() + choices_);
  if (options_.temperature <= 0) return static_cast<std::int32_t>(best - logits.begin());
  std::vector<double> weights(static_cast<std::size_t>(choices_));
  double sum = 0;
  for (std::size_t v = 0; v < weights.size(); ++v)
    sum += weights[v] = std::exp((logits[v] - *best) / options_.temperature);
  const kernels::RandomSource random(options_.seed, 0, draws_++, 0);
  double point = random.word(0) * 0x1p-32 * sum;
  for (std::size_t v = 0; v < weights.size(); ++v)
    if ((point -= weights[v]) < 0) return static_cast<std::int32_t>(v);
  return static_cast<std::int32_t>(best - logits.begin());
}

}  // namespace strata::train
