#include "launcher/control/testing/meeting.h"

#include <fmt/core.h>

#include "launcher/control/testing/run_checks.h"

namespace strata::launcher::simulation {
namespace {

std::string key_of(int node) { return fmt::format("address/{}", node); }

}  // namespace

std::string Meeting::value_of(int node) const {
  return fmt::format("of host {} in attempt {}", node, attempt_);
}

ValueRequest Meeting::ask(ValueRequest request) {
  request.id = ++asked_;
  request.timeout_ms = 3'600'000;  // no run of the simulation is so long
  return request;
}

std::vector<ValueRequest> Meeting::begin() {
  std::vector<ValueRequest> requests{put(key_of(node_), value_of(node_))};
  for (int node = 0; node < hosts_; ++node) {
    if (node == node_) continue;
    requests.push_back(ask({.key = key_of(node)}));
    waiting_[requests.back().id] = value_of(node);
  }
  return requests;
}

ValueRequest Meeting::put(const std::string& key, const std::string& value) {
  const ValueRequest request = ask({.is_put = true, .key = key, .value = value});
  waiting_[request.id] = "";
  return request;
}

void Meeting::take(const ValueAnswer& answer) {
  const auto asked = waiting_.find(answer.id);
  if (asked == waiting_.end())
    throw CheckFailed("answers", fmt::format("request {} of attempt {}, host {}, is not waited for",
                                             answer.id, attempt_, node_));
  if (answer.kind == ValueAnswer::Kind::failed) {
    has_failed_ = true;
  } else if (answer.kind != ValueAnswer::Kind::done || answer.value != asked->second) {
    throw CheckFailed(
        "values", fmt::format("attempt {}, host {}, gets '{}' for '{}' (kind {})", attempt_, node_,
                              answer.value, asked->second, static_cast<int>(answer.kind)));
  }
  waiting_.erase(asked);
}

}  // namespace strata::launcher::simulation
