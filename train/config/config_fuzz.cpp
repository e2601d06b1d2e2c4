// A libFuzzer target of the whole path from text to TrainOptions: the first line is a command line,
// the rest a DeepSpeed JSON; the same text is also read as a config.json. A refusal must be an
// Error with a message; what is accepted must make sense.
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/error.h"
#include "train/config/resolve.h"
#include "train/models/hf_config.h"

namespace strata::train {
namespace {

ParsedCommandLine parse_words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words = {"train"};
  for (std::string word; in >> word;) words.push_back(word);
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return parse_train_command_line(static_cast<int>(pointers.size()), pointers.data());
}

void check_resolved(const ResolvedConfig& resolved, int world) {
  const TrainOptions& o = resolved.options;
  STRATA_CHECK(o.global_batch == o.micro_batch * o.accumulation * leaves(o, world), o.global_batch);
  STRATA_CHECK(o.micro_batch > 0 && o.accumulation > 0 && o.sequence_length > 0);
  STRATA_CHECK(o.zero.stage >= 0 && o.zero.stage <= 3, o.zero.stage);
  const OffloadOptions& f = o.offload;
  STRATA_CHECK(f.optimizer_ratio >= 0 && f.optimizer_ratio <= 1, f.optimizer_ratio);
  STRATA_CHECK(f.device_memory_bytes > 0 && f.host_memory_bytes > 0);
  STRATA_CHECK(f.request_bytes % (1 << 20) == 0, f.request_bytes);
  for (const plan::Home target : {f.optimizer, f.parameters, f.activations})
    STRATA_CHECK(target != plan::Home::disk || !f.nvme_paths.empty());
  STRATA_CHECK(f.parameters != plan::Home::disk || o.zero.stage == 0 || o.zero.stage == 3);
  STRATA_CHECK(!describe(resolved).empty());
}

void fuzz_config(const std::string& input) {
  ModelConfig model;
  model.family = find_family("gpt2");
  model.hidden = 64;
  model.context = 128;
  const std::size_t newline = input.find('\n');
  const std::string json = newline == std::string::npos ? input : input.substr(newline + 1);
  try {
    const ParsedCommandLine line =
        newline == std::string::npos ? ParsedCommandLine() : parse_words(input.substr(0, newline));
    constexpr int kWorld = 3;
    check_resolved(resolve(line, parse_deepspeed_json(json, "ds.json", line.strict), kWorld, model),
                   kWorld);
  } catch (const Error& error) {
    STRATA_CHECK(error.what()[0] != '\0');
  }
  try {
    const ModelConfig config = parse_model_config(json, "config.json");
    const std::string written = to_hf_config_json(config, json, DType::f32);
    STRATA_CHECK(parse_model_config(written, "written").head_size == config.head_size, written);
  } catch (const ConfigError& error) {
    STRATA_CHECK(error.what()[0] != '\0');
  }
}

}  // namespace
}  // namespace strata::train

// Fault 27.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strata::train::fuzz_config(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
