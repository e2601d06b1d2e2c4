// Tests of a store's files, their space and their rights.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/system_call.h"
#include "core/testing/test_directory.h"
#include "core/unique_fd.h"
#include "offload/nvme/disk_alignment.h"
#include "offload/nvme/open_store.h"
#include "offload/nvme/space_file.h"
#include "offload/testing/test_devices.h"

namespace strata::offload {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

/// Runs store_process (offload/testing) and reads its output.
class StoreProcess {
 public:
  StoreProcess(const std::string& scenario, const std::string& directory) {
    std::array<int, 2> ends{};
    checked(::pipe2(ends.data(), O_CLOEXEC), "pipe");
    output_ = UniqueFd(ends[0]);
    const UniqueFd theirs(ends[1]);
    pid_ = checked(::fork(), "fork");
    if (pid_ != 0) return;
    ::dup2(theirs.get(), STDOUT_FILENO);
    ::execl(STRATA_STORE_PROCESS, STRATA_STORE_PROCESS, scenario.c_str(), directory.c_str(),
            static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ~StoreProcess() {
    if (!ended_) kill();
  }
  StoreProcess(const StoreProcess&) = delete;
  StoreProcess& operator=(const StoreProcess&) = delete;

  /// Returns one more piece of output; "" at its end.
  std::string read_some() const {
    std::array<char, 4096> text{};
    const ssize_t count = checked(::read(output_.get(), text.data(), text.size()), "read");
    return {text.data(), static_cast<std::size_t>(count)};
  }
  std::string read_all() const {
    std::string all;
    for (std::string some = read_some(); !some.empty(); some = read_some()) all += some;
    return all;
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  /// Returns the exit code, or 128 + the signal that ended it.
  int wait() {
    int status = 0;
    checked(::waitpid(pid_, &status, 0), "waitpid");
    ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  UniqueFd output_;
  pid_t pid_ = -1;
  bool ended_ = false;
};

constexpr const char* kInMemory =
    ": this file system keeps its files in memory: what is offloaded there takes host memory, "
    "beside "
    "what --host-memory limits";

struct Outcome {
  int code = 0;
  std::string output;
  [[nodiscard]] bool says(const std::string& text) const {
    return output.find(text) != std::string::npos;
  }
  /// Counts notes, except the one about memory: the test's folder may lie in memory, too.
  [[nodiscard]] int notes() const {
    int count = says(kInMemory) ? -1 : 0;
    for (std::size_t at = output.find("note: "); at != std::string::npos;
         at = output.find("note: ", at + 1))
      ++count;
    return count;
  }
};

Outcome run(const std::string& scenario, const std::string& directory) {
  StoreProcess process(scenario, directory);
  Outcome outcome;
  outcome.output = process.read_all();
  outcome.code = process.wait();
  return outcome;
}

/// Exit code of store_process if the machine does not allow the scenario.
constexpr int kNotAllowed = 3;

TEST(StoreFiles, AreOpenForDirectTransfersAndHaveNoName) {
  const TestDirectory directory;
  const auto store =
      open_store({.directories = {directory.path(), directory.path()}, .bytes = 9 * kMiB});
  for (int device = 0; device < 2; ++device) {
    EXPECT_NE(::fcntl(store->file(device), F_GETFL) & O_DIRECT, 0);
    struct stat status {};
    ASSERT_EQ(::fstat(store->file(device), &status), 0);
    EXPECT_EQ(status.st_nlink, 0u);
    EXPECT_EQ(status.st_size, device == 0 ? 5 * kMiB : 4 * kMiB);
    EXPECT_GE(status.st_blocks * 512, status.st_size) << "space is not reserved";
    EXPECT_EQ(status.st_mode & 0777, 0600u);
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(StoreFiles, TransfersLeaveNoPageInTheCache) {
  const TestDirectory directory;
  const auto store = open_store({.directories = {directory.path()}, .bytes = 8 * kMiB});
  const AlignedMemory window(8 * kMiB);
  store->wait(store->start_write(0, window.bytes(), "window"));
  store->wait(store->start_read(0, window.bytes(), "window"));
  void* mapped = ::mmap(nullptr, 8 * kMiB, PROT_READ, MAP_SHARED, store->file(0), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  std::vector<unsigned char> pages(8 * kMiB / 4096);
  ASSERT_EQ(::mincore(mapped, 8 * kMiB, pages.data()), 0);
  for (const unsigned char page : pages) EXPECT_EQ(page & 1, 0);
  ::munmap(mapped, 8 * kMiB);
}

// Fault 33.
TEST(StoreFiles, TwoStoresOnOnePathKeepApart) {
  const TestDirectory directory;
  const StoreRequest request{.directories = {directory.path()}, .bytes = 4 * kMiB};
  const auto a = open_store(request);
  const auto b = open_store(request);
  const auto of_a = pattern(4 * kMiB, 1);
  const auto of_b = pattern(4 * kMiB, 2);
  a->write_bytes(0, of_a, "a");
  b->write_bytes(0, of_b, "b");
  std::vector<std::byte> in(4 * kMiB);
  a->read_bytes(0, in, "a");
  EXPECT_EQ(in, of_a);
  b->read_bytes(0, in, "b");
  EXPECT_EQ(in, of_b);
}

TEST(StoreFiles, FileSystemsWithoutUnnamedFilesGetANameThatIsTakenAwayAtOnce) {
  const TestDirectory directory;
  std::vector<std::string> notes;
  const UniqueFd file = open_and_unlink(directory.path(), notes);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  EXPECT_NE(::fcntl(file.get(), F_GETFL) & O_DIRECT, 0);
  reserve_space(file.get(), directory.path(), kMiB);
  EXPECT_TRUE(notes.empty());
}

TEST(StoreFiles, AMissingDirectoryIsNamed) {
  EXPECT_EQ(
      message_of<IoError>([] {
        static_cast<void>(open_store({.directories = {"/nowhere/at/all"}, .bytes = kMiB}));
      }),
      "/nowhere/at/all: cannot make a file for offloaded tensors in this directory, which has "
      "to exist (mkdir -p): No such file or directory");
}

// Fault 15.
TEST(StoreFiles, TooMuchForTheDiskIsAnErrorWithBothNumbers) {
  const TestDirectory directory;
  const std::int64_t bytes = std::int64_t{1} << 56;
  const std::string message = message_of<IoError>(
      [&] { static_cast<void>(open_store({.directories = {directory.path()}, .bytes = bytes})); });
  EXPECT_NE(message.find(directory.path() + ": cannot reserve 72057594037927936 bytes for "
                                            "offloaded tensors, "),
            std::string::npos)
      << message;
  EXPECT_NE(message.find(" bytes are available; free space there or choose another directory: No "
                         "space left on device"),
            std::string::npos)
      << message;
}

// Fault 15.
TEST(StoreFiles, ASmallFileSystemIsFullBeforeTheFirstTransfer) {
  const TestDirectory directory;
  const Outcome outcome = run("small", directory.path());
  if (outcome.code == kNotAllowed) GTEST_SKIP() << outcome.output;
  EXPECT_EQ(outcome.code, static_cast<int>(ExitCode::io));
  EXPECT_TRUE(
      outcome.says("cannot reserve 33554432 bytes for offloaded tensors, 8388608 bytes are "
                   "available"))
      << outcome.output;
}

TEST(StoreFiles, AFileSystemThatRefusesDirectTransfersIsSaidOnce) {
  const TestDirectory directory;
  // ramfs refuses to reserve space, too.
  const Outcome outcome = run("ramfs", directory.path());
  if (outcome.code == kNotAllowed) GTEST_SKIP() << outcome.output;
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(outcome.says("this file system refuses O_DIRECT")) << outcome.output;
  EXPECT_TRUE(outcome.says("same: 1") && outcome.says("direct: 0")) << outcome.output;
  EXPECT_TRUE(outcome.says(kInMemory)) << outcome.output;
  EXPECT_EQ(outcome.notes(), 1) << outcome.output;
}

TEST(StoreFiles, WorkInMemoryFileSystems) {
  const TestDirectory directory;
  const Outcome outcome = run("tmpfs", directory.path());
  if (outcome.code == kNotAllowed) GTEST_SKIP() << outcome.output;
  EXPECT_TRUE(outcome.says("same: 1")) << outcome.output;
  EXPECT_TRUE(outcome.says(kInMemory)) << outcome.output;
  // Kernels before 6.6 refuse O_DIRECT on tmpfs; then a note says so.
  EXPECT_EQ(outcome.says("refuses O_DIRECT"), outcome.says("direct: 0")) << outcome.output;
}

TEST(StoreFiles, WithoutIoUringThreadsTransferAndItIsSaidOnce) {
  const TestDirectory directory;
  const Outcome outcome = run("forbidden", directory.path());
  if (outcome.code == kNotAllowed) GTEST_SKIP() << outcome.output;
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(outcome.says("io_uring is forbidden here")) << outcome.output;
  EXPECT_TRUE(outcome.says("same: 1")) << outcome.output;
  EXPECT_EQ(outcome.notes(), 1) << outcome.output;
}

TEST(StoreFiles, WithoutLockedMemoryThreadsTransferAndItIsSaidOnce) {
  const TestDirectory directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms::all);
  const Outcome outcome = run("no_locked_memory", directory.path());
  if (outcome.code == kNotAllowed) GTEST_SKIP() << outcome.output;
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(outcome.says("same: 1") && outcome.says("direct: 1")) << outcome.output;
  if (outcome.says("registered: 0")) GTEST_SKIP() << "rings are not counted here";
  EXPECT_TRUE(outcome.says("the limit on locked memory leaves io_uring too little"))
      << outcome.output;
  EXPECT_EQ(outcome.notes(), 1) << outcome.output;
}

TEST(StoreFiles, AnOrdinaryUserTransfersUnregisteredMemoryAndItIsSaidOnce) {
  const TestDirectory directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms::all);
  const Outcome outcome = run("unprivileged", directory.path());
  if (outcome.code == kNotAllowed) GTEST_SKIP() << outcome.output;
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  if (outcome.says("io_uring"))
    GTEST_SKIP() << "no io_uring for ordinary users: " << outcome.output;
  EXPECT_TRUE(outcome.says("does not register 25165824 bytes")) << outcome.output;
  EXPECT_TRUE(outcome.says("same: 1") && outcome.says("registered: 0") && outcome.says("direct: 1"))
      << outcome.output;
  EXPECT_EQ(outcome.notes(), 1) << outcome.output;
}

// Fault 5.
TEST(StoreFiles, AKilledProcessLeavesNothingBehind) {
  const TestDirectory directory;
  for (int run = 0; run < 5; ++run) {
    StoreProcess process("forever", directory.path());
    ASSERT_EQ(process.read_some().substr(0, 7), "writing");
    EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
    process.kill();
    EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  }
}

}  // namespace
}  // namespace strata::offload
