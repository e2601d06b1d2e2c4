// What turns text into the ids of a model: a tokenizer, or nothing where bytes are its tokens.
#pragma once

#include <cstdint>
#include <string>

namespace strata::train {

/// `--tokenizer bytes`: the bytes of a text are its ids.
inline constexpr const char* kBytesAsTokens = "bytes";

/// The tokenizer that `model` (what --model said: a directory, a config.json or a preset) has: its
/// directory, where that holds tokenizer.json or what one can be made of; "" where there is none.
std::string tokenizer_of(const std::string& model);

/// The tokenizer (a directory or a tokenizer.json) for text; "": bytes are the ids, because
/// `asked` (--tokenizer, "" when it is not given) says so or because the vocabulary is bytes.
/// Throws InvalidArgument when the model has no tokenizer, its vocabulary is more than bytes and
/// nobody asked for them, or when there is no tokenizer where `asked` says.
std::string choose_tokenizer(const std::string& asked, const std::string& model,
                             std::int64_t vocabulary);

}  // namespace strata::train
