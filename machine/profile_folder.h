// The folder of profiles: what is kept for a run, what is kept for others, and its size.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "machine/profile_file.h"

namespace strata::machine {

/// Stands in Profile::of before what names the build, which comes last.
inline constexpr std::string_view kBuildMark = ", build ";

/// Files HASH.json, where HASH is that of Profile::of. Several processes may use one folder.
class ProfileFolder {
 public:
  static constexpr std::size_t kMostFiles = 100;
  static constexpr std::chrono::days kLongestAge{365};

  /// Empty: there is no folder, and nothing is found or kept.
  explicit ProfileFolder(std::string path) : path_(std::move(path)) {}

  /// Returns the name of the file for what the times depend on; empty if there is none.
  [[nodiscard]] std::string file_of(const std::string& of) const;

  struct Found {
    std::optional<Profile> profile;
    std::string note;  ///< for people: what is there and cannot be used; empty: nothing
  };
  /// Looks for the profile of `of`. Where there is none, looks whether another build, an earlier
  /// version or another number of threads or ranks has left one.
  [[nodiscard]] Found find(const std::string& of) const;

  /// Writes or replaces the profile's file, then removes files of this class that are older than a
  /// year or not among the newest hundred. Throws IoError if it cannot be written.
  void keep(const Profile& profile) const;

 private:
  [[nodiscard]] std::string describe_others(const std::string& of) const;
  void remove_old() const;

  std::string path_;
};

}  // namespace strata::machine
