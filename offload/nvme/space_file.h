// The private file of a store: no name, no page cache, all space reserved.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/unique_fd.h"

namespace strata::offload {

/// Opens a file in `directory` that nobody else can open by name and that is gone with its last
/// descriptor, however the process ends. Uses O_DIRECT; if the file system refuses it, adds a note.
/// Throws IoError when the directory is missing or not writable.
UniqueFd open_space_file(const std::string& directory, std::vector<std::string>& notes);

/// Does the same with a unique name that is removed at once, for file systems without O_TMPFILE.
UniqueFd open_and_unlink(const std::string& directory, std::vector<std::string>& notes);

/// True if the file takes memory instead of disk space (tmpfs, ramfs).
bool lies_in_memory(int file);

/// Returns the bytes that this user may still take in `directory`; 0 if it is missing, and the most
/// that 64 bits hold if the file system does not tell.
std::int64_t free_bytes(const std::string& directory);

/// Gives the file its size and its blocks. Throws IoError that names the directory, needed and
/// available bytes when there are too few.
void reserve_space(int file, const std::string& directory, std::int64_t bytes);

}  // namespace strata::offload
