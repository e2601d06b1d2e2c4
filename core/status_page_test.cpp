#include "core/status_page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"

namespace strata {
namespace {

TEST(StatusPage, DescribesAFreshRank) { EXPECT_EQ(StatusPage::create(0).describe(), "starting"); }

TEST(StatusPage, DescribesStepPhaseInstructionAndCollective) {
  StatusPage page = StatusPage::create(1);
  page.set_step(12);
  page.set_phase(Phase::backward);
  page.set_instruction(340, "layer3.attention_backward");
  page.begin_collective(17, "gather layer5");
  page.end_collective();
  EXPECT_EQ(page.describe(), "step 12, backward, instruction 340 'layer3.attention_backward'");
  page.begin_collective(18, "reduce_scatter layer4.matrices");
  EXPECT_EQ(page.describe(),
            "step 12, backward, instruction 340 'layer3.attention_backward', in collective 18 "
            "'reduce_scatter layer4.matrices'");
}

TEST(StatusPage, SurvivesSigkillOfItsWriter) {
  StatusPage page = StatusPage::create(5);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    StatusPage mine = StatusPage::open(page.fd());
    mine.set_step(7);
    mine.set_phase(Phase::update);
    mine.set_error("the disk is full");
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(page.describe(), "step 7, update");
  EXPECT_STREQ(page.data().error, "the disk is full");
  EXPECT_EQ(page.data().rank, 5);
}

TEST(StatusPage, KeepsTheFirstErrorAndCutsLongTexts) {
  StatusPage page = StatusPage::create(0);
  page.set_error(std::string(5000, 'x'));
  page.set_error("a later one");
  EXPECT_EQ(std::string(page.data().error), std::string(sizeof(StatusPageData::error) - 1, 'x'));
}

TEST(StatusPage, ShowsNoControlCharacters) {
  StatusPage page = StatusPage::create(0);
  page.set_instruction(1, "a\x1b[2Jb");
  EXPECT_EQ(page.describe(), "starting, instruction 1 'a?[2Jb'");
}

TEST(StatusPage, RefusesAnotherLayoutOrSize) {
  StatusPage page = StatusPage::create(0);
  page.data().version = 99;
  EXPECT_THROW(StatusPage::open(page.fd()), HostError);
  const UniqueFd small(::memfd_create("small", MFD_CLOEXEC));
  EXPECT_THROW(StatusPage::open(small.get()), HostError);
  EXPECT_THROW(StatusPage::open(-1), HostError);
}

TEST(StatusPage, CannotBeShrunkUnderItsReader) {
  const StatusPage page = StatusPage::create(0);
  EXPECT_LT(::ftruncate(page.fd(), 0), 0);
}

}  // namespace
}  // namespace strata
