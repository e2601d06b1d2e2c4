// Checks what a start finds in each image of an output folder that a power loss may leave.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/testing/recording_file_system.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/checkpoint_reader.h"

namespace strata::train {

/// Beginnings of a record's marks: what was promised by then. The step follows.
inline const std::string kSavedMark = "saved step ";
inline const std::string kPointedMark = "latest says step ";

class CrashedOutput {
 public:
  /// Says whether a whole checkpoint of that step has the content that was saved.
  using Holds = std::function<bool(const CheckpointReader& reader, std::int64_t step)>;

  /// Writes images to `folder`, which is this object's own; `output` is a path in the images.
  CrashedOutput(std::string folder, std::string output, Holds holds)
      : folder_(std::move(folder)), output_(folder_ + "/" + output), holds_(std::move(holds)) {}

  /// Describes the first image in which a start would find a damaged checkpoint, only checkpoints
  /// older than promised, or `latest` pointing to none of them; "" if there is none.
  std::string first_fault(const RecordingFileSystem& record, const CrashOptions& options) {
    std::string fault;
    begin_anew();
    images_ = record.crash_images(options, [&](const CrashImage& image) {
      fault = fault_of(image);
      if (!fault.empty()) fault = image.description + ": " + fault;
      return fault.empty();
    });
    return fault;
  }

  /// The number of images that the last call examined.
  [[nodiscard]] int images() const { return images_; }

 private:
  /// The step of the last mark of that kind; -1: nothing was promised.
  static std::int64_t promised(const CrashImage& image, const std::string& kind) {
    std::int64_t step = -1;
    for (const std::string& mark : image.marks)
      if (mark.starts_with(kind)) step = std::stoll(mark.substr(kind.size()));
    return step;
  }

  /// The step that `latest` points to; -1 without a link. Throws if it is no link.
  [[nodiscard]] std::int64_t said_by_latest() const {
    const std::filesystem::path link = std::filesystem::path(output_) / kLatestName;
    if (!std::filesystem::exists(std::filesystem::symlink_status(link))) return -1;
    return step_of_checkpoint(std::filesystem::read_symlink(link).string()).value_or(-2);
  }

  void begin_anew() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    last_.emplace();
  }

  std::string fault_of(const CrashImage& image) {
    write_tree(folder_, image.tree, last_.value());
    last_ = image.tree;
    std::set<std::int64_t> whole{-1};
    std::int64_t latest = -1;
    try {
      if (std::filesystem::exists(output_) && !remove_leftovers(files_, output_).empty())
        last_.reset();
      for (const FoundCheckpoint& found : list_checkpoints(files_, output_)) {
        const CheckpointReader reader(files_, found.path,
                                      {.threads = 1, .caching = Caching::cached});
        reader.verify();
        if (reader.manifest().step != found.step || !holds_(reader, found.step))
          return found.path + " holds something else";
        whole.insert(found.step);
      }
      latest = said_by_latest();
    } catch (const std::exception& error) {
      return error.what();
    }
    if (!last_) begin_anew();  // the start has changed the image
    if (!whole.contains(latest)) return "latest says " + std::to_string(latest);
    for (const auto& [kind, step] :
         {std::pair{kSavedMark, *whole.rbegin()}, std::pair{kPointedMark, latest}})
      if (step < promised(image, kind))
        return kind + std::to_string(promised(image, kind)) + ", found " + std::to_string(step);
    return "";
  }

  PosixFileSystem files_;
  std::string folder_, output_;
  Holds holds_;
  std::optional<FileTree> last_;
  int images_ = 0;
};

}  // namespace strata::train
