// A rank that misbehaves on demand: what the multi-process tests of mlaunch start.
//   rank_actor MODE [ARGUMENT...]
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/rank_context.h"
#include "core/status_page.h"

namespace strata {
namespace {

using Arguments = std::vector<std::string>;

struct Actor {
  RankContext context;
  StatusPage page;
  Arguments arguments;

  [[nodiscard]] int number(std::size_t index) const { return std::stoi(arguments.at(index)); }
};

void sleep_long() { std::this_thread::sleep_for(std::chrono::seconds(60)); }

void pretend_to_train(Actor& actor) {
  actor.page.set_step(12);
  actor.page.set_phase(Phase::backward);
  actor.page.set_instruction(340, "layer3.attention_backward");
  actor.page.begin_collective(1, "reduce_scatter layer4");
}

/// fail RANK CODE: that rank exits with CODE and an error on its page; the others hang.
int fail(Actor& actor) {
  pretend_to_train(actor);
  if (actor.context.rank != actor.number(0)) sleep_long();
  actor.page.set_error("the flux of rank " + actor.arguments[0] + " is wrong");
  return actor.number(1);
}

/// signal RANK NUMBER: that rank gets the signal inside a collective; the others hang.
int signal_self(Actor& actor) {
  pretend_to_train(actor);
  if (actor.context.rank == actor.number(0)) {
    ::signal(actor.number(1), SIG_DFL);  // otherwise sanitizers would turn it into an exit
    ::raise(actor.number(1));
  }
  sleep_long();
  return 0;
}

/// stubborn: ignores all requests to end and prints "ready"; with "fail", rank 0 exits with 70.
int stubborn(Actor& actor) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_IGN);
  if (actor.context.rank == 0 && !actor.arguments.empty()) return 70;
  std::puts("ready");
  std::fflush(stdout);
  for (;;) sleep_long();
}

/// save: after SIGTERM or SIGUSR1 it waits a while, says that it has saved, and exits with 75.
int save(Actor& actor) {
  sigset_t requests;
  ::sigemptyset(&requests);
  ::sigaddset(&requests, SIGTERM);
  ::sigaddset(&requests, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &requests, nullptr);
  std::puts("ready");
  std::fflush(stdout);
  int number = 0;
  if (::sigwait(&requests, &number) != 0) return 70;
  std::this_thread::sleep_for(std::chrono::milliseconds(300) * actor.context.rank);
  std::printf("saved after signal %d\n", number);
  return static_cast<int>(ExitCode::try_again);
}

/// slow_save: as `save`, but saving takes a minute.
int slow_save(Actor& actor) {
  actor.context.rank = 200;  // times 300 ms
  return save(actor);
}

/// retry: after SIGTERM its page says for 4 s that it cannot save, as of one attempt after another;
/// then it has, and exits with 75.
int retry(Actor& actor) {
  sigset_t requests;
  ::sigemptyset(&requests);
  ::sigaddset(&requests, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &requests, nullptr);
  pretend_to_train(actor);
  std::puts("ready");
  std::fflush(stdout);
  int number = 0;
  if (::sigwait(&requests, &number) != 0) return 70;
  for (int attempt = 0; attempt < 8; ++attempt) {
    actor.page.set_failed_save(12, "rank 0: out-" + std::to_string(attempt) + ": no space left");
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  actor.page.forget_failed_save();
  actor.page.set_committed(12, "out/step-12");
  return static_cast<int>(ExitCode::try_again);
}

/// report: says all that a status page can, and waits.
int report(Actor& actor) {
  pretend_to_train(actor);
  actor.page.set_rates(2.25, 1000);
  actor.page.set_committed(10, "out/step-10");
  actor.page.data().tier_bytes[2] = 4096;
  std::puts("ready");
  std::fflush(stdout);
  sleep_long();
  return 0;
}

/// grandchildren RANK CODE: each rank leaves a detached process with a child; then it acts as
/// `fail`, or exits with 0 if CODE is 0.
int grandchildren(Actor& actor) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    ::signal(SIGTERM, SIG_IGN);
    if (::fork() == 0) ::signal(SIGINT, SIG_IGN);
    for (;;) sleep_long();
  }
  return actor.number(1) == 0 ? 0 : fail(actor);
}

