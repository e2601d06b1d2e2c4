// Words to values of option fields and back.
#include <charconv>
#include <cmath>
#include <optional>

#include "core/json_writer.h"
#include "train/config/option_fields.h"
#include "train/config/settings.h"
#include "train/config/template_token.h"

namespace strata::train {
namespace {

template <typename E>
struct Choice {
  E value;
  std::string_view name;   ///< the first name of a value is the one that is printed
  bool is_offered = true;  ///< false: what --print-config says where nobody said anything
};

constexpr Choice<DType> kDTypes[] = {
    {DType::f32, "fp32"},    {DType::bf16, "bf16"}, {DType::f16, "fp16"},
    {DType::f32, "float32"}, {DType::f32, "float"}, {DType::bf16, "bfloat16"},
    {DType::f16, "float16"}, {DType::f16, "half"},
};
constexpr Choice<OptimizerType> kOptimizers[] = {
    {OptimizerType::adamw, "adamw"},
    {OptimizerType::adam, "adam"},
    {OptimizerType::lion, "lion"},
    {OptimizerType::sgd, "sgd"},
    {OptimizerType::adamw, "adamw_torch"},
    {OptimizerType::adamw, "adamw_torch_fused"},
    {OptimizerType::adamw, "adamw_hf"},
    {OptimizerType::adamw, "adamw_8bit"},
    {OptimizerType::adamw, "adamw_bnb_8bit"},
    {OptimizerType::lion, "lion_32bit"},
    {OptimizerType::adamw, "adamw_apex_fused"},
    {OptimizerType::adamw, "adamw_anyprecision"},
    {OptimizerType::adamw, "adamw_torch_xla"},
    {OptimizerType::adamw, "adamw_torch_npu_fused"},
    {OptimizerType::adamw, "paged_adamw_32bit"},
    {OptimizerType::adamw, "paged_adamw_8bit"},
    {OptimizerType::adamw, "paged_adamw"},
    {OptimizerType::lion, "paged_lion_32bit"},
};
constexpr Choice<SchedulerType> kSchedulers[] = {
    {SchedulerType::constant, "constant"},
    {SchedulerType::linear, "linear"},
    {SchedulerType::cosine, "cosine"},
    {SchedulerType::warmup, "WarmupLR"},
    {SchedulerType::warmup_decay, "WarmupDecayLR"},
    {SchedulerType::warmup_cosine, "WarmupCosineLR"},
    {SchedulerType::one_cycle, "OneCycle"},
    {SchedulerType::lr_range_test, "LRRangeTest"},
    {SchedulerType::constant, "constant_with_warmup"},
    {SchedulerType::cosine, "cosine_with_min_lr"},
    {SchedulerType::cosine_warmup_with_min_lr, "cosine_warmup_with_min_lr"},
    {SchedulerType::cosine_with_restarts, "cosine_with_restarts"},
    {SchedulerType::polynomial, "polynomial"},
    {SchedulerType::inverse_sqrt, "inverse_sqrt"},
    {SchedulerType::warmup_stable_decay, "warmup_stable_decay"},
    {SchedulerType::inverse_sqrt, "inverse-square-root"},
    {SchedulerType::warmup_stable_decay, "WSD"},
};
constexpr Choice<RampShape> kRampShapes[] = {{RampShape::linear, "linear"},
                                             {RampShape::cosine, "cosine"},
                                             {RampShape::one_minus_sqrt, "1-sqrt"}};
constexpr Choice<Cadence> kCadences[] = {{Cadence::as_given, "as_given", false},
                                         {Cadence::never, "no"},
                                         {Cadence::steps, "steps"},
                                         {Cadence::epoch, "epoch"}};
constexpr Choice<WarmupType> kWarmups[] = {{WarmupType::logarithmic, "log"},
                                           {WarmupType::linear, "linear"}};
constexpr Choice<NoDecay> kNoDecays[] = {{NoDecay::norms_and_biases, "default"},
                                         {NoDecay::none, "none"}};

constexpr Choice<DeviceChoice> kDevices[] = {
    {DeviceChoice::automatic, "auto"}, {DeviceChoice::cpu, "cpu"}, {DeviceChoice::cuda, "cuda"}};

constexpr Choice<StateRecipe> kRecipes[] = {
    {StateRecipe::fp32_master, "fp32-master"},
    {StateRecipe::packed_master, "packed-master"},
    {StateRecipe::bf16_moments, "bf16-moments"},
    {StateRecipe::packed_bf16_moments, "packed-bf16-moments"},
    {StateRecipe::eight_bit, "8bit"},
    {StateRecipe::bf16_sr, "bf16-sr"},
};

constexpr Choice<comm::Reduction> kReductions[] = {{comm::Reduction::ordered, "ordered"},
                                                   {comm::Reduction::native, "native"}};

constexpr Choice<OffloadTarget> kOffloadTargets[] = {
    {OffloadTarget::none, "none"}, {OffloadTarget::cpu, "cpu"}, {OffloadTarget::nvme, "nvme"}};

constexpr Choice<UpdateTime> kUpdateTimes[] = {{UpdateTime::automatic, "automatic"},
                                               {UpdateTime::step_end, "step_end"},
                                               {UpdateTime::next_step, "next_step"},
                                               {UpdateTime::gradient, "gradient"}};

constexpr Choice<SaveFailure> kSaveFailures[] = {{SaveFailure::keep_training, "continue"},
                                                 {SaveFailure::stop, "stop"}};

constexpr Choice<NonFinite> kNonFinites[] = {
    {NonFinite::automatic, "auto"}, {NonFinite::stop, "stop"}, {NonFinite::skip, "skip"}};

struct TimeUnit {
  std::string_view name;
  std::int64_t seconds;
};
constexpr TimeUnit kTimeUnits[] = {{"s", 1},    {"sec", 1},     {"m", 60},
                                   {"min", 60}, {"h", 60 * 60}, {"hour", 60 * 60}};

constexpr auto& choices(const DType*) { return kDTypes; }
constexpr auto& choices(const OptimizerType*) { return kOptimizers; }
constexpr auto& choices(const SchedulerType*) { return kSchedulers; }
constexpr auto& choices(const WarmupType*) { return kWarmups; }
constexpr auto& choices(const NoDecay*) { return kNoDecays; }
constexpr auto& choices(const DeviceChoice*) { return kDevices; }
constexpr auto& choices(const StateRecipe*) { return kRecipes; }
constexpr auto& choices(const comm::Reduction*) { return kReductions; }
constexpr auto& choices(const OffloadTarget*) { return kOffloadTargets; }
constexpr auto& choices(const UpdateTime*) { return kUpdateTimes; }
constexpr auto& choices(const SaveFailure*) { return kSaveFailures; }
constexpr auto& choices(const NonFinite*) { return kNonFinites; }
constexpr auto& choices(const RampShape*) { return kRampShapes; }
constexpr auto& choices(const Cadence*) { return kCadences; }

}  // namespace

std::string range_text(const OptionField& field, std::string_view kind) {
  std::string text = std::string("expected ") + std::string(kind);
  const auto number = [](double value) {
    return value == std::floor(value) && std::abs(value) < 1e15
               ? std::to_string(static_cast<std::int64_t>(value))
               : json_number(value);
  };
  if (field.highest < 1e15) {
    return text + " from " + number(field.lowest) + " to " + number(field.highest);
  }
  return text + " of at least " + number(field.lowest);
}

namespace {

/// Assigns words to one field.
struct Assign {
  const OptionField& field;
  const std::vector<std::string>& words;
  std::string& note;

