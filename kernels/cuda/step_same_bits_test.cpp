// Tests that CUDA kernels of the update give the bits of the CPU's, whatever their alignment.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/testing/simulated/simulated_stream.h"
#include "kernels/math/float16.h"
#include "kernels/ops/adamw.h"
#include "kernels/ops/adamw_8bit.h"
#include "kernels/ops/adamw_bf16.h"
#include "kernels/ops/add_loss.h"
#include "kernels/ops/early_control.h"
#include "kernels/ops/gradient_scale.h"
#include "kernels/ops/lion.h"
#include "kernels/ops/norm_squares.h"
#include "kernels/ops/sgd.h"
#include "kernels/ops/step_control.h"
#include "kernels/testing/kernel_test_support.h"
#include "kernels/testing/packed_test_support.h"

namespace strata::kernels {
namespace {

constexpr std::byte kPattern{0xA5};

/// A tensor that begins `lead` elements after a multiple of 64 bytes, with a pattern around it.
class Placed {
 public:
  Placed(const TensorType& type, std::int64_t lead)
      : type_(type),
        begin_(static_cast<std::size_t>(lead * size_of(type.dtype))),
        bytes_(begin_ + static_cast<std::size_t>(type.span_bytes()) + 64, kPattern) {}
  template <typename T>
  Placed(DType dtype, const std::vector<T>& values, std::int64_t lead)
      : Placed({dtype, {static_cast<std::int64_t>(values.size())}}, lead) {
    if (!values.empty())
      std::memcpy(bytes_.data() + begin_, values.data(), values.size() * sizeof(T));
  }
  template <typename T>
  static Placed from_struct(const T& value) {
    Placed placed({DType::u8, {static_cast<std::int64_t>(sizeof value)}}, 0);
    std::memcpy(placed.bytes_.data(), &value, sizeof value);
    return placed;
  }
  [[nodiscard]] Tensor view() { return {type_, bytes_.data() + begin_}; }
  /// Compares the bytes around the elements, too.
  bool operator==(const Placed& other) const { return bytes_ == other.bytes_; }

 private:
  template <typename T>
  struct Aligned {
    using value_type = T;
    T* allocate(std::size_t n) {
      return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64}));
    }
    void deallocate(T* at, std::size_t) { ::operator delete (at, std::align_val_t{64}); }
    bool operator==(const Aligned&) const = default;
  };
  TensorType type_;
  std::size_t begin_;
  std::vector<std::byte, Aligned<std::byte>> bytes_;
};

/// A call of an operation with its operands.
struct Call {
  const Operation& operation;
  std::vector<Placed> operands;
  std::size_t inputs;              ///< number of inputs, the first operands; the others are outputs
  std::vector<int> in_place = {};  ///< inputs that serve as the first outputs
  Attributes attributes = {};

  void run(const KernelTable& table, Stream& stream, const std::uint32_t* predicate = nullptr) {
    std::vector<Tensor> from, to;
    for (std::size_t i = 0; i < inputs; ++i) from.push_back(operands[i].view());
    for (int input : in_place) to.push_back(from[static_cast<std::size_t>(input)]);
    for (std::size_t i = inputs; i < operands.size(); ++i) to.push_back(operands[i].view());
    std::vector<std::byte> workspace(4096, kPattern);  // enough for one worker of the CPU
    table.find(operation.name)(stream, {from, to, workspace, attributes, predicate});
  }
};

/// Returns the operands after the CPU's kernel ran.
std::vector<Placed> on_cpu(Call call) {
  CpuDevice device(1);
  CpuStream stream(device);
  call.run(cpu_kernels(), stream);
  return call.operands;
}

void expect_bits_of_cpu(Call call, const std::string& label,
                        cuda::ThreadOrder order = cuda::ThreadOrder::backward) {
  const std::vector<Placed> expected = on_cpu(call);
  cuda::SimulatedStream stream(order);
  call.run(cuda::cuda_kernels(), stream);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(call.operands[i] == expected[i]) << label << ", operand " << i;
}

