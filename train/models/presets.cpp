#include "train/models/presets.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/ascii.h"
#include "core/error.h"
#include "core/nearest_name.h"
#include "core/own_files.h"
#include "train/models/unusable_model.h"

namespace strata::train {

namespace fs = std::filesystem;

std::string configs_directory() {
  std::error_code error;
  const fs::path bin = own_directory();
  // Tries build/bin, build/PRESET/bin, an installed prefix with configs beside bin, share/strata.
  const fs::path tried[] = {bin / "../../configs", bin / "../../../configs", bin / "../configs",
                            bin / "../share/strata/configs"};
  std::string list;
  for (const fs::path& path : tried) {
    const fs::path folder = path.lexically_normal();
    if (fs::is_directory(folder / "models", error)) return folder.string();
    list += (list.empty() ? "" : ", ") + folder.string();
  }
  throw HostError("the folder 'configs' of this installation is missing; looked for " + list);
}

std::vector<std::string> model_preset_names() {
  std::vector<std::string> names;
  std::error_code error;
  const fs::path folder = fs::path(configs_directory()) / "models";
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".json") names.push_back(it->path().stem().string());
  }
  if (error) throw HostError("cannot list " + folder.string() + ": " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

std::string find_model_config(const std::string& model) {
  refuse_unusable_model(model);
  std::error_code error;
  if (fs::is_regular_file(model, error)) return model;
  if (fs::is_directory(model, error)) {
    const fs::path file = fs::path(model) / "config.json";
    if (fs::is_regular_file(file, error)) return file.string();
    throw ConfigError(model + ": found a directory without config.json, expected a Hugging Face " +
                      "model directory");
  }
  const std::vector<std::string> names = model_preset_names();
  if (std::binary_search(names.begin(), names.end(), model)) {
    return (fs::path(configs_directory()) / "models" / (model + ".json")).string();
  }
  const auto preset = std::ranges::find_if(
      names, [&](const std::string& name) { return same_letters(name, model); });
  refuse_hub_name(model, preset == names.end() ? "" : *preset);
  const bool is_path = model.find('/') != std::string::npos;  // presets' names have no slash
  const std::string near = is_path ? "" : nearest_name(model, {names.begin(), names.end()});
  std::string message = "model '" + model + "': no such directory, file or preset";
  if (!near.empty()) message += ", did you mean '" + near + "'?";
  message += "; presets (shapes with new, random weights):";
  for (const std::string& name : names) message += ' ' + name;
  throw ConfigError(message);
}

}  // namespace strata::train
