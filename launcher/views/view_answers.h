// What a run answers to those who ask (control/view_question.h), over whatever they came.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/json_writer.h"
#include "launcher/control/view_question.h"
#include "launcher/output/recent_output.h"

namespace strata::launcher {

/// What a run does for those who ask; each returns one line of JSON, without its end.
struct ViewAnswers {
  std::function<std::string()> status;
  std::function<std::string(bool now)> stop;
  /// `ended`: the run has, so that nothing is waited for. nullopt: not yet.
  std::function<std::optional<std::string>(const AskLogs&, bool ended)> logs;
};

/// Does what is asked, and returns the answer; nullopt: its time has not come, ask again.
std::optional<std::string> answer_view(const ViewAnswers& answers, const ViewQuestion& question);
/// Returns the answer to a question whose time had not come when the run ended; `end` tells of that
/// (ended_json).
std::string last_answer(const ViewAnswers& answers, const ViewQuestion& question,
                        const std::string& end);

struct LogAnswer {
  std::string run_id;
  RecentOutput::Piece piece;
  std::vector<std::string> waiting_for = {};  ///< hosts whose ranks' lines are on their way
  bool ended = false;                         ///< the run has: these are its last lines
};

/// Writes a line as an object of its own.
void write_line(JsonWriter& json, const OutputLine& line);
/// What is answered to AskLogs, in one line.
std::string logs_json(const LogAnswer& answer);

}  // namespace strata::launcher
