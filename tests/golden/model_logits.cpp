#include "tests/golden/model_logits.h"

#include "comm/factory.h"
#include "train/engine/engine.h"
#include "train/engine/weights.h"
#include "train/models/hf_config.h"

namespace strata::tests {

std::vector<double> model_logits(const std::string& directory, DType dtype,
                                 std::span<const std::int32_t> ids, std::int64_t sequence) {
  const train::ModelConfig model = train::read_model_config(directory);
  const auto communicator = comm::make_communicator({}, "single");
  train::EngineParts parts;
  parts.programs = train::build_generation(model, {dtype, 1, sequence}, communicator->seat(),
                                           machine::cpu_machine(1));
  parts.site = std::make_unique<train::CpuSite>(*communicator);
  train::Engine engine(std::move(parts));
  train::load_weights(engine, train::ModelFiles(directory), *model.family);

  std::vector<double> result;
  for (std::size_t row = 0; row < ids.size(); row += static_cast<std::size_t>(sequence))
    for (std::int64_t length = 1; length <= sequence; ++length) {
      const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(row);
      const std::vector<float> logits = engine.logits({begin, begin + length});
      result.insert(result.end(), logits.begin(), logits.begin() + model.vocabulary);
    }
  return result;
}

}  // namespace strata::tests
