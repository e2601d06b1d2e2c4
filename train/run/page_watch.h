// The status page of a rank, as its communicators and its long work know it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "comm/watch.h"
#include "core/beat.h"
#include "core/status_page.h"

namespace strata::train {

/// Borrows the page; without one (null) nothing is shown and nobody ends the rank.
class PageWatch final : public comm::Watch {
 public:
  explicit PageWatch(StatusPage* page) : page_(page) {}

  [[nodiscard]] std::optional<std::string> stop_reason() const override {
    return page_ != nullptr ? page_->stop_reason() : std::nullopt;
  }
  void begin_collective(std::int64_t number, std::string_view name) override {
    if (page_ != nullptr) page_->begin_collective(number, name);
  }
  void end_collective() override {
    if (page_ != nullptr) page_->end_collective();
  }

  /// Says on the page that the rank gets on.
  [[nodiscard]] Beat beat() const {
    return page_ != nullptr ? Beat([page = page_] { page->beat(); }) : Beat();
  }
  /// Tells the launcher that a checkpoint is there to go on from. One thread at a time.
  void set_committed(std::int64_t step, const std::string& directory) const;
  /// Tells the launcher that a checkpoint could not be written, or that one could again. One thread
  /// at a time.
  void set_failed_save(std::int64_t step, std::string_view why) const {
    if (page_ != nullptr) page_->set_failed_save(step, why);
  }
  void forget_failed_save() const {
    if (page_ != nullptr) page_->forget_failed_save();
  }
  /// True if the launcher no longer counts on this rank, which must then not commit anything.
  [[nodiscard]] bool lease_ended() const { return page_ != nullptr && page_->lease_ended(); }

 private:
  StatusPage* page_;
};

}  // namespace strata::train