std::vector<float> squared(std::vector<float> values) {
  for (float& value : values) value *= value;
  return values;
}

/// Random masters, every third half-way between two bf16 numbers (it stays at learning rate 0).
std::vector<float> masters(std::int64_t count, std::uint32_t seed) {
  std::vector<float> values = random_floats(count, seed);
  for (std::size_t i = 0; i < values.size(); i += 3)
    values[i] =
        std::bit_cast<float>((std::bit_cast<std::uint32_t>(values[i]) & 0xFFFF0000) | 0x8000);
  return values;
}

StepControl some_control(std::uint32_t seed) {
  StepControl control;
  control.apply = 1;
  control.gradient_factor = seed % 2 == 0 ? 1.0F / 3 : 1;
  control.learning_rate = seed % 5 == 0 ? 0 : 1e-3F / static_cast<float>(seed + 1);
  control.bias_correction1 = static_cast<float>(1 - std::pow(0.9, seed + 1));
  control.bias_correction2_sqrt = static_cast<float>(std::sqrt(1 - std::pow(0.999, seed + 1)));
  control.first_update = seed % 3 == 0 ? 1 : 0;
  return control;
}

/// The number of elements between a multiple of 64 bytes and the start of each kind of operand.
struct Leads {
  std::int64_t states, gradient, parameter;
};
constexpr Leads kLeads[] = {{0, 0, 0}, {1, 1, 1}, {3, 3, 3}, {0, 2, 0}, {1, 1, 2}};

struct OptimizerCase {
  std::int64_t count;
  std::uint32_t seed;
  bool in_place;
  Leads leads;
  Attributes attributes;
};

void add_parameter(Call& call, const OptimizerCase& test) {
  if (test.attributes.has("parameter_dtype"))
    call.operands.emplace_back(
        TensorType(static_cast<DType>(test.attributes.integer("parameter_dtype")), {test.count}),
        test.leads.parameter);
}

Call adamw_call(const OptimizerCase& test) {
  const std::int64_t n = test.count, lead = test.leads.states;
  Call call{adamw_operation(), {}, 5, {}, test.attributes};
  call.operands.emplace_back(DType::f32, masters(n, test.seed), lead);
  call.operands.emplace_back(DType::f32, random_floats(n, test.seed + 1, 1e-3F), lead);
  call.operands.emplace_back(DType::f32, squared(random_floats(n, test.seed + 2, 1e-3F)), lead);
  call.operands.emplace_back(DType::f32, random_floats(n, test.seed + 3, 1e-2F),
                             test.leads.gradient);
  call.operands.push_back(Placed::from_struct(some_control(test.seed)));
  if (test.in_place) call.in_place = {0, 1, 2};
  for (int i = 0; i < 3 && !test.in_place; ++i)
    call.operands.emplace_back(TensorType(DType::f32, {n}), lead);
  add_parameter(call, test);
  return call;
}

Call sgd_call(const OptimizerCase& test) {
  const std::int64_t n = test.count, lead = test.leads.states;
  const bool momentum = test.attributes.real("momentum") > 0;
  const int states = momentum ? 2 : 1;
  Call call{sgd_operation(), {}, momentum ? 4u : 3u, {}, test.attributes};
  call.operands.emplace_back(DType::f32, masters(n, test.seed), lead);
  if (momentum) call.operands.emplace_back(DType::f32, random_floats(n, test.seed + 1), lead);
  call.operands.emplace_back(DType::f32, random_floats(n, test.seed + 2), test.leads.gradient);
  call.operands.push_back(Placed::from_struct(some_control(test.seed)));
  for (int i = 0; i < states; ++i)
    if (test.in_place)
      call.in_place.push_back(i);
    else
      call.operands.emplace_back(TensorType(DType::f32, {n}), lead);
  add_parameter(call, test);
  return call;
}

/// Calls visit(attributes) without a parameter output, and with one of each type.
template <typename Visit>
void with_parameters(const Attributes& attributes, const Visit& visit) {
  visit(attributes);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    Attributes with = attributes;
    with.set("parameter_dtype", static_cast<double>(dtype));
    visit(with);
  }
}

