// Recognizes kinds of data files by name and first bytes: plain text, token files (.bin), others.
#pragma once

#include <string>

namespace strata::train {

/// True if the path is that of a token file (.bin), not a text.
bool is_token_file(const std::string& path);

/// Throws DataError naming `path`, what it is and what to do, unless it is a nonempty file of plain
/// text or a token file. `is_text`: the user says that files are plain text, whatever their names
/// (.jsonl, .csv ...) and first characters.
void require_plain_data(const std::string& path, bool is_text);

}  // namespace strata::train
