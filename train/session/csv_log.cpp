#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
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

class CsvLog final : public ScalarLog {
 public:
  CsvLog(LogBeginning beginning, AppendedFile::OnFailure on_failure)
      : beginning_(std::move(beginning)), on_failure_(std::move(on_failure)) {}

  bool write(std::int64_t x, std::span<const Scalar> scalars) override {
    bool all = true;
    for (const Scalar& scalar : scalars) all = append(scalar, x) && all;
    return all;
  }

 private:
  AppendedFile& file_of(const std::string& tag) {
    if (const auto found = files_.find(tag); found != files_.end()) return found->second;
    std::string name = tag;
    std::ranges::replace(name, '/', '_');
    const std::string path = beginning_.folder + "/" + name + ".csv";
    if (beginning_.done == 0)
      put_earlier_file_aside(path, "step,", "a CSV of steps", beginning_.said_by);
    AppendedFile& file =
        files_.try_emplace(tag, path, "CSV", [this](const IoError& error) { on_failure_(error); })
            .first->second;
    file.cut_lines_after(beginning_.done, x_of);
    return file;
  }
  /// Writes a row, and the header together with the first one: a disk that is full then takes none
  /// of the two.
  bool append(const Scalar& scalar, std::int64_t x) {
    AppendedFile& file = file_of(scalar.tag);
    std::string text;
    if (file.is_empty()) text = "step," + scalar.tag.substr(scalar.tag.rfind('/') + 1) + "\n";
    return file.append(text + fmt::format("{},{}\n", x, scalar.value));
  }

  LogBeginning beginning_;
  AppendedFile::OnFailure on_failure_;
  std::map<std::string, AppendedFile> files_;  ///< by tag
};

}  // namespace

std::unique_ptr<ScalarLog> open_csv_log(LogBeginning beginning,
                                        AppendedFile::OnFailure on_failure) {
  return std::make_unique<CsvLog>(std::move(beginning), std::move(on_failure));
}

}  // namespace strata::train
