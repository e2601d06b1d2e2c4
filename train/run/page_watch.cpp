#include "train/run/page_watch.h"

#include <filesystem>
#include <system_error>

namespace strata::train {

void PageWatch::set_committed(std::int64_t step, const std::string& directory) const {
  if (page_ == nullptr) return;
  std::error_code unknown;
  const std::filesystem::path path = std::filesystem::absolute(directory, unknown);
  page_->set_committed(step, unknown ? directory : path.lexically_normal().string());
}

}  // namespace strata::train
