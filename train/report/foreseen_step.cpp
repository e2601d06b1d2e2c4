#include "train/report/foreseen_step.h"

#include <algorithm>

#include "plan/foresee.h"

namespace strata::train {
namespace {

/// Keeps when each instruction of each Program ran last.
class SpanRecorder final : public runtime::Observer {
 public:
  void begin(const runtime::Program&, int) override {}
  void end(const runtime::Program&, int) override {}
  void executed(const runtime::Program& program, int instruction, std::int64_t begin_ns,
                std::int64_t end_ns) override {
    constexpr double kMsPerNs = 1e-6;
    std::vector<TimeSpan>& spans = spans_[program.name];
    spans.resize(program.instructions.size());
    spans[static_cast<std::size_t>(instruction)] = {kMsPerNs * static_cast<double>(begin_ns),
                                                    kMsPerNs * static_cast<double>(end_ns)};
  }

  std::map<std::string, std::vector<TimeSpan>> take() {
    for (auto& [name, spans] : spans_) {
      const double zero = std::ranges::min_element(spans, {}, &TimeSpan::begin_ms)->begin_ms;
      for (TimeSpan& span : spans) span = {span.begin_ms - zero, span.end_ms - zero};
    }
    return std::move(spans_);
  }

 private:
  std::map<std::string, std::vector<TimeSpan>> spans_;
};

}  // namespace

ForeseenStep foresee_step(const compile::StepPrograms& programs, const machine::Machine& machine) {
  SpanRecorder recorder;
  plan::ForecastRequest request;
  request.observers = {&recorder};
  const plan::Forecast forecast = plan::foresee(programs, machine, request);
  return {.seconds = forecast.step_seconds,
          .how = "simulated, queues beside one another; " + forecast.bound_by + " binds",
          .spans = recorder.take()};
}

}  // namespace strata::train
