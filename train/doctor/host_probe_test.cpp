#include "train/doctor/host_probe.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "core/error.h"
#include "core/system_call.h"
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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// Lets no thread start: each would get a larger stack than there are addresses.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    EXPECT_EQ(::pthread_getattr_default_np(&before_), 0);
    pthread_attr_t huge;
    EXPECT_EQ(::pthread_attr_init(&huge), 0);
    EXPECT_EQ(::pthread_attr_setstacksize(&huge, std::size_t{1} << 50), 0);
    EXPECT_EQ(::pthread_setattr_default_np(&huge), 0);
    ::pthread_attr_destroy(&huge);
  }
  ~NoMoreThreads() {
    EXPECT_EQ(::pthread_setattr_default_np(&before_), 0);
    ::pthread_attr_destroy(&before_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST(HostProbe, AConnectionThatCannotBeServedEndsAlone) {
  ProbeServer server("127.0.0.1");
  server.serve("word");
  const UniqueFd socket(checked(::socket(AF_INET, SOCK_STREAM, 0), "making a socket"));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<std::uint16_t>(server.port()));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  {
    const NoMoreThreads scarce;
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
    char byte = 0;
    EXPECT_EQ(::recv(socket.get(), &byte, 1, 0), 0) << "the server closes it";
  }
  EXPECT_GT(Probe("127.0.0.1", server.port(), "word").ask().round_trip.count(), 0);
}
#endif

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
