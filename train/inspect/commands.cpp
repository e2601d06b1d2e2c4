#include "train/inspect/commands.h"

#include <fmt/core.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/file_system.h"
#include "core/json_writer.h"
#include "core/text_table.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/inspect/folder_difference.h"
#include "train/inspect/stored_digests.h"
#include "train/inspect/tensor_statistics.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;
using Align = TextTable::Align;

/// The shortest text that gives the same bits; whole numbers without a fraction.
std::string number_text(double value) {
  if (std::isnan(value)) return "-";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = json_number(value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string count_text(std::int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string heading(const TensorFolder& folder) {
  if (folder.manifest() == nullptr)
    return folder.path() + ": no " + kManifestName +
           ", so nothing tells whether its files are as they were saved\n";
  const Manifest& manifest = *folder.manifest();
  std::string text = fmt::format("{}: checkpoint of step {}, {} bytes\n", folder.path(),
                                 manifest.step, manifest.total_bytes());
  for (const auto& [key, value] : manifest.facts)
    if (!value.empty()) text += "  " + key + ": " + value + "\n";
  return text;
}

std::string seconds_text(std::int64_t seconds) {
  constexpr std::int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  if (seconds < kMinute) return fmt::format("{} s", std::max<std::int64_t>(seconds, 0));
  if (seconds < kHour) return fmt::format("{} min", seconds / kMinute);
  if (seconds < kDay) return fmt::format("{} h {} min", seconds / kHour, seconds % kHour / kMinute);
  return fmt::format("{} d {} h", seconds / kDay, seconds % kDay / kHour);
}

/// The time since the manifest, a checkpoint's last file, was written.
std::string age_text(const std::string& folder) {
  std::error_code error;
  const auto written = fs::last_write_time(folder + "/" + kManifestName, error);
  if (error) return "-";
  const auto age = fs::file_time_type::clock::now() - written;
  return seconds_text(std::chrono::duration_cast<std::chrono::seconds>(age).count());
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace

std::string list_tensors(FileSystem& files, const std::string& path, bool statistics, int threads) {
  const TensorFolder folder(files, path);
  std::vector<TextTable::Column> columns{
      {"tensor"}, {"dtype"}, {"shape"}, {"bytes", Align::right}, {"file"}};
  std::vector<TensorStatistics> values;
  if (statistics) {
    values = statistics_of(folder, threads);
    for (const char* title : {"min", "max", "mean", "L2 norm", "not finite", "zeros"})
      columns.push_back({title, Align::right});
  }
  TextTable table(std::move(columns));
  std::int64_t elements = 0, bytes = 0;
  for (std::size_t t = 0; t < folder.tensors().size(); ++t) {
    const TensorFolder::Tensor& tensor = folder.tensors()[t];
    elements += tensor.stored.elements();
    bytes += tensor.stored.size_bytes;
    std::vector<std::string> row{tensor.stored.name, tensor.type_text(), tensor.stored.shape_text(),
                                 std::to_string(tensor.stored.size_bytes), tensor.file_name()};
    if (statistics) {
      const TensorStatistics& of = values[t];
      const bool any = of.finite > 0;
      const bool known = tensor.stored.dtype.has_value();
      for (const std::string& cell :
           {any ? number_text(of.least) : "-", any ? number_text(of.largest) : "-",
            number_text(of.mean()), any ? number_text(of.norm()) : "-",
            known ? std::to_string(of.not_finite) : "-", known ? std::to_string(of.zeros) : "-"})
        row.push_back(cell);
    }
    table.add(std::move(row));
  }
  return heading(folder) + table.text() +
         count_text(static_cast<std::int64_t>(folder.tensors().size()), "tensor") + ", " +
         count_text(elements, "element") + ", " + count_text(bytes, "byte") + "\n";
}

std::string verify_checkpoint(FileSystem& files, const std::string& path, int threads,
                              const std::function<void(const std::string& damage)>& report) {
  const std::string folder = without_slashes(path);
  if (!find_status(folder + "/" + kManifestName)) {
    refuse_output_folder(files, folder);
    throw DataError(folder + ": has no " + kManifestName +
                    ", so nothing can be verified: it is no checkpoint of Strata, or one whose "
                    "saving never ended" +
                    advice_on_damage(files, folder));
  }
  std::vector<std::string> damage;
  std::int64_t blocks = 0, bytes = 0, step = 0;
  try {
    const CheckpointReader reader(files, folder, {.threads = threads});
    const Manifest& manifest = reader.manifest();
    for (const Manifest::BlockFile& file : manifest.block_files)
      blocks += static_cast<std::int64_t>(file.blocks.size());
    bytes = manifest.total_bytes();
    step = manifest.step;
    damage = reader.find_damage();
    const auto named = step_of_checkpoint(fs::weakly_canonical(folder).filename().string());
    if (named && *named != step)
      damage.push_back(fmt::format("{}: its manifest is of step {}", folder, step));
  } catch (const DataError& error) {
    damage.emplace_back(error.what());
  }
  if (damage.empty())
    return fmt::format("{}: whole: step {}, {}, {}, each as it was saved\n", folder, step,
                       count_text(blocks, "block"), count_text(bytes, "byte"));
  for (const std::string& place : damage) report(place);
  throw DataError(folder + ": damaged in " +
                  count_text(static_cast<std::int64_t>(damage.size()), "place") +
                  advice_on_damage(files, folder));
}

Comparison compare(FileSystem& files, const std::string& path_a, const std::string& path_b,
                   int threads) {
  const TensorFolder a(files, path_a), b(files, path_b);
  const FolderDifference found = compare_folders(a, b, threads);
  Comparison result{.same = found.same()};
  for (const TensorFolder* folder : {&a, &b})
    if (folder->manifest() == nullptr) result.text += heading(*folder);
  for (const std::size_t t : found.only_a)
    result.text += "only in " + a.path() + ": " + a.tensors()[t].stored.name + "\n";
  for (const std::size_t t : found.only_b)
    result.text += "only in " + b.path() + ": " + b.tensors()[t].stored.name + "\n";
  for (const FolderDifference::Pair& pair : found.other_form) {
    const TensorFolder::Tensor &in_a = a.tensors()[pair.a], &in_b = b.tensors()[pair.b];
    result.text += fmt::format("{}: {} {} in {}, {} {} in {}\n", in_a.stored.name, in_a.type_text(),
                               in_a.stored.shape_text(), a.path(), in_b.type_text(),
                               in_b.stored.shape_text(), b.path());
  }
  TextTable table({{"tensor"},
                   {"different", Align::right},
                   {"of elements", Align::right},
                   {"largest difference", Align::right}});
  std::int64_t same = 0;
  for (std::size_t i = 0; i < found.compared.size(); ++i) {
    const StoredTensor& stored = a.tensors()[found.compared[i].a].stored;
    const TensorDifference& difference = found.differences[i];
    if (difference.elements == 0)
      ++same;
    else
      table.add({stored.name, std::to_string(difference.elements),
                 std::to_string(stored.elements()), number_text(difference.largest)});
  }
  result.text += fmt::format(
      "{}{} of {}{}", table.text(), same,
      count_text(static_cast<std::int64_t>(a.tensors().size() + found.only_b.size()), "tensor"),
      result.same ? " the same: no difference\n" : " the same\n");
  return result;
}

std::string digest_tensors(FileSystem& files, const std::string& path, int threads) {
  return describe_stored_state(TensorFolder(files, path), threads);
}

std::string list_output(FileSystem& files, const std::string& output) {
  if (find_status(output + "/" + kManifestName))
    throw InvalidArgument(output + ": is a checkpoint itself; use: inspect list " +
                          parent_directory(output));
  TextTable table(
      {{"step", Align::right}, {"bytes", Align::right}, {"age", Align::right}, {"state"}});
  for (const DirectoryEntry& entry : files.list(output)) {
    if (entry.kind != DirectoryEntry::Kind::directory) continue;
    const std::string path = output + "/" + entry.name;
    if (const auto leftover = parse_folder_name(entry.name)) {
      table.add({std::to_string(leftover->step), "-", "-",
                 entry.name + (leftover->state == FolderState::staging
                                   ? ": is being written, or an interrupted save left it"
                                   : ": an interrupted save or removal left it")});
      continue;
    }
    const auto step = step_of_checkpoint(entry.name);
    if (!step) continue;
    std::string bytes = "-", state = "whole by its sizes";
    try {
      const CheckpointReader reader(files, path);
      bytes = std::to_string(reader.manifest().total_bytes());
      if (reader.manifest().step != *step)
        state = fmt::format("its manifest is of step {}", reader.manifest().step);
      if (const std::string* what = reader.manifest().find_fact(kNotFiniteFact))
        state += "; not finite: " + *what;
    } catch (const DataError& error) {
      state = error.what();
    } catch (const IoError& error) {
      state = error.what();
    }
    table.add({std::to_string(*step), bytes, age_text(path), state});
  }
  const std::string text = table.text();
  return text.empty() ? output + ": no checkpoints\n" : text;
}

}  // namespace strata::train