/// lines COUNT: numbered lines of varying length, written in pieces that split them.
int lines(Actor& actor) {
  std::string text;
  for (int i = 0; i < actor.number(0); ++i)
    text += "rank " + std::to_string(actor.context.rank) + " line " + std::to_string(i) + " " +
            std::string(static_cast<std::size_t>(i % 97), 'x') + ".\n";
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count =
        ::write(STDOUT_FILENO, text.data() + at, std::min<std::size_t>(text.size() - at, 7001));
    if (count < 0) return 74;
    at += static_cast<std::size_t>(count);
  }
  return 0;
}

/// meet: every rank gets every other's value and a descriptor of rank 0.
int meet(Actor& actor) {
  RankContext& context = actor.context;
  context.store->put("name/" + std::to_string(context.rank),
                     "I am " + std::to_string(context.rank));
  if (context.rank == 0) {
    const UniqueFd file(::memfd_create("gift", MFD_CLOEXEC));
    if (::ftruncate(file.get(), 4321) != 0) return 74;
    context.store->put_fd("gift", file.get());
  }
  for (int rank = 0; rank < context.world; ++rank)
    if (context.store->get("name/" + std::to_string(rank), std::chrono::seconds(40)) !=
        "I am " + std::to_string(rank))
      return 70;
  const UniqueFd gift = context.store->get_fd("gift", std::chrono::seconds(40));
  struct stat info {};
  if (::fstat(gift.get(), &info) != 0 || info.st_size != 4321) return 70;
  std::printf("rank %d of %d on %s met all, run %s\n", context.rank, context.world,
              context.host.c_str(), context.run_id.c_str());
  return 0;
}

/// abandon: rank 1 is killed; the others ignore SIGTERM, wait for a key longer than the test, and
/// say "woken" when that fails.
int abandon(Actor& actor) {
  ::signal(SIGTERM, SIG_IGN);
  if (actor.context.rank == 1) ::raise(SIGKILL);
  try {
    actor.context.store->get("never", std::chrono::seconds(60));
  } catch (const PeerError&) {
    std::puts("woken");
    throw;
  }
  return 0;
}

/// blame: rank 0 exits first, blaming a peer; rank 1 follows with the cause.
int blame(Actor& actor) {
  if (actor.context.rank == 0) throw PeerError("rank 1 gives no answer");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  throw DataError("model.safetensors: tensor w is cut off");
}

/// quarrel: rank 1 fails first; then rank 0 with an error of its own, the others as rank 1.
int quarrel(Actor& actor) {
  if (actor.context.rank != 1) try {
      actor.context.store->get("never", std::chrono::seconds(60));
    } catch (const PeerError&) {  // rank 1 has ended
    }
  if (actor.context.rank == 0) throw HostError("/data is not mounted");
  throw DataError("model.safetensors: tensor w is cut off");
}

/// commit STEPS ENDINGS: rank 0 says that it has committed step STEPS in each attempt, and prints
/// what it was told of earlier ones; then rank 1 ends as the attempt's letter of ENDINGS says: k is
/// killed, c exits with 78, f exits with 1 and an error, w waits, s succeeds.
int commit(Actor& actor) {
  const auto attempt = static_cast<std::size_t>(actor.context.attempt);
  const char* last = std::getenv("STRATA_LAST_STEP");
  const std::int64_t step = actor.number(0) * (actor.context.attempt + 1);
  if (actor.context.rank == 0) {
    std::printf("attempt %zu after step %s\n", attempt, last != nullptr ? last : "none");
    std::fflush(stdout);
    if (step > 0) actor.page.set_committed(step, "out/step-" + std::to_string(step));
    actor.context.store->put("committed", "yes");
  } else {
    actor.context.store->get("committed", std::chrono::seconds(40));
  }
  actor.page.set_step(step + 5);
  const char ending = actor.arguments.at(1).at(attempt);
  if (ending == 's') return 0;
  if (actor.context.rank != 1 || ending == 'w') sleep_long();
  if (ending == 'k') ::raise(SIGKILL);
  actor.page.set_error("the flux is wrong");
  return ending == 'c' ? 78 : 1;
}

/// stop RANK: that rank stops itself for good inside a step; the others wait for it.
int stop(Actor& actor) {
  pretend_to_train(actor);
  if (actor.context.rank != actor.number(0)) sleep_long();
  ::raise(SIGSTOP);
  return 0;
}

