#include "train/doctor/host_probe.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

using std::chrono::milliseconds;

TEST(HostProbe, MeasuresTheWayToAnotherHost) {
  ProbeServer server("127.0.0.1");
  server.serve("word");
  const Probe::Answer answer = Probe("127.0.0.1", server.port(), "word").ask();
  EXPECT_GT(answer.round_trip.count(), 0);
  EXPECT_LT(answer.round_trip, milliseconds(500));
  EXPECT_LT(std::chrono::abs(answer.clock_ahead), milliseconds(500)) << "it is one clock";
  EXPECT_GT(Probe("127.0.0.1", server.port(), "word").send_for(milliseconds(50)), 1e6);
}

TEST(HostProbe, WhoDoesNotKnowTheWordIsNotAnswered) {
  ProbeServer server("127.0.0.1");
  server.serve("word");
  EXPECT_THROW((void)Probe("127.0.0.1", server.port(), "w0rd").ask(), HostError);
  EXPECT_GT(Probe("127.0.0.1", server.port(), "word").ask().round_trip.count(), 0);
}

TEST(HostProbe, SaysWhyAHostIsNotReached) {
  int closed = 0;
  { closed = ProbeServer("127.0.0.1").port(); }
  EXPECT_EQ(message_of<HostError>([&] { Probe("127.0.0.1", closed, "word"); }),
            "Connection refused");
  const ProbeServer silent("127.0.0.1");  // it takes connections, and serves none
  EXPECT_EQ(message_of<HostError>([&] { (void)Probe("127.0.0.1", silent.port(), "word").ask(); }),
            "no answer within 2 s");
  EXPECT_THROW(ProbeServer("192.0.2.1"), HostError) << "it is no address of this host";
}

}  // namespace
}  // namespace strata::train
