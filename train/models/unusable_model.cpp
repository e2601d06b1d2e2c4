#include "train/models/unusable_model.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string_view>

#include "core/ascii.h"
#include "core/error.h"
#include "core/file.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;  // a path that cannot be examined counts as missing
  return fs::exists(path, ignored);
}

/// True if a file's name ends in one of these, in upper or lower case.
bool ends_in(const fs::path& file, std::initializer_list<std::string_view> ends) {
  const std::string name = ascii_lower_case(file.filename().string());
  return std::any_of(ends.begin(), ends.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

constexpr std::int64_t kLookedAtBytes = 9;

/// Returns a file's first bytes, which tell its format; "" if it cannot be read, which whoever
/// opens it reports.
std::string first_bytes(const fs::path& path) {
  try {
    const File file = File::open_for_reading(path.string());
    std::string bytes(static_cast<std::size_t>(std::min(file.size_bytes(), kLookedAtBytes)), '\0');
    file.read(0, std::as_writable_bytes(std::span(bytes)), "the first bytes");
    return bytes;
  } catch (const IoError&) {
    return "";
  }
}

/// Says what a file is, by its name's end or its first bytes, and what to do; "": nothing is wrong.
std::string fault_of_file(const fs::path& file) {
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  const std::string beginning = first_bytes(file);
  if (ends_in(file, {".safetensors", ".safetensors.index.json"}) ||
      begins_like_safetensors(beginning))
    return "found a file of weights, expected the directory with config.json beside it: --model " +
           folder;
  if (ends_in(file, {".gguf", ".ggml"}) || beginning.starts_with("GGUF"))
    return "llama.cpp's format is not read; give the Hugging Face directory that it was made from";
  if (ends_in(file, {".bin", ".pt", ".pth", ".ckpt", ".bin.index.json"}))
    return "found a file of PyTorch, which is not read; make a directory with safetensors of its "
           "folder: python3 scripts/strata_convert from-torch " +
           folder + " OUT, then --model OUT";
  return "";
}

bool holds_file_ending(const fs::path& folder, std::string_view end) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), last; !error && it != last; it.increment(error))
    if (ends_in(it->path(), {end})) return true;
  return false;
}

/// Says what is wrong with a directory without config.json, and what to do.
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

bool is_spelt_as_on_hub(const std::string& model) {
  return std::all_of(model.begin(), model.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '-' || c == '_' || c == '.';
  });
}

/// True for OWNER/NAME, if nothing on this machine has that owner's name.
bool has_owner(const std::string& model) {
  const std::size_t slash = model.find('/');
  return slash != 0 && slash != std::string::npos && slash + 1 != model.size() &&
         model.find('/', slash + 1) == std::string::npos && model.front() != '.' &&
         !is_there(model.substr(0, slash));
}

/// True for endings of published models' names, which no preset has. `name` is in lower case.
bool has_published_ending(std::string_view name) {
  for (const std::string_view end : {"-instruct", "-chat", "-base", "-hf"})
    if (name.ends_with(end)) return true;
  const std::size_t version = name.rfind("-v");  // such as -v0.1
  return version != std::string_view::npos && version + 2 < name.size() &&
         name.find_first_not_of("0123456789.", version + 2) == std::string_view::npos;
}

struct PublishedFamily {
  std::string_view beginning;  ///< beginning of its models' names, in lower case
  std::string_view owner;
};
constexpr PublishedFamily kPublishedFamilies[] = {
    {"qwen", "Qwen"},           {"mistral-", "mistralai"},     {"mixtral-", "mistralai"},
    {"llama-", "meta-llama"},   {"meta-llama-", "meta-llama"}, {"codellama-", "codellama"},
    {"tinyllama", "TinyLlama"}, {"smollm", "HuggingFaceTB"},
};

/// The owner of such a model on the hub; "OWNER": unknown; "": the name is no published model's.
std::string_view owner_of(const std::string& model) {
  const std::string name = ascii_lower_case(model);
  for (const std::string_view old : {"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"})
    if (name == old) return "openai-community";  // published before the hub had owners
  if (name == "distilgpt2") return "distilbert";
  const bool is_published = has_published_ending(name);
  for (const PublishedFamily& family : kPublishedFamilies)  // presets have no upper case
    if (name.starts_with(family.beginning) && (is_published || name != model)) return family.owner;
  return is_published ? "OWNER" : "";
}

}  // namespace

bool begins_like_safetensors(std::string_view bytes) {
  constexpr std::string_view kUpperHalf("\0\0\0\0", 4);
  return std::ssize(bytes) >= kLookedAtBytes && bytes.substr(4, 4) == kUpperHalf &&
         bytes[kLookedAtBytes - 1] == '{';
}

void refuse_unusable_model(const std::string& model) {
  std::error_code ignored;
  std::string fault;
  if (fs::is_regular_file(model, ignored))
    fault = fault_of_file(model);
  else if (fs::is_directory(model, ignored) && !is_there(fs::path(model) / "config.json"))
    fault = fault_of_directory(model);
  if (!fault.empty()) throw ConfigError(model + ": " + fault);
}

void refuse_hub_name(const std::string& model, const std::string& preset) {
  const bool is_path = model.find('/') != std::string::npos;
  const std::string owner(is_path ? "" : owner_of(model));
  if (!is_spelt_as_on_hub(model) || (owner.empty() && !has_owner(model))) return;
  const std::string name = fs::path(model).filename().string();
  throw ConfigError(
      "model '" + model +
      "': no such directory; models of the Hugging Face hub have such names, and "
      "train fetches nothing from there. If that is where it is: hf download " +
      (is_path ? model : owner + "/" + model) + " --local-dir " + name +
      " (older: huggingface-cli download), then --model " + (is_path ? name : "./" + name) +
      (preset.empty() ? "" : "; its shape alone, with new, random weights, is --model " + preset));
}

}  // namespace strata::train
