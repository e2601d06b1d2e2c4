#include "train/report/report_page.h"

#include <array>
#include <cmath>

#include "core/check.h"
#include "core/json_writer.h"
#include "machine/hardware_file.h"
#include "train/report/page_texts.h"

namespace strata::train {
namespace {

using runtime::Tier;

/// Steps that the page shows at most; of more, each so many-th and the last.
constexpr std::size_t kMostSteps = 20'000;

/// Digits that a picture can show.
double rounded(double ms) { return std::round(ms * 1e5) / 1e5; }

template <typename Values, typename Of>
void write_row(JsonWriter& json, std::string_view name, const Values& values, const Of& of) {
  json.key(name).begin_row();
  for (const auto& value : values) json.value(of(value));
  json.end_array();
}

void write_layers(JsonWriter& json, const RunReport& report) {
  json.key("layers").begin_array();
  for (const plan::LayerProfile& layer : report.layers) {
    json.begin_object()
        .member("block", layer.block)
        .member("parameter_bytes", layer.parameter_bytes)
        .member("gradient_bytes", layer.gradient_bytes)
        .member("optimizer_bytes", layer.optimizer_bytes);
    write_row(json, "saved_bytes", layer.saved_bytes, [](std::int64_t bytes) { return bytes; });
    json.member("flops", layer.flops)
        .member("forward_ms", 1e3 * layer.forward_seconds)
        .member("backward_ms", 1e3 * layer.backward_seconds)
        .member("update_ms", 1e3 * layer.update_seconds)
        .member("moving_ms", 1e3 * layer.moving_seconds)
        .member("recompute_ms", 1e3 * layer.recompute_seconds)
        .member("freed_bytes_per_ms", layer.freed_bytes_per_ms())
        .member("recomputable_bytes", layer.recomputable_bytes)
        .member("recomputable_ms", 1e3 * layer.recomputable_seconds)
        .end_object();
  }
  json.end_array().key("modes").begin_array();
  if (!report.layers.empty())
    for (const LayerMode& mode : layer_modes(report))
      json.begin_object()
          .member("name", mode.name)
          .member("kept_bytes", mode.kept_bytes)
          .member("freed_bytes", mode.freed_bytes)
          .member("step_seconds", mode.step_seconds)
          .end_object();
  json.end_array();
}

void write_live(JsonWriter& json, const ProgramTimeline& timeline) {
  json.key("live").begin_object();
  for (const Tier tier : runtime::kAllTiers) {
    if (timeline.live.empty() || timeline.bytes(tier, timeline.peak(tier)) == 0) continue;
    json.key(name_of(tier)).begin_array();
    for (std::size_t p = 0; p < kPurposes; ++p) {
      json.begin_row();
      for (const auto& tiers : timeline.live) json.value(tiers[static_cast<std::size_t>(tier)][p]);
      json.end_array();
    }
    json.end_array();
  }
  json.end_object();
}

/// [begins, ends] in ms; of what was not measured null.
void write_measured(JsonWriter& json, const ProgramTimeline& timeline) {
  if (timeline.measured.empty()) return;
  json.key("measured").begin_array();
  for (const auto side : {&TimeSpan::begin_ms, &TimeSpan::end_ms}) {
    json.begin_row();
    for (const std::optional<TimeSpan>& span : timeline.measured)
      if (span)
        json.value(rounded((*span).*side));
      else
        json.null();
    json.end_array();
  }
  json.end_array();
}

void write_program(JsonWriter& json, const ProgramTimeline& timeline) {
  const runtime::Program& program = *timeline.program;
  using runtime::Instruction;
  json.begin_object().member("name", program.name).member("runs_per_step", timeline.runs_per_step);
  write_row(json, "blocks", program.blocks, [](const std::string& name) { return name; });
  write_row(json, "labels", program.instructions, [](const Instruction& in) { return in.label; });
  write_row(json, "queue", program.instructions,
            [](const Instruction& in) { return static_cast<int>(in.queue); });
  write_row(json, "block", program.instructions, [](const Instruction& in) { return in.block; });
  write_row(json, "pass", program.instructions,
            [](const Instruction& in) { return static_cast<int>(in.pass); });
  json.key("foreseen").begin_array();
  for (const auto side : {&TimeSpan::begin_ms, &TimeSpan::end_ms}) {
    json.begin_row();
    for (const TimeSpan& span : timeline.foreseen) json.value(rounded(span.*side));
    json.end_array();
  }
  json.end_array();
  write_measured(json, timeline);
  write_live(json, timeline);
  json.end_object();
}

void write_names(JsonWriter& json) {
  write_row(json, "purposes", kAllPurposes, [](Purpose purpose) { return name_of(purpose); });
  write_row(json, "queues", runtime::kAllQueues,
            [](runtime::Queue queue) { return name_of(queue); });
  write_row(json, "passes",
            std::array{runtime::Pass::forward, runtime::Pass::backward, runtime::Pass::update},
            [](runtime::Pass pass) { return name_of(pass); });
  write_row(json, "actions",
            std::array{runtime::SavedAction::keep, runtime::SavedAction::recompute,
                       runtime::SavedAction::host, runtime::SavedAction::disk},
            [](runtime::SavedAction action) { return name_of(action); });
}

void write_tiers(JsonWriter& json, const RunReport& report) {
  json.key("tiers").begin_array();
  for (const Tier tier : runtime::kAllTiers) {
    const PeakMoment peak = find_peak(report.timelines, tier);
    if (peak.timeline == nullptr || peak.bytes == 0) continue;
    json.begin_object()
        .member("name", name_of(tier))
        .member("arena_bytes", report.programs.taken_bytes(tier))
        .member("peak_bytes", peak.bytes)
        .member("peak_at", describe_instruction(*peak.timeline->program, peak.instruction))
        .end_object();
  }
  json.end_array();
}

void put(std::string& text, std::string_view place, std::string_view what) {
  const std::size_t at = text.find(place);
  STRATA_CHECK(at != std::string::npos);
  text.replace(at, place.size(), what);
}

}  // namespace

void write_steps(JsonWriter& json, const std::vector<StepRow>& all) {
  std::vector<StepRow> steps;
  const std::size_t every = all.size() / kMostSteps + 1;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i % every == 0 || i + 1 == all.size()) steps.push_back(all[i]);
  json.key("steps").begin_object();
  write_row(json, "step", steps, [](const StepRow& row) { return row.step; });
  write_row(json, "loss", steps, [](const StepRow& row) { return row.loss; });
  write_row(json, "learning_rate", steps, [](const StepRow& row) { return row.learning_rate; });
  write_row(json, "grad_norm", steps, [](const StepRow& row) { return row.gradient_norm; });
  write_row(json, "seconds", steps, [](const StepRow& row) { return row.seconds; });
  json.end_object();
}

