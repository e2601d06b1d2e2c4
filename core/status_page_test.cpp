#include "core/status_page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

#include "core/clock.h"
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

TEST(StatusPage, TellsSinceWhenSavesFail) {
  StatusPage page = StatusPage::create(0);
  EXPECT_EQ(page.data().failed_save_step.load(), -1);
  page.set_failed_save(10, "no space");
  const std::int64_t first = page.data().saves_fail_since_ns.load();
  EXPECT_GT(first, 0);
  page.data().saves_fail_since_ns = 1;
  page.set_failed_save(20, "still no space");
  EXPECT_EQ(page.data().failed_save_step.load(), 20);
  EXPECT_STREQ(page.data().failed_save, "still no space");
  EXPECT_EQ(page.data().saves_fail_since_ns.load(), 1) << "the first of the row counts";
  page.forget_failed_save();
  EXPECT_EQ(page.data().failed_save_step.load(), -1);
  page.set_failed_save(30, "no space");
  EXPECT_GE(page.data().saves_fail_since_ns.load(), first) << "another row";
}

TEST(StatusPage, ShowsNoControlCharacters) {
  StatusPage page = StatusPage::create(0);
  page.set_instruction(1, "a\x1b[2Jb");
  EXPECT_EQ(page.describe(), "starting, instruction 1 'a?[2Jb'");
}

TEST(StatusPage, TimesAPhaseFromWhenItWasEntered) {
  StatusPage page = StatusPage::create(0, 3);
  EXPECT_EQ(page.data().attempt, 3);
  page.data().phase_since_ns = 1;
  page.set_phase(Phase::starting);
  EXPECT_EQ(page.data().phase_since_ns.load(), 1) << "it is the phase that the rank was in";
  const std::int64_t before = boot_time_ns();
  page.set_phase(Phase::loading);
  EXPECT_GE(page.data().phase_since_ns.load(), before);
  EXPECT_LE(page.data().phase_since_ns.load(), boot_time_ns());
}

TEST(StatusPage, RemembersItsLastInstructionsAndCollectives) {
  StatusPage page = StatusPage::create(0);
  page.set_instruction(3, "linear");
  page.begin_collective(7, "gather layer5");
  page.end_collective();
  page.set_instruction(4, "norm");
  page.end_instruction();
  page.set_instruction(-1, "");  // a Program that begins is no instruction
  page.begin_collective(8, "reduce layer5");
  std::string told;
  for (const RankEvent& event : StatusPage::open(page.fd()).data().events.last(16))
    told += event.name + (event.ended_ns == 0 ? " open, " : ", ");
  EXPECT_EQ(told, "linear, gather layer5, norm, reduce layer5 open, ");
}

TEST(StatusPage, BeatsWithWhateverARankDoes) {
  StatusPage page = StatusPage::create(0);
  const auto beats = [&](const auto& act) {
    const std::uint64_t before = page.data().beats.load();
    act();
    return page.data().beats.load() > before;
  };
  EXPECT_TRUE(beats([&] { page.beat(); }));
  EXPECT_TRUE(beats([&] { page.set_step(1); }));
  EXPECT_TRUE(beats([&] { page.set_phase(Phase::starting); }));
  EXPECT_TRUE(beats([&] { page.set_instruction(1, "a"); }));
  EXPECT_TRUE(beats([&] { page.begin_collective(1, "b"); }));
  EXPECT_TRUE(beats([&] { page.end_collective(); }));
  EXPECT_TRUE(beats([&] { page.set_committed(4, "out/step-4"); }));
  EXPECT_TRUE(beats([&] { page.set_rates(2.5, 100); }));
  EXPECT_TRUE(beats([&] { page.set_quiet(60); }));
  EXPECT_FALSE(beats([&] { page.set_error("an error is no progress"); }));
}

TEST(StatusPage, SaysWhatWasCommittedAndHowFastItTrains) {
  StatusPage page = StatusPage::create(0);
  EXPECT_EQ(page.data().committed_step.load(), -1);
  EXPECT_TRUE(std::isnan(page.data().loss.load()));
  page.set_committed(40, "out/step-000040");
  page.set_rates(2.5, 1000);
  EXPECT_EQ(page.data().committed_step.load(), 40);
  EXPECT_STREQ(page.data().checkpoint, "out/step-000040");
  EXPECT_EQ(page.data().loss.load(), 2.5);
  EXPECT_EQ(page.data().tokens_per_second.load(), 1000);
}

TEST(StatusPage, CarriesTheLaunchersLeaseAndWordToStop) {
  StatusPage launcher = StatusPage::create(0);
  const StatusPage rank = StatusPage::open(launcher.fd());
  EXPECT_FALSE(rank.lease_ended());
  EXPECT_FALSE(rank.stop_reason());
  launcher.set_lease(boot_time_ns() - 1);
  EXPECT_TRUE(rank.lease_ended());
  launcher.set_lease(boot_time_ns() + 60'000'000'000);
  EXPECT_FALSE(rank.lease_ended());
  launcher.order_stop("rank 3 was killed");
  launcher.order_stop("a later reason");
  EXPECT_EQ(rank.stop_reason(), "rank 3 was killed");
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
