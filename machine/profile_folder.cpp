#include "machine/profile_folder.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"

namespace strata::machine {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostProfileBytes = 16 << 20;
/// Number of profiles of others, the newest ones, that are looked at.
constexpr std::size_t kMostOthers = 8;
/// Longest list of settings of others in a note, which is to fit into a line.
constexpr std::size_t kMostDifference = 48;
constexpr std::string_view kMeasuresAnew = "a run of minutes, or --calibrate again, measures anew";

/// True for "0123456789abcdef.json", and for what a writer left that was killed:
/// "0123456789abcdef.json.tmp-123".
bool is_name_of_ours(std::string_view name) {
  constexpr std::size_t kDigits = 16;
  constexpr std::string_view kEnding = ".json", kAside = ".tmp-";
  const auto all = [](std::string_view text, int (*is)(int)) {
    return std::ranges::all_of(text,
                               [&](char c) { return is(static_cast<unsigned char>(c)) != 0; });
  };
  if (name.size() < kDigits || !all(name.substr(0, kDigits), std::isxdigit)) return false;
  name.remove_prefix(kDigits);
  if (!name.starts_with(kEnding)) return false;
  name.remove_prefix(kEnding.size());
  if (name.empty()) return true;
  return name.starts_with(kAside) && all(name.substr(kAside.size()), std::isdigit);
}

struct OurFile {
  fs::file_time_type written;
  fs::path path;
};

/// Lists our files, those that were written last first. What cannot be read is left out.
std::vector<OurFile> list_files(const std::string& folder) {
  std::vector<OurFile> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code unknown;
    if (!is_name_of_ours(at->path().filename().string())) continue;
    if (!fs::is_regular_file(at->symlink_status(unknown))) continue;
    const fs::file_time_type written = fs::last_write_time(at->path(), unknown);
    if (!unknown) files.push_back({written, at->path()});
  }
  std::ranges::sort(files, [](const OurFile& a, const OurFile& b) {
    return a.written != b.written ? a.written > b.written : a.path < b.path;
  });
  return files;
}

std::string_view without_build(std::string_view of) { return of.substr(0, of.rfind(kBuildMark)); }

std::vector<std::string_view> settings_of(std::string_view of) {
  constexpr std::string_view kBetween = ", ";
  std::vector<std::string_view> parts;
  for (std::size_t end = of.find(kBetween); end != of.npos; end = of.find(kBetween)) {
    parts.push_back(of.substr(0, end));
    of.remove_prefix(end + kBetween.size());
  }
  parts.push_back(of);
  return parts;
}

/// Lists the parts of `one` that `other` lacks, as far as they fit into a note.
std::string parts_beside(std::string_view one, std::string_view other) {
  const std::vector<std::string_view> others = settings_of(other);
  std::string list;
  for (const std::string_view part : settings_of(one)) {
    if (std::ranges::find(others, part) != others.end()) continue;
    const std::string longer = fmt::format("{}{}{}", list, list.empty() ? "" : ", ", part);
    if (longer.size() <= kMostDifference) list = longer;
  }
  return list;
}

/// Says what differs where others' times were measured: "with '3 threads'", "without 'TF32'".
std::string describe_difference(std::string_view others, std::string_view ours) {
  if (const std::string with = parts_beside(others, ours); !with.empty())
    return fmt::format("with '{}'", with);
  if (const std::string without = parts_beside(ours, others); !without.empty())
    return fmt::format("without '{}'", without);
  return "with other settings";
}

/// Makes a line of at most 160 characters, with "note: ", of times that were measured so.
std::string unused_note(const std::string& how) {
  return fmt::format("times of instructions measured {} are not used; {}", how, kMeasuresAnew);
}

std::string read_text(const std::string& file) { return read_whole_file(file, kMostProfileBytes); }

Profile read_file(const std::string& file) { return read_profile(read_text(file), file); }

}  // namespace

std::string ProfileFolder::file_of(const std::string& of) const {
  if (path_.empty() || of.empty()) return "";
  return fmt::format("{}/{:016x}.json", path_, hash_64(std::as_bytes(std::span(of))));
}

ProfileFolder::Found ProfileFolder::find(const std::string& of) const {
  const std::string file = file_of(of);
  if (file.empty()) return {};
  if (!is_name_taken(file)) return {{}, describe_others(of)};
  try {
    Profile kept = read_file(file);
    if (kept.of == of) return {std::move(kept), ""};
    return {
        {},
        fmt::format("{} is another machine's or build's, and not used; {}", file, kMeasuresAnew)};
  } catch (const Error& error) {
    return {{}, fmt::format("{}; it is not used; {}", error.what(), kMeasuresAnew)};
  }
}

/// Says whose times are there. Those of another build of the same machine are named first, since
/// they are what somebody who has just built or updated misses; those of an earlier version of the
/// format, of which nobody knows whose they are, last.
std::string ProfileFolder::describe_others(const std::string& of) const {
  std::string others, earlier;
  std::vector<OurFile> files = list_files(path_);
  if (files.size() > kMostOthers) files.resize(kMostOthers);
  for (const OurFile& file : files) {
    const std::string path = file.path.string();
    Profile other;
    try {
      const std::string text = read_text(path);
      if (is_of_earlier_version(text, path)) {
        if (earlier.empty()) earlier = unused_note("by an earlier version of this program");
        continue;
      }
      other = read_profile(text, path);
    } catch (const Error&) {
      continue;  // nobody misses it
    }
    if (without_build(other.of) == without_build(of))
      return unused_note("by another build of this program");
    if (others.empty())
      others = unused_note(describe_difference(without_build(other.of), without_build(of)));
  }
  return others.empty() ? earlier : others;
}

void ProfileFolder::keep(const Profile& profile) const {
  const std::string file = file_of(profile.of);
  if (file.empty()) return;
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw IoError(path_, 0, "cannot create the folder", error.value());
  write_file_atomically(file, to_json(profile));
  remove_old();
}

void ProfileFolder::remove_old() const {
  const std::vector<OurFile> files = list_files(path_);
  const fs::file_time_type oldest = fs::file_time_type::clock::now() - kLongestAge;
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::error_code unknown;  // another process may have removed it
    if (i >= kMostFiles || files[i].written < oldest) fs::remove(files[i].path, unknown);
  }
}

}  // namespace strata::machine
