#include "train/config/batch.h"

#include <fmt/core.h>
#include <algorithm>

namespace strata::train {
namespace {

constexpr double kLargestBatch = 1e12;

/// Lists the multiples of `unit` around `wanted`: "64 (accumulation 1) or 128 (accumulation 2)".
std::string nearest(std::int64_t wanted, std::int64_t unit, const std::string& factor) {
  const std::int64_t below = wanted / unit;
  std::string list;
  for (const std::int64_t count : {below, below + 1}) {
    if (count < 1) continue;
    list += fmt::format("{}{} ({} {})", list.empty() ? "" : " or ", count * unit, factor, count);
  }
  return list;
}

/// Resets the number of the file that gives way to flags if all three are given and do not agree.
void drop_the_weaker(BatchRequest& r, std::int64_t world, std::string& note) {
  if (!r.global.value || !r.micro.value || !r.accumulation.value) return;
  const std::int64_t global = *r.global.value, micro = *r.micro.value;
  const std::int64_t accumulation = *r.accumulation.value;
  if (global == micro * accumulation * world) return;
  const auto drop = [&](BatchNumber& number, const char* name) {
    note = fmt::format("{} {} of the file gives way to the flags", name, *number.value);
    number.value.reset();
  };
  const int flags = r.global.from_flag + r.micro.from_flag + r.accumulation.from_flag;
  if (flags == 0 || flags == 3) return;
  if (!r.accumulation.from_flag && (r.global.from_flag || r.micro.from_flag) &&
      global % (micro * world) == 0) {
    return drop(r.accumulation, "gradient_accumulation_steps");
  }
  if (!r.micro.from_flag && global % (accumulation * world) == 0) {
    return drop(r.micro, "train_micro_batch_size_per_gpu");
  }
  if (!r.global.from_flag) return drop(r.global, "train_batch_size");
  if (!r.accumulation.from_flag) return drop(r.accumulation, "gradient_accumulation_steps");
  drop(r.micro, "train_micro_batch_size_per_gpu");
}

std::string ranks(const BatchRequest& r, std::int64_t world) {
  return fmt::format("{}{}{}", world, r.virtual_ranks ? " virtual" : "",
                     world == 1 ? " rank" : " ranks");
}

/// The batch of a step as it was given.
const char* name_of_global(const BatchRequest& r) {
  return r.global.from_flag ? "--global-batch" : "train_batch_size";
}

/// Finds the other factor when the global batch and one factor are given.
void divide(const BatchRequest& r, std::int64_t global, std::int64_t factor, std::int64_t world,
            const char* given, const char* other, std::int64_t& result, std::string& problem) {
  const std::int64_t unit = factor * world;
  result = global / unit;
  if (global % unit == 0) return;
  const std::string divisor =
      std::string(given).empty()
          ? ranks(r, world)
          : fmt::format("{} {} x {} = {}", given, factor, ranks(r, world), unit);
  problem = fmt::format("{} {} is not divisible by {}; nearest: {}", name_of_global(r), global,
                        divisor, nearest(global, unit, other));
}

}  // namespace

BatchTriple solve_batch(BatchRequest r, std::int64_t world) {
  BatchTriple t;
  const double largest = static_cast<double>(r.micro.value.value_or(1)) *
                         static_cast<double>(r.accumulation.value.value_or(1)) *
                         static_cast<double>(world);
  if (largest > kLargestBatch) {
    t.problem = "micro batch x accumulation x ranks is more than 10^12 sequences";
    return t;
  }
  drop_the_weaker(r, world, t.note);
  t.global = r.global.value.value_or(0);
  t.micro = r.micro.value.value_or(0);
  t.accumulation = r.accumulation.value.value_or(0);
  if (t.global == 0 && t.micro == 0) {
    t.problem =
        "one of train_batch_size (--global-batch) and train_micro_batch_size_per_gpu "
        "(--micro-batch) is needed";
  } else if (t.global == 0) {
    t.accumulation = std::max<std::int64_t>(t.accumulation, 1);
    t.global = t.micro * t.accumulation * world;
  } else if (t.micro == 0 && t.accumulation == 0) {
    t.accumulation = 1;
    divide(r, t.global, 1, world, "", "micro batch", t.micro, t.problem);
  } else if (t.micro == 0) {
    divide(r, t.global, t.accumulation, world, "accumulation", "micro batch", t.micro, t.problem);
  } else if (t.accumulation == 0) {
    divide(r, t.global, t.micro, world, "micro batch", "accumulation", t.accumulation, t.problem);
  } else if (t.global != t.micro * t.accumulation * world) {
    const std::int64_t product = t.micro * t.accumulation * world;
    t.problem = fmt::format(
        "{0} {1} is not micro batch {2} x accumulation {3} x {4} = {5}; set {0} to {5}, or leave "
        "one of the three out",
        name_of_global(r), t.global, t.micro, t.accumulation, ranks(r, world), product);
  }
  if (!t.note.empty())
    t.note += fmt::format(": global batch {} = micro-batch {} x accumulation {} x {}", t.global,
                          t.micro, t.accumulation, ranks(r, world));
  return t;
}

}  // namespace strata::train
