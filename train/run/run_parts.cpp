#include "train/run/run_parts.h"

#include <utility>
#include <vector>

#include "core/error.h"

namespace strata::train {

RunParts::RunParts(RunRequest& run_request, const RunListeners& who_hears)
    : request(run_request),
      watch(request.context.page),
      beat(watch.beat()),
      options(request.config.options),
      first(request.context.rank == 0),
      listeners(who_hears),
      lost_steps(options.output),
      nonfinite(options),
      late_failures(who_hears) {
  StopRequest::Interrupted interrupted = [this](const char* signal) { say_what_is_lost(signal); };
  if (!options.checkpoint.on_signal) {
    if (first && request.owns_signals) stop.emplace(std::move(interrupted));
    return;
  }
  if (request.context.started_by != "none") interrupted = {};  // SIGINT is left to the launcher
  stop.emplace(
      stop_limits(options.checkpoint, request.context.grace),
      [this](const std::string& why) { say_that_it_gives_up(why); }, std::move(interrupted));
}

void RunParts::print_notes() {
  std::vector<std::string> notes = device->notes();
  for (std::string& note : disk->notes()) notes.push_back(std::move(note));
  if (engine)
    for (std::string& note : engine->notes()) notes.push_back(std::move(note));
  for (const std::string& note : notes)
    if (notes_printed_.insert(note).second) listeners.note(note);
}

void RunParts::tell(const RunEvent& event) {
  listeners.for_each([&](const RunListener& hear) { late_failures.guard([&] { hear(event); }); });
}

void RunParts::print_notes(const std::vector<std::string>& notes) const {
  for (const std::string& note : notes) listeners.print("note: " + note);
}

/// Called when the time to save after a signal is over, on another thread than the run's, which may
/// be anywhere.
void RunParts::say_that_it_gives_up(const std::string& why) const {
  // All ranks would say the same; without a launcher that says it once, rank 0 does.
  if (first || request.context.status_fd >= 0)
    listeners.tell(Refused{ExitCode::try_again, why + "; " + lost_text()});
}

/// Called after a signal that ends the run at once, on another thread than the run's.
void RunParts::say_what_is_lost(const char* signal) const {
  listeners.fail(std::string("ended by ") + signal + "; " + lost_text());
}

/// Says what is lost, after the reason why it could not be saved where an attempt has failed.
std::string RunParts::lost_text() const {
  return failed_save.before_other_words() + lost_steps.text(under_way.step());
}

}  // namespace strata::train
