#include "launcher/views/metrics_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

namespace strata::launcher {
namespace {

constexpr double kUnknownFigure = std::numeric_limits<double>::quiet_NaN();

/// Writes the value of a label: quotes, backslashes and newlines would end it.
std::string label(const std::string& text) {
  std::string written;
  for (const char letter : text) {
    if (letter == '\n')
      written += "\\n";
    else if (letter == '"' || letter == '\\')
      written += std::string("\\") + letter;
    else
      written += letter;
  }
  return written;
}

/// Writes lines of metrics, each after its description.
class Metrics {
 public:
  explicit Metrics(const RunStatus& status)
      : run_(fmt::format("run=\"{}\"", label(status.run_id))) {}

  void describe(const char* name, const char* type, const char* help) {
    name_ = name;
    text_ += fmt::format("# HELP strata_{} {}\n# TYPE strata_{} {}\n", name, help, name, type);
  }
  void add(double value, const std::string& labels = {}) {
    text_ += fmt::format("strata_{}{{{}{}{}}} {}\n", name_, run_, labels.empty() ? "" : ",", labels,
                         value);
  }
  /// A metric with one value; unknown ones are left out.
  void gauge(const char* name, const char* help, double value) {
    if (!std::isfinite(value)) return;
    describe(name, "gauge", help);
    add(value);
  }
  void counter(const char* name, const char* help, double value) {
    describe(name, "counter", help);
    add(value);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  const std::string run_;
  std::string name_;
  std::string text_;
};

double known(bool is_known, double value) { return is_known ? value : kUnknownFigure; }

/// Returns the most that any rank tells.
template <typename Value>
double most(const RunStatus& status, const Value& value) {
  double found = kUnknownFigure;
  for (const RunStatus::Rank& rank : status.ranks)
    if (!rank.state.ended) found = std::fmax(found, value(rank.state));  // NaN gives way
  return found;
}

void add_ranks(Metrics& metrics, const RunStatus& status) {
  std::map<std::string_view, int> phases;
  for (const RunStatus::Rank& rank : status.ranks)
    ++phases[rank.state.ended ? "ended" : rank.state.held ? "held" : name_of(rank.state.phase)];
  metrics.describe("ranks", "gauge", "Ranks in each phase; held: stopped or frozen.");
  for (const auto& [phase, count] : phases) metrics.add(count, fmt::format("phase=\"{}\"", phase));
  if (status.ranks.empty()) return;
  metrics.describe("rank_step", "gauge", "Step that the rank is in; -1: none.");
  for (const RunStatus::Rank& rank : status.ranks)
    metrics.add(static_cast<double>(rank.state.step),
                fmt::format("rank=\"{}\",host=\"{}\"", rank.state.rank, label(rank.host)));
}

/// All states are there, so that a host that is lost leaves no old figure behind.
void add_hosts(Metrics& metrics, const RunStatus& status) {
  metrics.describe("hosts", "gauge", "Hosts of the run in each state.");
  for (const std::string_view state : kHostStates)
    metrics.add(static_cast<double>(std::ranges::count(status.hosts, state, &HostView::state)),
                fmt::format("state=\"{}\"", state));
}

}  // namespace

std::string metrics_text(const RunStatus& status) {
  const double step =
      most(status, [](const RankState& rank) { return static_cast<double>(rank.step); });
  const double rate =
      most(status, [](const RankState& rank) { return rank.view.tokens_per_second; });
  Metrics metrics(status);
  metrics.gauge("up", "1: mlaunch watches over the run.", 1);
  metrics.gauge("stopping", "1: the run was asked to end.", status.stopping ? 1 : 0);
  metrics.gauge("waiting", "1: the run waits for hosts.", status.waiting ? 1 : 0);
  metrics.gauge("run_seconds", "Time since the run began.", status.seconds);
  metrics.gauge("step", "Step that the ranks are in.", known(step >= 0, step));
  metrics.gauge("loss", "Loss of the last step.",
                most(status, [](const RankState& rank) { return rank.view.loss; }));
  metrics.gauge("tokens_per_second", "Tokens of all ranks together.", known(rate > 0, rate));
  metrics.counter("restarts_total", "Starts of the ranks after failures.", status.all_restarts);
  metrics.counter("regroupings_total",
                  "Starts of the ranks on other hosts, or as another number, after no failure.",
                  status.regroupings);
  metrics.counter("lost_steps_total", "Steps that restarts threw away.",
                  static_cast<double>(status.lost_steps));
  metrics.gauge("goodput_ratio", "Part of the run's time that went into steps that count.",
                status.goodput);
  metrics.gauge("checkpoint_step", "Step of the newest checkpoint.",
                known(status.committed >= 0, static_cast<double>(status.committed)));
  metrics.gauge("checkpoint_age_seconds", "Time since it was saved.", status.checkpoint_age);
  metrics.gauge("saves_fail_seconds", "Time since saves began to fail; 0: they do not.",
                most(status, [](const RankState& rank) {
                  return rank.view.save_failure ? rank.view.save_failure->seconds : 0;
                }));
  add_hosts(metrics, status);
  add_ranks(metrics, status);
  return metrics.text();
}

}  // namespace strata::launcher
