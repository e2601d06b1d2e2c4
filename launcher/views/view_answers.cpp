#include "launcher/views/view_answers.h"

namespace strata::launcher {
namespace {

/// Attempts and ranks count from 0; less stands for none.
void write_number(JsonWriter& json, const char* name, int number) {
  json.key(name);
  if (number < 0)
    json.null();
  else
    json.value(number);
}

}  // namespace

std::optional<std::string> answer_view(const ViewAnswers& answers, const ViewQuestion& question) {
  if (const auto* stop = std::get_if<AskStop>(&question)) return answers.stop(stop->now);
  if (const auto* logs = std::get_if<AskLogs>(&question)) return answers.logs(*logs, false);
  if (std::holds_alternative<AskStatus>(question)) return answers.status();
  return {};
}

std::string last_answer(const ViewAnswers& answers, const ViewQuestion& question,
                        const std::string& end) {
  const auto* logs = std::get_if<AskLogs>(&question);
  return logs != nullptr ? answers.logs(*logs, true).value_or(end) : end;
}

void write_line(JsonWriter& json, const OutputLine& line) {
  json.begin_object();
  write_number(json, "rank", line.rank);
  write_number(json, "attempt", line.attempt);
  json.member("stream", line.kind == OutputKind::standard_output ? "stdout" : "stderr");
  json.member("text", line.text).end_object();
}

std::string logs_json(const LogAnswer& answer) {
  JsonWriter json(0);
  json.begin_object().member("version", 1).member("run", answer.run_id);
  json.member("next", answer.piece.next).member("dropped", answer.piece.dropped);
  json.member("more", answer.piece.more()).member("ended", answer.ended);
  json.key("waiting_for").begin_array();
  for (const std::string& host : answer.waiting_for) json.value(host);
  json.end_array().key("lines").begin_array();
  for (const OutputLine& line : answer.piece.lines) write_line(json, line);
  return json.end_array().end_object().finish();
}

}  // namespace strata::launcher