  [[nodiscard]] std::string found(const std::string& expected) const {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return "found '" + text + "', " + expected +
           (is_template_token(text) ? " (an unfilled template token)" : "");
  }

  std::string operator()(bool* target) const {
    for (const std::string_view yes : {"true", "1", "yes", "on"}) {
      if (same_word(words[0], yes)) return *target = true, "";
    }
    for (const std::string_view no : {"false", "0", "no", "off"}) {
      if (same_word(words[0], no)) return *target = false, "";
    }
    return found("expected true or false");
  }

  std::string operator()(std::int64_t* target) const {
    return field.kind == NumberKind::bytes ? bytes(target) : whole_number(target);
  }

  [[nodiscard]] std::string bytes(std::int64_t* target) const {
    const std::optional<std::int64_t> size = parse_byte_size(words[0]);
    const bool low = size && static_cast<double>(*size) < field.lowest;
    if (!size || low || static_cast<double>(*size) > field.highest) {
      return found(
          range_text(field, "bytes, or a number with KB, MB, GB, TB, KiB, MiB, GiB or TiB,"));
    }
    *target = *size;
    return "";
  }

  /// "0.1" where a part of all steps may stand.
  [[nodiscard]] bool takes_part() const {
    double part = 0;
    if (field.part == nullptr || !parse_number(words[0], part) || part <= 0 || part >= 1)
      return false;
    *field.part = part;
    return true;
  }

