#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "train/session/scalar_log.h"

namespace strata::train {
namespace {

/// The first field of a row; the least number of the header.
std::int64_t x_of(std::string_view line) {
  std::int64_t x = std::numeric_limits<std::int64_t>::min();
  std::from_chars(line.data(), line.data() + line.size(), x);
  return x;
}

constexpr std::string_view kHead = "step,";
constexpr const char* kWhat = "a CSV of steps";

class CsvLog final : public ScalarLog {
 public:
  CsvLog(LogBeginning beginning, std::span<const std::string> tags,
         AppendedFile::OnFailure on_failure)
      : beginning_(std::move(beginning)), on_failure_(std::move(on_failure)) {
    if (beginning_.done > 0) return;
    for (const std::string& tag : tags)
      require_earlier_file(path_of(tag), kHead, kWhat, beginning_.said_by);
  }

  bool write(std::int64_t x, std::span<const Scalar> scalars) override {
    bool all = true;
    for (const Scalar& scalar : scalars) all = append(scalar, x) && all;
    return all;
  }

 private:
  [[nodiscard]] std::string path_of(std::string tag) const {
    std::ranges::replace(tag, '/', '_');
    return beginning_.folder + "/" + tag + ".csv";
  }
  AppendedFile& file_of(const std::string& tag) {
    if (const auto found = files_.find(tag); found != files_.end()) return found->second;
    const std::string path = path_of(tag);
    if (beginning_.done == 0) put_earlier_file_aside(path, kHead, kWhat, beginning_.said_by);
    AppendedFile& file =
        files_.try_emplace(tag, path, "CSV", [this](const IoError& error) { on_failure_(error); })
            .first->second;
    file.cut_lines_after(beginning_.done, x_of);
    return file;
  }
  /// Writes a row, and the header together with the first one: a disk that is full then takes none
  /// of the two.
  bool append(const Scalar& scalar, std::int64_t x) {
    if (refused_.contains(scalar.tag)) return false;
    try {
      AppendedFile& file = file_of(scalar.tag);
      std::string text;
      if (file.is_empty()) text = "step," + scalar.tag.substr(scalar.tag.rfind('/') + 1) + "\n";
      return file.append(text + fmt::format("{},{}\n", x, scalar.value));
    } catch (const InvalidArgument& error) {  // of a tag that was not known to come
      refused_.insert(scalar.tag);
      on_failure_(IoError(path_of(scalar.tag), 0, error.what(), EEXIST));
      return false;
    }
  }

  LogBeginning beginning_;
  AppendedFile::OnFailure on_failure_;
  std::map<std::string, AppendedFile> files_;  ///< by tag
  std::set<std::string> refused_;              ///< tags whose files hold something else
};

}  // namespace

std::unique_ptr<ScalarLog> open_csv_log(LogBeginning beginning, std::span<const std::string> tags,
                                        AppendedFile::OnFailure on_failure) {
  return std::make_unique<CsvLog>(std::move(beginning), tags, std::move(on_failure));
}

}  // namespace strata::train
