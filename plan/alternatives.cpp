#include "plan/alternatives.h"

#include <algorithm>
#include <array>

namespace strata::plan {
namespace {

/// Homes of optimizer state and parameters, and the share of the former that leaves the device.
struct StateHomes {
  Home optimizer = Home::device;
  double part = 1;
  Home parameters = Home::device;
};

/// Parameters go as far as optimizer state at most: they are read more often than it.
std::vector<StateHomes> state_homes() {
  using enum Home;
  std::vector<StateHomes> all{{}};
  for (const Home home : {host, disk})
    for (const double part : {0.25, 0.5, 0.75, 1.0}) all.push_back({home, part, device});
  all.push_back({host, 1, host});
  all.push_back({disk, 1, host});
  all.push_back({disk, 1, disk});
  return all;
}

/// Returns the numbers of samples that divide `samples` evenly, largest first.
std::vector<std::int64_t> micro_batches(std::int64_t samples) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = samples; size >= 1; --size)
    if (samples % size == 0) sizes.push_back(size);
  return sizes;
}

class Listing {
 public:
  Listing(const Choices& asked, const Freedom& free, const runtime::Plan& frame, bool own_device)
      : asked_(asked), free_(free), frame_(frame), own_device_(own_device) {}

  std::vector<Choices> run() {
    all_.push_back(asked_);
    for (const StateHomes& homes : allowed_homes()) {
      Choices choices = asked_;
      if (free_.optimizer) {
        choices.optimizer = homes.optimizer;
        choices.optimizer_part = homes.part;
      }
      if (free_.parameters) choices.parameters = homes.parameters;
      for (const Home activations : {Home::device, Home::host, Home::disk}) {
        if (!allows(activations, asked_.activations, free_.activations)) continue;
        choices.activations = activations;
        add_stages(choices);
      }
    }
    return std::move(all_);
  }

 private:
  /// Host memory gains nothing for a CPU that plays the device in it.
  [[nodiscard]] bool allows(Home home, Home asked, bool free) const {
    if (!free || home == asked) return home == asked;
    return home == Home::device || (home <= free_.farthest && (own_device_ || home == Home::disk));
  }
  /// Returns the homes to try, among them those that were asked for.
  [[nodiscard]] std::vector<StateHomes> allowed_homes() const {
    std::vector<StateHomes> allowed = state_homes();
    std::erase_if(allowed, [&](const StateHomes& homes) { return !allows(homes); });
    const bool has_asked = std::ranges::any_of(allowed, [&](const StateHomes& homes) {
      return homes.optimizer == asked_.optimizer && homes.parameters == asked_.parameters;
    });
    if (!has_asked)
      allowed.insert(allowed.begin(), {asked_.optimizer, asked_.optimizer_part, asked_.parameters});
    return allowed;
  }
  [[nodiscard]] bool allows(const StateHomes& homes) const {
    if (!allows(homes.parameters, asked_.parameters, free_.parameters)) return false;
    if (free_.optimizer) return allows(homes.optimizer, asked_.optimizer, true);
    return homes.optimizer == asked_.optimizer && homes.part == 1;
  }

  void add_stages(Choices choices) {
    if (!free_.stage || frame_.data_ranks() == 1) return add_micro_batches(choices);
    for (int stage = 0; stage <= zero::kHighestStage; ++stage) {
      choices.sharding.stage = stage;
      add_micro_batches(choices);
    }
  }

  void add_micro_batches(Choices choices) {
    if (!free_.micro_batch) return add_orders(choices);
    const std::int64_t samples = asked_.micro_batch * asked_.micro_steps;
    for (const std::int64_t size : micro_batches(samples)) {
      choices.micro_batch = size;
      choices.micro_steps = static_cast<int>(samples / size);
      add_orders(choices);
    }
  }

  void add_orders(Choices choices) {
    const bool several = choices.micro_steps > 1 && frame_.virtual_ranks == 0;
    for (const bool layer_major : {false, true}) {
      if (free_.order ? layer_major && !several : layer_major != asked_.layer_major) continue;
      choices.layer_major = layer_major;
      add_homes_of_sums(choices);
    }
  }

  void add_homes_of_sums(Choices choices) {
    const bool may_leave =
        own_device_ && choices.adds_sums_up() && choices.optimizer != Home::device;
    for (const bool away : {false, true}) {
      if (free_.sums ? away && !may_leave : away != asked_.sums_away) continue;
      choices.sums_away = away;
      if (choices != asked_) all_.push_back(choices);
    }
  }

  const Choices& asked_;
  const Freedom& free_;
  const runtime::Plan& frame_;
  bool own_device_;
  std::vector<Choices> all_;
};

}  // namespace

std::vector<Choices> alternatives(const Choices& asked, const Freedom& free,
                                  const runtime::Plan& frame, bool own_device) {
  return Listing(asked, free, frame, own_device).run();
}

bool is_listed_part(const Choices& choices) {
  return std::ranges::any_of(state_homes(), [&](const StateHomes& homes) {
    return homes.optimizer == choices.optimizer && homes.part == choices.optimizer_part &&
           homes.parameters == choices.parameters;
  });
}

}  // namespace strata::plan