  std::string whole_number(std::int64_t* target) const {
    if (takes_part()) return "";
    const std::string& word = words[0];
    const std::string expected =
        range_text(field, field.part == nullptr ? "a whole number"
                                                : "a part of all steps (0.1) or a whole number");
    std::int64_t whole = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), whole);
    double number = static_cast<double>(whole);
    if (error != std::errc() || rest != word.data() + word.size()) {
      if (field.kind == NumberKind::most && same_word(word, "Infinity"))
        return *target = static_cast<std::int64_t>(field.highest), "";
      if (!parse_number(word, number)) return found(expected);
      if (number != std::floor(number)) {
        if (field.kind != NumberKind::count) return found(expected);
        number = std::floor(number);
        note = "found " + word + ", rounded down to a whole number of elements";
      }
      if (field.kind == NumberKind::most) number = std::min(number, field.highest);
      if (std::abs(number) >= 9.2e18) return found(expected);
      whole = static_cast<std::int64_t>(number);
    }
    if (field.kind == NumberKind::most && number > field.highest)
      return *target = static_cast<std::int64_t>(field.highest), "";
    if (number < field.lowest || number > field.highest) return found(expected);
    *target = whole;
    return "";
  }

  /// "500:502", "500", "all".
  std::string operator()(StepRange* target) const {
    if (same_word(words[0], "all")) return *target = {}, "";
    const std::string& word = words[0];
    const std::size_t colon = word.find(':');
    double first = 0, last = 0;
    const bool numbers =
        parse_number(word.substr(0, colon), first) &&
        parse_number(colon == std::string::npos ? word : word.substr(colon + 1), last);
    if (!numbers || first != std::floor(first) || last != std::floor(last) ||
        first < field.lowest || last < first || last > field.highest)
      return found("expected steps as FIRST:LAST, counted from 1, or all");
    *target = {static_cast<std::int64_t>(first), static_cast<std::int64_t>(last)};
    return "";
  }

  std::string operator()(SaveInterval* target) const {
    if (takes_part()) return "";
    const std::string& word = words[0];
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    const std::string_view unit(rest, static_cast<std::size_t>(word.data() + word.size() - rest));
    const std::string expected =
        "expected a number of steps (500) or a part of them all (0.1), or a time (30min, 45s, 2h), "
        "0: at the end only";
    if (error != std::errc() || number < 0 || static_cast<double>(number) > field.highest)
      return found(expected);
    if (unit.empty()) return *target = {.steps = number}, "";
    for (const TimeUnit& time : kTimeUnits)
      if (same_word(unit, time.name))
        return *target = {.steps = 0, .seconds = number * time.seconds}, "";
    return found(expected);
  }

  std::string operator()(double* target) const {
    double number = 0;
    if (!parse_number(words[0], number) || number < field.lowest || number > field.highest) {
      return found(range_text(field, "a number"));
    }
    *target = number;
    return "";
  }

  std::string operator()(std::string* target) const { return *target = words[0], ""; }
  std::string operator()(std::vector<std::string>* target) const { return *target = words, ""; }

  template <typename E>
  std::string operator()(E* target) const {
    std::string names;
    for (const Choice<E>& choice : choices(target)) {
      if (same_word(words[0], choice.name)) return *target = choice.value, "";
      if (choice.is_offered) names += (names.empty() ? "" : ", ") + std::string(choice.name);
    }
    return found("expected one of " + names);
  }
};

struct ToText {
  const OptionField& field;

  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const std::int64_t* value) const {
    return field.kind == NumberKind::bytes ? byte_size_text(*value) : std::to_string(*value);
  }
  std::string operator()(const double* value) const { return json_number(*value); }
  std::string operator()(const StepRange* value) const {
    if (value->last == StepRange().last) return "all";
    return std::to_string(value->first) + ":" + std::to_string(value->last);
  }
  std::string operator()(const SaveInterval* value) const {
    return value->seconds > 0 ? std::to_string(value->seconds) + "s" : std::to_string(value->steps);
  }
  std::string operator()(const std::string* value) const { return *value; }
  std::string operator()(const std::vector<std::string>* value) const {
    std::string text;
    for (const std::string& word : *value) text += (text.empty() ? "" : " ") + word;
    return text;
  }
  template <typename E>
  std::string operator()(const E* value) const {
    for (const Choice<E>& choice : choices(value)) {
      if (choice.value == *value) return std::string(choice.name);
    }
    return "";
  }
};

}  // namespace

std::string assign(const OptionField& field, const std::vector<std::string>& words,
                   std::string& note) {
  const bool list = std::holds_alternative<std::vector<std::string>*>(field.target);
  if (words.empty() || (words.size() > 1 && !list)) {
    return "found " + std::to_string(words.size()) + " values, expected one";
  }
  return std::visit(Assign{field, words, note}, field.target);
}

std::string text_of(const OptionField& field) {
  if (field.part != nullptr && *field.part > 0) return json_number(*field.part);
  return std::visit(ToText{field}, field.target);
}

}  // namespace strata::train
