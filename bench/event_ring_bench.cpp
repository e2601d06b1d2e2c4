// Measures what the status page's memory of the last events costs a rank: one event with its end.
#include <benchmark/benchmark.h>

#include "core/status_page.h"

namespace {

void one_event(benchmark::State& state) {
  strata::StatusPage page = strata::StatusPage::create(0);
  strata::EventRing& events = page.data().events;
  std::int64_t number = 0;
  for (auto _ : state) {
    events.begin(strata::RankEvent::Kind::instruction, ++number, "layer3.attention_backward");
    events.end(strata::RankEvent::Kind::instruction);
  }
}
BENCHMARK(one_event);

}  // namespace

BENCHMARK_MAIN();
