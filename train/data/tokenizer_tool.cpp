#include "train/data/tokenizer_tool.h"

#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "train/data/run_program.h"
#include "train/data/tokenize_script.h"

namespace strata::train {
namespace {

/// Exit codes of scripts/tokenize.py besides 0.
constexpr int kPackageMissing = 69;
constexpr int kBadData = 65;

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

TokenizerTool::TokenizerTool(std::string tokenizer_json, std::string python)
    : tokenizer_json_(std::move(tokenizer_json)), python_(std::move(python)) {}

std::string TokenizerTool::run(std::vector<std::string> arguments, const std::string& input) const {
  std::vector<std::string> command = {python_, "-c", std::string(kTokenizeScript)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.insert(command.end(), {"--tokenizer", tokenizer_json_});
  ProgramResult result;
  try {
    result = run_program(command, input);
  } catch (const HostError& error) {
    throw HostError(
        std::string(error.what()) + "; the model's tokenizer " + tokenizer_json_ +
        " is used through Python: install python3 (apt-get install python3), name it with "
        "--python PROGRAM, or give token files (.bin)");
  }
  if (result.exit_code == 0) return std::move(result.output);
  const std::string errors = trimmed(result.errors);
  if (result.exit_code == kBadData) throw DataError(errors);
  if (result.exit_code == kPackageMissing) throw HostError(python_ + ": " + errors);
  throw HostError(python_ + " ended with code " + std::to_string(result.exit_code) +
                  " while it used " + tokenizer_json_ + (errors.empty() ? "" : ":\n" + errors));
}

std::vector<std::string> TokenizerTool::encode_file(const std::string& text_path,
                                                    const std::string& cache_directory) const {
  std::vector<std::string> arguments = {"file", "--text", text_path};
  if (!cache_directory.empty()) arguments.insert(arguments.end(), {"--cache", cache_directory});
  const JsonValue answer = parse_json(run(arguments, ""), "answer of the tokenizer tool", {});
  std::vector<std::string> files;
  for (const JsonValue& file : answer.at("files").elements()) files.push_back(file.as_string());
  return files;
}

std::vector<std::int32_t> TokenizerTool::encode(std::string_view text) const {
  const JsonValue answer =
      parse_json(run({"encode"}, std::string(text)), "answer of the tokenizer tool", {});
  std::vector<std::int32_t> ids;
  for (const JsonValue& id : answer.elements())
    ids.push_back(static_cast<std::int32_t>(id.as_integer()));
  return ids;
}

std::string TokenizerTool::decode(std::span<const std::int32_t> ids) const {
  JsonWriter list(0);
  list.begin_array();
  for (const std::int32_t id : ids) list.value(id);
  return run({"decode"}, list.end_array().finish());
}

}  // namespace strata::train
