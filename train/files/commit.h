// A directory appears whole or not at all: it is written under another name, synced and renamed.
#pragma once

#include <string>

namespace strata::train {

/// "DIR.tmp-TAG": where the content of `directory` is prepared (same parent, so that a rename
/// suffices).
std::string staging_directory(const std::string& directory, const std::string& tag);

/// Throws DataError when `directory` exists and has anything in it: it would have to be replaced,
/// and who knows what else lies there. To be called before training, too.
void require_new_directory(const std::string& directory);

/// Creates `staging` empty, with its parents; what a broken attempt left under that name is
/// removed.
void create_staging(const std::string& staging);

/// Syncs every file in `staging` and the directory, renames it to `directory`, syncs the parent.
/// After the return the directory survives a crash of the machine; before, `directory` does not
/// exist.
void commit_directory(const std::string& staging, const std::string& directory);

}  // namespace strata::train