std::string page_data(const RunReport& report, std::string_view summary) {
  JsonWriter json(0);
  json.begin_object()
      .member("model", report.model)
      .member("device", report.device)
      .member("rank", report.rank)
      .member("ranks", report.ranks)
      .member("failure", report.failure)
      .member("foreseen_seconds", report.foreseen.seconds)
      .member("foreseen_how", report.foreseen.how)
      .member("summary", summary)
      .member("plan", report.programs.settings.plan.to_json())
      .member("machine", machine::to_json(report.machine));
  write_names(json);
  write_tiers(json, report);
  json.key("programs").begin_array();
  for (const ProgramTimeline& timeline : report.timelines) write_program(json, timeline);
  json.end_array();
  write_layers(json, report);
  write_steps(json, report.measured.steps);
  json.key("compared").begin_array().end_array();  // page_with_runs puts other runs there
  json.key("settings").begin_array();
  for (const ResolvedField& field : report.settings)
    json.begin_row()
        .value(field.name)
        .value(field.value)
        .value(name_of(field.origin))
        .value(field.where)
        .end_array();
  return json.end_array().end_object().finish();
}

std::string escape_for_script(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = json.substr(i, 3);
    if (rest == "\u2028" || rest == "\u2029") {
      text += rest == "\u2028" ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (json[i] == '<') {
      text += "\\u003c";
    } else if (json[i] == '>') {
      text += "\\u003e";
    } else if (json[i] == '&') {
      text += "\\u0026";
    } else {
      text += json[i];
    }
  }
  return text;
}

std::string report_page(const RunReport& report, std::string_view summary) {
  std::string page(kPageHtml);
  put(page, "/*STYLE*/", kPageStyle);
  put(page, "/*SCRIPT*/", kPageScript);
  put(page, "/*DATA*/", escape_for_script(page_data(report, summary)));
  return page;
}

}  // namespace strata::train
