#include "train/data/tokenizer_tool.h"

#include <fmt/core.h>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "train/data/run_program.h"
#include "train/data/tokenize_script.h"

namespace strata::train {
namespace {

/// The exit codes of scripts/tokenize.py besides 0.
constexpr int kPackageMissing = 69;
constexpr int kBadData = 65;
constexpr int kBadCache = 74;

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

constexpr const char* kAnswer = "answer of the tokenizer tool";

JsonValue parse_answer(std::string_view text) { return parse_json(text, kAnswer, {}); }

/// Removes complete lines from `text`, which grows at its end; tells the progress among them.
void tell_progress(std::string& text, const std::function<void(const EncodingProgress&)>& hear) {
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
    const auto found = parse_answer(std::string_view(text).substr(0, end)).find("progress");
    if (found)
      hear({found->at("text").as_string(), found->at("bytes").as_integer(),
            found->at("size").as_integer(), found->at("tokens").as_integer()});
    text.erase(0, end + 1);
  }
}

std::string last_line(const std::string& text) {
  const std::string lines = trimmed(text);
  const std::size_t before = lines.rfind('\n');
  return before == std::string::npos ? lines : lines.substr(before + 1);
}

}  // namespace

TokenizerTool::TokenizerTool(std::string tokenizer, std::string cache_directory, std::string python)
    : tokenizer_(std::move(tokenizer)),
      cache_directory_(std::move(cache_directory)),
      python_(std::move(python)) {}

std::string TokenizerTool::run(const std::string& mode, std::vector<std::string> arguments,
                               const std::string& input,
                               const std::function<void(std::string_view)>& hear) const {
  std::vector<std::string> command = {python_, "-c",          std::string(kTokenizeScript),
                                      mode,    "--tokenizer", tokenizer_};
  if (!cache_directory_.empty()) command.insert(command.end(), {"--cache", cache_directory_});
  command.insert(command.end(), arguments.begin(), arguments.end());
  ProgramResult result;
  try {
    result = run_program(command, input, hear);
  } catch (const HostError& error) {
    throw HostError(std::string(error.what()) + "; the tokenizer " + tokenizer_ +
                    " is used through Python: install python3 (apt-get install python3), or give "
                    "token files (.bin)");
  }
  if (result.exit_code == 0) return std::move(result.output);
  const std::string errors = trimmed(result.errors);
  if (result.exit_code == kBadData) throw DataError(errors);
  if (result.exit_code == kPackageMissing) throw HostError(errors);
  if (result.exit_code == kBadCache) throw Error(ExitCode::io, errors);
  throw HostError(fmt::format("{} ended with code {} while it used {}{}", python_, result.exit_code,
                              tokenizer_, errors.empty() ? "" : ":\n" + errors));
}

std::string TokenizerTool::encode_texts(
    const std::vector<std::string>& paths, std::int64_t vocabulary,
    const std::function<void(const EncodingProgress&)>& hear) const {
  JsonWriter list(0);
  list.begin_array();
  for (const std::string& path : paths) list.value(path);
  std::string unread;
  const auto listen = [&](std::string_view more) {
    unread += more;
    if (hear) tell_progress(unread, hear);
  };
  return last_line(run("texts", {"--vocabulary", std::to_string(vocabulary)},
                       list.end_array().finish(), listen));
}

EncodedTexts parse_encoded_texts(const std::string& answer) {
  const JsonValue document = parse_answer(answer);
  EncodedTexts encoded;
  for (const JsonValue& text : document.at("texts").elements()) {
    EncodedText& one = encoded.texts.emplace_back();
    for (const JsonValue& file : text.at("files").elements()) one.files.push_back(file.as_string());
    one.tokens = text.at("tokens").as_integer();
  }
  if (const JsonValue end = document.at("end"); !end.is(JsonKind::null))
    encoded.end = {static_cast<std::int32_t>(end.at("id").as_integer()), end.at("text").as_string(),
                   end.at("from").as_string()};
  for (const JsonValue& note : document.at("notes").elements())
    encoded.notes.push_back(note.as_string());
  return encoded;
}

std::vector<std::int32_t> TokenizerTool::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  for (const JsonValue& id : parse_answer(run("encode", {}, std::string(text))).elements())
    ids.push_back(static_cast<std::int32_t>(id.as_integer()));
  return ids;
}

std::string TokenizerTool::decode(std::span<const std::int32_t> ids) const {
  JsonWriter list(0);
  list.begin_array();
  for (const std::int32_t id : ids) list.value(id);
  return run("decode", {}, list.end_array().finish());
}

}  // namespace strata::train
