// Chooses what turns text into the ids of a model: a tokenizer, or nothing if bytes are its tokens.
#pragma once

#include <cstdint>
#include <string>

namespace strata::train {

/// The value of --tokenizer that makes the bytes of a text its ids.
inline constexpr const char* kBytesAsTokens = "bytes";

/// The tokenizer of `model` (the value of --model: a directory, a config.json or a preset): its
/// directory if that holds tokenizer.json or files to make one of; else "".
std::string tokenizer_of(const std::string& model);

/// The tokenizer for text, a directory or a tokenizer.json. "": bytes are the ids, because `asked`
/// (--tokenizer; "" if not given) says so or the vocabulary is bytes. Throws InvalidArgument if
/// there is no tokenizer where `asked` says, or if it is not given, the model has none and its
/// vocabulary is more than bytes.
std::string choose_tokenizer(const std::string& asked, const std::string& model,
                             std::int64_t vocabulary);

}  // namespace strata::train
