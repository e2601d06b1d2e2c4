#include "train/run/run_parts.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "core/error.h"
#include "train/run/last_words.h"
#include "train/run/lost_steps.h"

namespace strata::train {

RunParts::RunParts(const RunRequest& run_request, StatusPage& status_page, Console& where_to_speak)
    : request(run_request),
      options(request.config.options),
      first(request.context.rank == 0),
      status(status_page),
      console(where_to_speak),
      nonfinite(options),
      late_failures(where_to_speak) {
  if (!options.checkpoint.on_signal) return;
  StopRequest::Interrupted interrupted;  // a launcher says it itself
  if (request.context.started_by == "none") interrupted = [this] { say_what_is_lost(); };
  stop.emplace(
      stop_limits(options.checkpoint, request.context.grace),
      [this](const std::string& why) { give_up(why); }, std::move(interrupted));
}

void RunParts::print_notes() {
  std::vector<std::string> notes = device->notes();
  for (std::string& note : disk->notes()) notes.push_back(std::move(note));
  if (engine)
    for (std::string& note : engine->notes()) notes.push_back(std::move(note));
  for (const std::string& note : notes)
    if (notes_printed_.insert(note).second) console.note(note);
}

void RunParts::print_notes(const std::vector<std::string>& notes) const {
  for (const std::string& note : notes) console.print("note: " + note);
}

/// The time to save after a signal is over. On a thread beside the run, which may be anywhere.
void RunParts::give_up(const std::string& why) {
  // All ranks have the same to say; without a launcher that says it once, rank 0 does.
  if (first || request.context.status_fd >= 0)
    say_last_words(request.context, status, ExitCode::try_again,
                   why + "; " + what_is_lost(options.output, status.data().step.load()), console);
  ::_exit(static_cast<int>(ExitCode::try_again));
}

/// Of Ctrl-C, on a thread beside the run.
void RunParts::say_what_is_lost() const {
  console.fail("ended by Ctrl-C; " + what_is_lost(options.output, status.data().step.load()));
}

}  // namespace strata::train