template <typename MakeCall>
void expect_optimizer_bits(const MakeCall& make_call, const Attributes& attributes) {
  std::uint32_t seed = 0;
  with_parameters(attributes, [&](const Attributes& recipe) {
    for (const std::int64_t count : {0, 1, 2, 3, 5, 1024})
      for (const Leads& leads : kLeads) {
        const bool in_place = ++seed % 2 == 0;
        expect_bits_of_cpu(make_call({count, seed, in_place, leads, recipe}),
                           recipe.to_string() + " count " + std::to_string(count) + " leads " +
                               std::to_string(leads.states) + std::to_string(leads.gradient) +
                               std::to_string(leads.parameter));
      }
    expect_bits_of_cpu(make_call({9'001, 7, true, {0, 0, 0}, recipe}), recipe.to_string());
  });
}

TEST(AdamwOnCuda, GivesTheBitsOfTheCpu) {
  for (const double decay : {0.0, 0.1})
    for (const double decoupled : {0.0, 1.0})
      expect_optimizer_bits(adamw_call, {{"beta1", 0.9},
                                         {"beta2", 0.95},
                                         {"eps", 1e-8},
                                         {"weight_decay", decay},
                                         {"decoupled", decoupled}});
}

TEST(SgdOnCuda, GivesTheBitsOfTheCpu) {
  for (const double decay : {0.0, 0.1})
    for (const double momentum : {0.0, 0.9})
      for (const double nesterov : {0.0, 1.0})
        expect_optimizer_bits(sgd_call, {{"momentum", momentum},
                                         {"dampening", 0.25},
                                         {"weight_decay", decay},
                                         {"nesterov", nesterov}});
}

/// Makes a call of adamw_bf16. Attributes say the gradient's type (a DType), and `first`.
Call adamw_bf16_call(const OptimizerCase& test) {
  const std::int64_t n = test.count, lead = test.leads.states;
  const auto rounded = [](const std::vector<float>& values) {
    std::vector<std::uint16_t> halves;
    for (float value : values) halves.push_back(f32_to_bf16(value));
    return halves;
  };
  Call call{adamw_bf16_operation(), {}, 6, {}, test.attributes};
  call.operands.emplace_back(DType::bf16, rounded(random_floats(n, test.seed)), lead);
  call.operands.emplace_back(DType::bf16, rounded(random_floats(n, test.seed + 1, 1e-3F)), lead);
  call.operands.emplace_back(DType::bf16, rounded(squared(random_floats(n, test.seed + 2, 1e-3F))),
                             lead);
  const std::vector<float> gradient = random_floats(n, test.seed + 3, 1e-2F);
  if (test.attributes.integer("gradient") == static_cast<std::int64_t>(DType::f32))
    call.operands.emplace_back(DType::f32, gradient, test.leads.gradient);
  else
    call.operands.emplace_back(DType::bf16, rounded(gradient), test.leads.gradient);
  call.operands.push_back(Placed::from_struct(some_control(test.seed)));
  call.operands.emplace_back(DType::i64, std::vector<std::int64_t>{test.seed, 12}, 0);
  if (test.in_place) call.in_place = {0, 1, 2};
  for (int i = 0; i < 3 && !test.in_place; ++i)
    call.operands.emplace_back(TensorType(DType::bf16, {n}), lead);
  return call;
}

/// Calls visit(attributes) for both gradient types, and starts at and inside random blocks.
template <typename Visit>
void with_bf16_recipes(const Visit& visit) {
  for (const DType gradient : {DType::bf16, DType::f32})
    for (const std::int64_t first : {0, 4097, 4098, 4099})
      visit(Attributes{{"beta1", 0.9},
                       {"beta2", 0.95},
                       {"eps", 1e-8},
                       {"weight_decay", 0.1},
                       {"decoupled", 1.0},
                       {"key", 3},
                       {"first", static_cast<double>(first)},
                       {"gradient", static_cast<double>(gradient)}});
}

TEST(AdamwBf16OnCuda, GivesTheBitsOfTheCpu) {
  std::uint32_t seed = 0;
  with_bf16_recipes([&](const Attributes& recipe) {
    for (const std::int64_t count : {0, 1, 3, 7, 2048})
      for (const Leads& leads : kLeads)
        expect_bits_of_cpu(adamw_bf16_call({count, ++seed, seed % 2 == 0, leads, recipe}),
                           recipe.to_string() + " count " + std::to_string(count) + " leads " +
                               std::to_string(leads.states) + std::to_string(leads.gradient));
  });
}

/// Makes an operand of `dtype` with `values`, rounded.
Placed rounded_operand(DType dtype, std::vector<float> values, std::int64_t lead) {
  if (dtype == DType::f32) return Placed(dtype, values, lead);
  return Placed(dtype, rounded_tensor(dtype, values).values<std::uint16_t>(), lead);
}

/// Makes a call of an optimizer. Attributes say packed, moment and gradient (DTypes), and first.
Call formats_call(const Operation& plain, const Operation& packed_operation, std::size_t moments,
                  const OptimizerCase& test) {
  const std::int64_t n = test.count, lead = test.leads.states;
  const bool packed = test.attributes.integer("packed") != 0;
  const auto moment = static_cast<DType>(test.attributes.integer("moment"));
  const std::size_t states = moments + (packed ? 2 : 1);
  const bool stochastic = moment == DType::bf16;
  Call call{
      packed ? packed_operation : plain, {}, states + (stochastic ? 3 : 2), {}, test.attributes};
  const std::vector<float> start = masters(n, test.seed);
  if (packed) {
    std::vector<TestTensor> parts = packed_tensors(start);
    call.operands.emplace_back(DType::bf16, parts[0].values<std::uint16_t>(), lead);
    call.operands.emplace_back(DType::i16, parts[1].values<std::int16_t>(), lead);
  } else {
    call.operands.emplace_back(DType::f32, start, lead);
  }
  for (std::uint32_t k = 0; k < moments; ++k)
    call.operands.push_back(
        rounded_operand(moment, squared(random_floats(n, test.seed + 1 + k, 1e-2F)), lead));
  call.operands.push_back(rounded_operand(static_cast<DType>(test.attributes.integer("gradient")),
                                          random_floats(n, test.seed + 3, 1e-2F),
                                          test.leads.gradient));
  call.operands.push_back(Placed::from_struct(some_control(test.seed)));
  if (stochastic)
    call.operands.emplace_back(DType::i64, std::vector<std::int64_t>{test.seed, 12}, 0);
  for (std::size_t i = 0; i < states; ++i)
    if (test.in_place)
      call.in_place.push_back(static_cast<int>(i));
    else
      call.operands.emplace_back(call.operands[i].view().type, lead);
  if (!packed) add_parameter(call, test);
  return call;
}

Call adamw_formats_call(const OptimizerCase& test) {
  return formats_call(adamw_operation(), adamw_packed_operation(), 2, test);
}

/// Calls visit(attributes) for every format of state with every type of gradient.
template <typename Visit>
void with_formats(const Visit& visit) {
  int number = 0;
  for (const bool packed : {false, true})
    for (const DType moment : {DType::f32, DType::bf16})
      for (const DType gradient : {DType::f32, DType::bf16, DType::f16}) {
        Attributes recipe{{"beta1", 0.9},
                          {"beta2", 0.95},
                          {"eps", 1e-8},
                          {"weight_decay", 0.1},
                          {"decoupled", 1.0},
                          {"key", 3},
                          {"first", ++number % 2 == 0 ? 4096.0 : 4099.0},
                          {"packed", packed ? 1.0 : 0.0},
                          {"moment", static_cast<double>(moment)},
                          {"gradient", static_cast<double>(gradient)}};
        if (number % 3 != 0) recipe.set("parameter_dtype", static_cast<double>(DType::bf16));
        visit(recipe);
      }
}

template <typename MakeCall>
void expect_format_bits(const MakeCall& make_call) {
  std::uint32_t seed = 0;
  with_formats([&](const Attributes& recipe) {
    for (const std::int64_t count : {0, 1, 3, 7, 2048})
      for (const Leads& leads : kLeads)
        expect_bits_of_cpu(make_call({count, ++seed, seed % 2 == 0, leads, recipe}),
                           recipe.to_string() + " count " + std::to_string(count) + " leads " +
                               std::to_string(leads.states) + std::to_string(leads.gradient));
  });
}

TEST(AdamwFormatsOnCuda, GiveTheBitsOfTheCpu) { expect_format_bits(adamw_formats_call); }

Call lion_formats_call(const OptimizerCase& test) {
  return formats_call(lion_operation(), lion_packed_operation(), 1, test);
}

TEST(LionFormatsOnCuda, GiveTheBitsOfTheCpu) { expect_format_bits(lion_formats_call); }

/// Makes a call of adamw_8bit on whole blocks of 128. Attributes say the gradient's type, a DType.
Call adamw_8bit_call(const OptimizerCase& test) {
  const std::int64_t n = test.count, lead = test.leads.states;
  const auto codes = [&](std::uint32_t seed) {
    std::mt19937 engine(seed);
    std::vector<std::uint8_t> values(static_cast<std::size_t>(n));
    for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(engine() >> 24);
    return values;
  };
  Call call{adamw_8bit_operation(), {}, 7, {}, test.attributes};
  call.operands.emplace_back(DType::f32, masters(n, test.seed), lead);
  call.operands.emplace_back(DType::u8, codes(test.seed + 1), lead);
  call.operands.emplace_back(DType::u8, codes(test.seed + 2), lead);
  for (std::uint32_t k = 0; k < 2; ++k)
    call.operands.emplace_back(DType::f32, squared(random_floats(n / 128, test.seed + k, 0.1F)),
                               test.leads.gradient);
  call.operands.push_back(rounded_operand(static_cast<DType>(test.attributes.integer("gradient")),
                                          random_floats(n, test.seed + 3, 1e-2F),
                                          test.leads.gradient));
  call.operands.push_back(Placed::from_struct(some_control(test.seed)));
  for (int i = 0; i < 5; ++i)
    if (test.in_place)
      call.in_place.push_back(i);
    else
      call.operands.emplace_back(call.operands[static_cast<std::size_t>(i)].view().type, lead);
  add_parameter(call, test);
  return call;
}

/// Calls visit(attributes) for every type of gradients and parameters.
template <typename Visit>
void with_8bit_recipes(const Visit& visit) {
  for (const DType gradient : {DType::f32, DType::bf16, DType::f16})
    with_parameters({{"beta1", 0.9},
                     {"beta2", 0.95},
                     {"eps", 1e-8},
                     {"weight_decay", 0.1},
                     {"decoupled", 1.0},
                     {"gradient", static_cast<double>(gradient)}},
                    visit);
}

TEST(Adamw8bitOnCuda, GivesTheBitsOfTheCpu) {
  std::uint32_t seed = 0;
  with_8bit_recipes([&](const Attributes& recipe) {
    for (const std::int64_t count : {0, 128, 1408})
      for (const Leads& leads : kLeads)
        expect_bits_of_cpu(adamw_8bit_call({count, ++seed, seed % 2 == 0, leads, recipe}),
                           recipe.to_string() + " count " + std::to_string(count) + " leads " +
                               std::to_string(leads.states) + std::to_string(leads.gradient));
  });
}

void expect_predicate(Call call, const std::string& label) {
  const std::vector<Placed> before = call.operands, expected = on_cpu(call);
  cuda::SimulatedStream stream(cuda::ThreadOrder::forward);
  const std::uint32_t no = 0, yes = 1;
  call.run(cuda::cuda_kernels(), stream, &no);
  EXPECT_TRUE(call.operands == before) << label;
  call.run(cuda::cuda_kernels(), stream, &yes);
  EXPECT_TRUE(call.operands == expected) << label;
  EXPECT_FALSE(call.operands == before) << label;
}

TEST(PredicateOnCuda, OfZeroChangesNothing) {
  const Attributes adamw{
      {"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", 0.1}, {"decoupled", 1.0}};
  const Attributes sgd{{"momentum", 0.9}};
  for (const Leads& leads : kLeads)
    for (const bool in_place : {false, true}) {
      with_parameters(adamw, [&](const Attributes& recipe) {
        expect_predicate(adamw_call({1027, 3, in_place, leads, recipe}), recipe.to_string());
      });
      with_parameters(sgd, [&](const Attributes& recipe) {
        expect_predicate(sgd_call({1027, 3, in_place, leads, recipe}), recipe.to_string());
      });
      with_bf16_recipes([&](const Attributes& recipe) {
        expect_predicate(adamw_bf16_call({1027, 3, in_place, leads, recipe}), recipe.to_string());
      });
      with_8bit_recipes([&](const Attributes& recipe) {
        expect_predicate(adamw_8bit_call({1024, 3, in_place, leads, recipe}), recipe.to_string());
      });
      with_formats([&](const Attributes& recipe) {
        expect_predicate(adamw_formats_call({1027, 3, in_place, leads, recipe}),
                         recipe.to_string());
        expect_predicate(lion_formats_call({1027, 3, in_place, leads, recipe}), recipe.to_string());
      });
    }
}

using Word = std::vector<std::int64_t>;

Call norm_call(const std::vector<float>& gradient, std::int64_t lead, bool first, bool in_place) {
  Call call{norm_squares_operation(), {}, 2, {}, {{"first", first ? 1.0 : 0.0}}};
  call.operands.emplace_back(DType::i64, Word(AgreedWord::kWords, 5), 0);
  call.operands.emplace_back(DType::f32, gradient, lead);
  if (in_place)
    call.in_place = {0};
  else
    call.operands.emplace_back(TensorType(DType::i64, {AgreedWord::kWords}), 0);
  return call;
}

TEST(NormSquaresOnCuda, GivesTheBitsOfTheCpu) {
  std::uint32_t seed = 0;
  for (const std::int64_t count : {0, 1, 31, 1023, 1024, 1025, 16 * 1024, 16 * 1024 + 1, 70'001}) {
    std::vector<float> gradient = random_floats(count, ++seed, 1e-3F);
    for (const bool first : {false, true})
      for (const bool in_place : {false, true})
        for (const cuda::ThreadOrder order :
             {cuda::ThreadOrder::forward, cuda::ThreadOrder::backward, cuda::ThreadOrder::shuffled})
          expect_bits_of_cpu(norm_call(gradient, seed % 4, first, in_place),
                             std::to_string(count) + (first ? " first" : ""), order);
    if (count < 70'000) continue;
    // Numbers of all sizes, so that cells go to digits far apart, and cells that are not finite.
    for (std::size_t i = 0; i < gradient.size(); ++i)
      gradient[i] = std::ldexp(gradient[i], static_cast<int>(i / 1024) * 4 - 130);
    gradient[3 * 1024] = std::numeric_limits<float>::infinity();
    gradient[40 * 1024 + 1] = std::numeric_limits<float>::quiet_NaN();
    expect_bits_of_cpu(norm_call(gradient, 0, false, true), "wide range");
  }
}

TEST(AddLossOnCuda, GivesTheBitsOfTheCpu) {
  for (const double loss :
       {2.5, -0.25, 1e-12, 1.5 * 0x1p-40, 2.5 * 0x1p-40, 1e300, -1e5, 0.0,
        std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    for (const bool in_place : {false, true}) {
      Call call{add_loss_operation(), {}, 2};
      Word word(AgreedWord::kWords, 3);
      word[AgreedWord::kLoss] = std::int64_t{1} << 52;
      call.operands.emplace_back(DType::i64, word, 0);
      call.operands.emplace_back(DType::f64, std::vector<double>{loss}, 0);
      if (in_place)
        call.in_place = {0};
      else
        call.operands.emplace_back(TensorType(DType::i64, {AgreedWord::kWords}), 0);
      expect_bits_of_cpu(call, std::to_string(loss));
    }
}

TEST(GradientScaleOnCuda, GivesTheBitsOfTheCpu) {
  for (const std::int64_t targets : {0, 1, 4095})
    for (const double scale : {1.0, 65536.0}) {
      StepState state;
      state.loss_scale = scale;
      Call call{gradient_scale_operation(), {Placed::from_struct(state)}, 2};
      call.attributes = {{"leaves", 7}};
      call.operands.emplace_back(DType::i64, std::vector<std::int64_t>{targets}, 0);
      call.operands.emplace_back(TensorType(DType::f32, {2}), 0);
      expect_bits_of_cpu(call, std::to_string(targets));
    }
}

TEST(StepControlOnCuda, GivesTheBitsOfTheCpuUnderEverySchedule) {
  for (int kind = 0; kind <= static_cast<int>(ScheduleKind::range_test); ++kind)
    for (const std::int64_t updates : {0, 1, 2, 5, 9, 10, 11, 37, 99, 150}) {
      StepRules rules{.leaves = 3, .clip = 0.7, .scale_mode = ScaleMode::dynamic};
      rules.schedule = {.kind = static_cast<ScheduleKind>(kind),
                        .warmup_steps = 10,
                        .logarithmic = updates % 2 == 0,
                        .total_steps = 100,
                        .first_steps = 30,
                        .second_steps = 40,
                        .rate = 0.5};
      StepState state;
      state.loss_scale = 512;
      state.updates = updates;
      state.skipped = updates % 4;
      state.beta1_power = std::pow(0.9, updates);
      state.beta2_power = std::pow(0.999, updates);
      const auto bytes = [](std::size_t size) {
        return TensorType(DType::u8, {static_cast<std::int64_t>(size)});
      };
      Word word(AgreedWord::kWords);
      std::mt19937 generator(static_cast<unsigned>(updates));
      for (std::size_t i = 28; i < 36; ++i) word[i] = generator();
      word[AgreedWord::kLoss] = generator();
      word[AgreedWord::kFirstFlag + 2] = updates % 3;
      for (const std::int64_t overflow : {0, 2}) {
        word[AgreedWord::kNonFinite] = word[AgreedWord::kNonFiniteLoss] = overflow;
        Call call{
            step_control_operation(), {Placed::from_struct(state)}, 2, {0}, rules.to_attributes()};
        call.operands.emplace_back(DType::i64, word, 0);
        call.operands.emplace_back(bytes(sizeof(StepControl)), 0);
        call.operands.emplace_back(bytes(sizeof(StepMetrics)), 0);
        expect_bits_of_cpu(call, "schedule " + std::to_string(kind) + " after " +
                                     std::to_string(updates) + " updates");
      }
    }
}

TEST(EarlyControlOnCuda, GivesTheBitsOfTheCpuUnderEverySchedule) {
  for (int kind = 0; kind <= static_cast<int>(ScheduleKind::range_test); ++kind)
    for (const std::int64_t updates : {0, 1, 2, 5, 9, 10, 11, 37, 99, 150}) {
      StepRules rules;
      rules.schedule = {.kind = static_cast<ScheduleKind>(kind),
                        .warmup_steps = 10,
                        .logarithmic = updates % 2 == 0,
                        .total_steps = 100,
                        .first_steps = 30,
                        .second_steps = 40,
                        .rate = 0.5};
      StepState state;
      state.updates = updates;
      state.beta1_power = std::pow(0.9, updates);
      state.beta2_power = std::pow(0.999, updates);
      Call call{
          early_control_operation(), {Placed::from_struct(state)}, 1, {}, rules.to_attributes()};
      call.operands.emplace_back(
          TensorType(DType::u8, {static_cast<std::int64_t>(sizeof(StepControl))}), 0);
      expect_bits_of_cpu(call,
                         "schedule " + std::to_string(kind) + " after " + std::to_string(updates));
    }
}

}  // namespace
}  // namespace strata::kernels
