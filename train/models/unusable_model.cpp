#include "train/models/unusable_model.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "core/error.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;  // what cannot be looked at is not there
  return fs::exists(path, ignored);
}

/// What a file is by the end of its name, and what to do; "": nothing against it.
std::string fault_of_file(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  const auto ends_with = [&](std::initializer_list<std::string_view> ends) {
    return std::any_of(ends.begin(), ends.end(),
                       [&](std::string_view end) { return name.ends_with(end); });
  };
  if (ends_with({".safetensors", ".safetensors.index.json"}))
    return "found a file of weights, expected the directory with config.json beside it: --model " +
           folder;
  if (ends_with({".gguf", ".ggml"}))
    return "llama.cpp's format is not read; give the Hugging Face directory that it was made from";
  if (ends_with({".bin", ".pt", ".pth", ".ckpt", ".bin.index.json"}))
    return "found a file of PyTorch, which is not read; make a directory with safetensors of its "
           "folder: python3 scripts/strata_convert from-torch " +
           folder + " OUT, then --model OUT";
  return "";
}

bool holds_file_ending(const fs::path& folder, std::string_view end) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), last; !error && it != last; it.increment(error))
    if (it->path().filename().string().ends_with(end)) return true;
  return false;
}

/// The same for a directory without config.json.
std::string fault_of_directory(const fs::path& folder) {
  if (is_there(folder / "snapshots"))
    return "found a folder of the Hugging Face cache; give the one below it that holds "
           "config.json: "
           "--model " +
           (folder / "snapshots/...").string();
  if (is_there(folder / "adapter_config.json"))
    return "found an adapter (LoRA) without its model; merge it into the model with "
           "merge_and_unload() and save_pretrained() of peft";
  if (is_there(folder / "params.json") && holds_file_ending(folder, ".pth"))
    return "found Meta's own format; give the Hugging Face directory of the same model";
  if (is_there(folder / "zero_to_fp32.py") || holds_file_ending(folder, "_model_states.pt"))
    return "found a checkpoint of DeepSpeed; import it: python3 scripts/strata_convert "
           "from-deepspeed " +
           folder.string() + " OUT --model DIR";
  if (holds_file_ending(folder, ".gguf"))
    return "llama.cpp's format is not read; give the Hugging Face directory that it was made from";
  return "";
}

/// OWNER/NAME as the hub spells it, and nothing of that name on this machine.
bool is_hub_name(const std::string& model) {
  const std::size_t slash = model.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == model.size() ||
      model.find('/', slash + 1) != std::string::npos || model.front() == '.' ||
      model.front() == '~' || is_there(model.substr(0, slash)))
    return false;
  return std::all_of(model.begin(), model.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '-' || c == '_' || c == '.';
  });
}

/// Names from the time before the hub had owners: the owner of each now.
std::string owner_of(const std::string& model) {
  for (const std::string_view name : {"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"})
    if (model == name) return "openai-community/";
  return model == "distilgpt2" ? "distilbert/" : "";
}

}  // namespace

void refuse_unusable_model(const std::string& model) {
  std::error_code ignored;
  std::string fault;
  if (fs::is_regular_file(model, ignored))
    fault = fault_of_file(model);
  else if (fs::is_directory(model, ignored) && !is_there(fs::path(model) / "config.json"))
    fault = fault_of_directory(model);
  if (!fault.empty()) throw ConfigError(model + ": " + fault);
  const std::string owner = owner_of(model);
  if (is_there(model) || (owner.empty() && !is_hub_name(model))) return;
  const std::string name = fs::path(model).filename().string();
  throw ConfigError("model '" + model +
                    "': no such directory; train fetches nothing from the Hugging Face hub. If "
                    "that is where it is: hf download " +
                    owner + model + " --local-dir " + name +
                    " (older: huggingface-cli download), " + "then --model " +
                    (owner.empty() ? name : "./" + name));
}

}  // namespace strata::train