/// Does a step, which takes 2 s, and begins the next one.
void do_a_step(Actor& actor) {
  pretend_to_train(actor);
  actor.page.end_collective();
  for (int beat = 0; beat < 20; ++beat) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    actor.page.beat();
  }
  actor.page.set_step(13);
}

/// absent RANK: all do a step; in the next one that rank begins no collective, and the others wait
/// in it. Prints "ready" then.
int absent(Actor& actor) {
  do_a_step(actor);
  if (actor.context.rank != actor.number(0)) actor.page.begin_collective(2, "gather layer4");
  std::puts("ready");
  std::fflush(stdout);
  sleep_long();
  return 0;
}

/// skip RANK STEP COLLECTIVE: ranks meet in four collectives of each step, which takes 100 ms. In
/// STEP that rank does not come to COLLECTIVE, and says "skipped NAME"; the others wait for it.
int skip(Actor& actor) {
  RankContext& context = actor.context;
  std::int64_t count = 0;
  for (int step = 0;; ++step) {
    actor.page.set_step(step);
    for (int i = 0; i < 4; ++i) {
      actor.page.set_phase(i < 2 ? Phase::forward : Phase::backward);
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
      const std::string name = "gather layer" + std::to_string(i);
      if (step == actor.number(1) && i == actor.number(2) && context.rank == actor.number(0)) {
        std::printf("skipped %s\n", name.c_str());
        std::fflush(stdout);
        sleep_long();
      }
      actor.page.begin_collective(++count, name);
      const std::string key = std::to_string(count) + "/";
      context.store->put(key + std::to_string(context.rank), "here");
      for (int rank = 0; rank < context.world; ++rank)
        context.store->get(key + std::to_string(rank), std::chrono::seconds(60));
      actor.page.end_collective();
    }
  }
}

/// chatter RANK COUNT: all do a step; then that rank prints lines as `lines` does, and the others
/// wait for it in a collective.
int chatter(Actor& actor) {
  do_a_step(actor);
  if (actor.context.rank == actor.number(0)) {
    actor.arguments.erase(actor.arguments.begin());
    const int code = lines(actor);
    actor.context.store->put("printed", "yes");
    return code;
  }
  actor.page.begin_collective(2, "gather layer4");
  actor.context.store->get("printed", std::chrono::seconds(60));
  return 0;
}

/// linger RANK: all have done their work; the process of that rank does not end, and stops itself
/// if another word follows.
int linger(Actor& actor) {
  pretend_to_train(actor);
  actor.page.end_collective();
  actor.page.set_phase(Phase::done);
  if (actor.context.rank != actor.number(0)) return 0;
  if (actor.arguments.size() > 1) ::raise(SIGSTOP);
  for (;;) sleep_long();
}

/// garbage: sends an invalid message to the rendezvous, then uses it properly.
int garbage(Actor& actor) {
  const int store = std::atoi(std::getenv("STRATA_STORE_FD"));
  if (::write(store, "nonsense", 8) != 8) return 74;
  actor.context.store->get("never", std::chrono::seconds(60));
  return 0;
}

int run(const std::string& mode, const Arguments& arguments) {
  RankContext context = rank_context_from_environment();
  StatusPage page = context.status_fd >= 0 ? StatusPage::open(context.status_fd)
                                           : StatusPage::create(context.rank);
  Actor actor{std::move(context), std::move(page), arguments};
  const std::map<std::string, int (*)(Actor&)> modes{
      {"fail", fail},       {"signal", signal_self}, {"stubborn", stubborn},
      {"lines", lines},     {"meet", meet},          {"grandchildren", grandchildren},
      {"blame", blame},     {"abandon", abandon},    {"garbage", garbage},
      {"quarrel", quarrel}, {"save", save},          {"commit", commit},
      {"stop", stop},       {"report", report},      {"slow_save", slow_save},
      {"absent", absent},   {"skip", skip},          {"chatter", chatter},
      {"linger", linger},   {"retry", retry}};
  try {
    return modes.at(mode)(actor);
  } catch (const Error& error) {
    actor.page.set_error(error.what());
    return static_cast<int>(error.exit_code());
  }
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  return strata::run(argv[1], {argv + 2, argv + argc});
}
