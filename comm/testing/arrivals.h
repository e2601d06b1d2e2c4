// A point of a test at which its ranks wait for one another without their communicator.
#pragma once

namespace strata::comm {

/// Counts ranks in memory that threads share, and processes that were forked later. Copies count
/// together. Nothing is freed, since ranks may outlive the test.
class Arrivals {
 public:
  Arrivals();
  /// Waits until `world` ranks have come; each comes once. Throws PeerError after a minute.
  void meet(int world) const;

 private:
  struct Count;
  Count* count_;
};

}  // namespace strata::comm
