#include "train/session/note_replaced.h"

#include <filesystem>
#include <system_error>

namespace strata::train {

void note_replaced(const std::string& flag, const std::string& path,
                   const RunListeners& listeners) {
  std::error_code unknown;
  if (std::filesystem::is_regular_file(path, unknown) &&
      std::filesystem::file_size(path, unknown) > 0)
    listeners.note(flag + " " + path +
                   ": is there from an earlier run, and is replaced when this one ends");
}

}  // namespace strata::train
