#include "train/session/console_listener.h"

#include <string>

#include "core/format_bytes.h"
#include "train/run/format_number.h"
#include "train/session/last_words.h"

namespace strata::train {
namespace {

std::string describe(const Saved& saved) {
  std::string text = "wrote " + saved.directory + ": " + format_bytes(saved.bytes) +
                     format_number(" in %.2f s", saved.seconds);
  if (saved.blocked_seconds < saved.seconds)
    text += format_number(", training stood still for %.3f s", saved.blocked_seconds);
  return text;
}

}  // namespace

void ConsoleListener::operator()(const RunEvent& event) {
  if (const auto* note = std::get_if<Note>(&event)) say(*note);
  if (const auto* saved = std::get_if<Saved>(&event)) console_.print(describe(*saved));
  if (const auto* encoding = std::get_if<Encoding>(&event))
    encoding->progress ? encoding_.show(*encoding->progress) : encoding_.finish();
  if (const auto* planning = std::get_if<Planning>(&event))
    planning->progress ? planning_.show(*planning->progress) : planning_.finish();
  if (const auto* refused = std::get_if<Refused>(&event)) {
    console_.end_progress();
    say_last_words(context_, status_, refused->code, refused->text, console_);
  }
  if (std::holds_alternative<StepDone>(event) || std::holds_alternative<Closing>(event))
    console_.throw_if_lost();
}

void ConsoleListener::say(const Note& note) {
  switch (note.level) {
    case Note::Level::text:
      return console_.print(note.text);
    case Note::Level::note:
      return console_.note(note.text);
    case Note::Level::warning:
      return console_.warn(note.text);
    case Note::Level::failure:
      return console_.fail(note.text);
  }
}

}  // namespace strata::train
