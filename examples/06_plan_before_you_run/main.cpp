// Plans runs for machines that need not be here: what fits, with which settings, how fast.
//
//     build/bin/example_plan llama-2-7b rtx4090 24GB 16GB 8GB
#include <cstdio>
#include <string>

#include "core/error.h"
#include "core/standard_output.h"
#include "machine/hardware_override.h"
#include "train/models/hf_config.h"
#include "train/run/model_directory.h"
#include "train/run/plan_target.h"

using namespace strata;

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s MODEL HARDWARE TARGET...\n", argv[0]);
    return 2;
  }
  try {
    const train::ModelConfig model =
        train::read_model_config(train::resolve_model_directory(argv[1]));
    const machine::Machine hardware = machine::load_overridden_hardware(argv[2]);
    train::TrainOptions options;
    options.dtype = options.communication_dtype = DType::bf16;
    options.sequence_length = 1024;
    options.micro_batch = 1;
    options.accumulation = 8;
    options.global_batch = options.accumulation * hardware.hosts * hardware.devices;
    for (int i = 3; i < argc; ++i) {
      const train::TargetOptions budget{.memory = argv[i]};
      const train::PlannedTraining found = train::plan_run(model, options, budget, hardware);
      std::printf("%s\n", found.text.c_str());
      if (!found.planned.answer.chosen) continue;
      std::printf("  as options: stage %lld, micro-batch %lld, layer-major %s\n\n",
                  static_cast<long long>(found.options.zero.stage),
                  static_cast<long long>(found.options.micro_batch),
                  found.options.offload.layer_major ? "yes" : "no");
    }
    StandardOutput().finish();  // throws if a full disk did not take what was printed
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
