#include "tests/golden/golden_checks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace strata::tests {
namespace {

std::string names_of(const Tensors& tensors) {
  std::string names;
  for (const auto& [name, values] : tensors) names += "\n  " + name;
  return names;
}

}  // namespace

void PrintTo(const GoldenCase& golden, std::ostream* out) { *out << golden.name; }

std::vector<std::int32_t> one_batch(const train::ModelFiles& values) {
  const std::vector<std::int32_t> ids = read_ids(values, "input_ids");
  const std::vector<std::int32_t> targets = read_ids(values, "targets");
  const std::vector<std::int64_t>& shape = values.at("input_ids").shape;
  std::vector<std::int32_t> batch;
  for (std::int64_t row = 0; row < shape.at(0); ++row) {
    const auto begin = ids.begin() + row * shape.at(1);
    batch.insert(batch.end(), begin, begin + shape.at(1));
    batch.push_back(targets.at(static_cast<std::size_t>((row + 1) * shape.at(1) - 1)));
  }
  return batch;
}

std::vector<std::vector<std::int32_t>> rows_of_steps(const train::ModelFiles& values,
                                                     const std::string& tensor) {
  const std::vector<std::int32_t> ids = read_ids(values, tensor);
  const std::ptrdiff_t steps = values.at(tensor).shape.at(0);
  const auto size = static_cast<std::ptrdiff_t>(ids.size()) / steps;
  std::vector<std::vector<std::int32_t>> rows;
  for (std::ptrdiff_t step = 0; step < steps; ++step)
    rows.emplace_back(ids.begin() + step * size, ids.begin() + (step + 1) * size);
  return rows;
}

std::vector<std::vector<std::int32_t>> training_batches(const train::ModelFiles& values) {
  return rows_of_steps(values, "adamw.batches");
}

MaskedRun masked_run() {
  const std::vector<GoldenCase> cases = golden_cases();
  const std::string llama = std::ranges::find(cases, "llama", &GoldenCase::name)->directory;
  const train::ModelFiles values(llama + "/masked.safetensors");
  MaskedRun masked{{}, read_doubles(values, "losses"), read_tensors(values, "final.")};
  GoldenRun& run = masked.run;
  run.model = llama;
  run.steps = static_cast<int>(masked.losses.size());
  run.batches = rows_of_steps(values, "batches");
  run.targets = rows_of_steps(values, "targets");
  run.rows = values.at("batches").shape.at(1);
  run.optimizer = {.type = train::OptimizerType::sgd, .learning_rate = 0.1, .weight_decay = 0.1};
  return masked;
}

void expect_trained(const GoldenResult& result, const std::vector<double>& losses,
                    const Tensors& parameters, double tolerance) {
  ASSERT_EQ(result.losses.size(), losses.size());
  for (std::size_t step = 0; step < losses.size(); ++step)
    EXPECT_NEAR(result.losses[step], losses[step], losses[step] * tolerance) << "step " << step;
  EXPECT_TRUE(agree(without_key_bias(result.parameters), parameters, tolerance));
}

testing::AssertionResult agree(const Tensors& ours, const Tensors& golden, double tolerance) {
  const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (golden.empty() || !std::ranges::equal(ours, golden, same_name))
    return testing::AssertionFailure()
           << "tensors are" << names_of(ours) << "\nexpected" << names_of(golden);
  std::string worst_name;
  double worst = -1;
  for (const auto& [name, values] : golden) {
    const double difference = relative_difference(ours.at(name), values);
    if (difference <= worst) continue;  // false for NaN
    worst = difference;
    worst_name = name;
    if (std::isnan(worst)) break;
  }
  if (worst <= tolerance) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "worst tensor " << worst_name << ": |a-b|/|b| = " << worst << ", allowed " << tolerance;
}

Tensors without_key_bias(Tensors tensors) {
  for (auto& [name, values] : tensors) {
    if (!name.ends_with(".c_attn.bias")) continue;
    const auto third = static_cast<std::ptrdiff_t>(values.size() / 3);
    values.erase(values.begin() + third, values.begin() + 2 * third);
  }
  return tensors;
}

double norm_of(const Tensors& tensors) {
  double squares = 0;
  for (const auto& [name, values] : tensors)
    for (double v : values) squares += v * v;
  return std::sqrt(squares);
}

testing::AssertionResult same_bytes(const Tensors& a, const Tensors& b) {
  const auto same_name = [](const auto& x, const auto& y) { return x.first == y.first; };
  if (a.empty() || !std::ranges::equal(a, b, same_name))
    return testing::AssertionFailure() << "tensors are" << names_of(a) << "\nand" << names_of(b);
  for (const auto& [name, values] : a) {
    const std::vector<double>& other = b.at(name);
    if (values.size() != other.size() ||
        std::memcmp(values.data(), other.data(), values.size() * sizeof(double)) != 0)
      return testing::AssertionFailure()
             << name << ": |a-b|/|b| = " << relative_difference(values, other);
  }
  return testing::AssertionSuccess();
}

}  // namespace strata::tests
