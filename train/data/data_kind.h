// What a data file is, by its name and its first bytes: only plain text and token files (.bin) are
// trained on.
#pragma once

#include <string>

namespace strata::train {

/// Whether the path is that of a token file (.bin) instead of text.
bool is_token_file(const std::string& path);

/// Throws DataError naming `path`, what it is and what to do unless it is a file with content that
/// is plain text or a token file. `is_text`: the user insists that files are plain text whatever
/// their names (.jsonl, .csv ...) and first characters say.
void require_plain_data(const std::string& path, bool is_text);

}  // namespace strata::train
