// Holds a training run in your own program: opens, steps and closes it, and prints its events.
//
//     build/bin/example_session --steps 50 --output out/session      takes any flags of train
#include <cstdio>
#include <functional>
#include <utility>

#include "core/standard_output.h"
#include "train/config/command_line.h"
#include "train/session/session.h"
#include "train/session/settle_request.h"
#include "train/session/status_listener.h"

using namespace strata;

void show(const train::RunEvent& event) {
  if (const auto* done = std::get_if<train::StepDone>(&event))
    std::printf("step %lld/%lld loss %.6f\n", static_cast<long long>(done->step),
                static_cast<long long>(done->steps), done->metrics.loss);
  if (const auto* saved = std::get_if<train::Saved>(&event))
    std::printf("saved %s\n", saved->directory.c_str());
}

int main(int argc, char** argv) {
  train::RunListeners listeners;
  listeners.add(show);
  try {
    const RankContext context = rank_context_from_environment();
    train::RunRequest request =
        train::settle_request(train::parse_train_command_line(argc, argv), context);
    StatusPage page = train::status_page_of(context);  // mlaunch reads it
    train::StatusListener status(page);
    listeners.add(std::ref(status));
    train::Session session = train::Session::open(std::move(request), listeners);
    constexpr int kPatience = 200;  // then it stops, and saves if it has an output
    for (int step = 0; step < kPatience && session.step(); ++step) continue;
    const ExitCode code = session.close();
    StandardOutput().finish();  // throws if a full disk did not take what was printed
    return static_cast<int>(code);
  } catch (const Error& error) {  // listeners of an open session have got it as Refused
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
