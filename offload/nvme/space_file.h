// The private file behind a store: no name, no page cache, all its space reserved.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/unique_fd.h"

namespace strata::offload {

/// A file in `directory` that nobody else can open by name and that is gone with its last
/// descriptor, however the process ends. O_DIRECT, unless the file system refuses it: `notes` says
/// so. IoError when the directory is missing or may not be written.
UniqueFd open_space_file(const std::string& directory, std::vector<std::string>& notes);

/// The same by a unique name that is taken away at once: for file systems without O_TMPFILE.
UniqueFd open_and_unlink(const std::string& directory, std::vector<std::string>& notes);

/// Whether the file takes memory, not space on a drive: that of tmpfs and ramfs does.
bool lies_in_memory(int file);

/// Bytes that this user may still take in `directory`; 0 where it is missing.
std::int64_t free_bytes(const std::string& directory);

/// Gives the file its size and its blocks. IoError that names directory, needed and available bytes
/// when they are not there.
void reserve_space(int file, const std::string& directory, std::int64_t bytes);

}  // namespace strata::offload
