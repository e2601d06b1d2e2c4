// Measures the NVMe store beside fio and a bare io_uring loop: the same file, size, block, depth,
// fixed buffers and files, interleaved in one run.
//   build/bin/nvme_bench DIRECTORY [SIZE_MIB] [BLOCK_KIB] [DEPTH] [ROUNDS]
// The file has been written before. Rates are medians over the rounds. The ratio is the store's
// rate to the faster of the two others, by these medians and as the median of each round's own
// ratio: disks change from second to second, so many short rounds say more than few long ones.
// "hashing" is the bare loop that also hashes all bytes, in its one thread, while other transfers
// are under way: where memory bounds the device, looking at the bytes again takes a share of it.
// All memory is on huge pages, fio's by glibc's tunable: on small ones a request of 1 MiB has more
// pieces than many devices take at once, and rates fall to a half or a third. "mixed" reads one
// half of the file while it writes the other. Exit code 69 means that the page cache had a part, or
// that the kernel counted other bytes than were asked for.
#include <fcntl.h>
#include <liburing.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "bench/fio.h"
#include "bench/measured.h"
#include "core/check.h"
#include "core/error.h"
#include "core/hash.h"
#include "offload/nvme/disk_alignment.h"
#include "offload/nvme/open_store.h"

namespace {

using strata::bench::counted_bytes;
using strata::bench::median;
using strata::offload::AlignedMemory;
using strata::offload::NvmeStore;
using Mode = strata::bench::FioMode;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

struct Setup {
  std::string directory;
  std::int64_t bytes = 1024 * kMiB;
  std::int64_t block = kMiB;
  int depth = 16;
  int rounds = 9;
};

constexpr std::array<const char*, 3> kModeNames{"read", "write", "mixed"};

/// Says for the `number`th of `count` equal transfers whether it reads, and which part it moves.
struct Step {
  Step(Mode mode, std::int64_t number, std::int64_t count)
      : read(mode == Mode::read || (mode == Mode::mixed && number % 2 == 0)),
        part(mode != Mode::mixed ? number : number / 2 + (read ? 0 : count / 2)) {}
  bool read;
  std::int64_t part;
};

constexpr std::int64_t kTransfer = 16 * kMiB;
constexpr std::int64_t kUnderWay = 4;

/// Moves 16 MiB at a time, four under way, as the disk queues of a step do.
void run_store(NvmeStore& store, const AlignedMemory& window, Mode mode) {
  const std::int64_t count = store.bytes() / kTransfer;
  std::deque<strata::runtime::Disk::Ticket> tickets;
  for (std::int64_t i = 0; i < count; ++i) {
    if (static_cast<std::int64_t>(tickets.size()) == kUnderWay) {
      store.wait(tickets.front());
      tickets.pop_front();
    }
    const auto memory =
        window.bytes().subspan(static_cast<std::size_t>(i % kUnderWay * kTransfer), kTransfer);
    const Step step(mode, i, count);
    tickets.push_back(step.read ? store.start_read(step.part * kTransfer, memory, "store")
                                : store.start_write(step.part * kTransfer, memory, "store"));
  }
  for (const auto ticket : tickets) store.wait(ticket);
}

/// The smallest useful io_uring loop. It uses as much memory as the store: a block that has ended
/// is reused only after all others.
class BareLoop {
 public:
  BareLoop(int file, const Setup& setup)
      : setup_(setup),
        memory_(std::max(kTransfer * kUnderWay, 2 * setup.block * setup.depth)),
        slots_(static_cast<std::int64_t>(memory_.bytes().size()) / setup.block) {
    check(io_uring_queue_init(static_cast<unsigned>(setup.depth), &ring_, 0), "queue_init");
    check(io_uring_register_files(&ring_, &file, 1), "register_files");
    const iovec memory{memory_.bytes().data(), memory_.bytes().size()};
    check(io_uring_register_buffers(&ring_, &memory, 1), "register_buffers");
  }
  ~BareLoop() { io_uring_queue_exit(&ring_); }
  BareLoop(const BareLoop&) = delete;
  BareLoop& operator=(const BareLoop&) = delete;

  /// Transfers the file; with `hashing`, hashes each block after the next requests have begun.
  void run(Mode mode, bool hashing) {
    const std::int64_t count = setup_.bytes / setup_.block;
    std::vector<std::int64_t> free(static_cast<std::size_t>(slots_));
    std::iota(free.begin(), free.end(), 0);
    std::vector<std::int64_t> ended;
    std::int64_t begun = 0;
    for (std::int64_t done = 0; done < count;) {
      while (begun < count && begun - done < setup_.depth) {
        begin(mode, begun++, count, free.front());
        free.erase(free.begin());
      }
      if (hashing && !ended.empty()) check(io_uring_submit(&ring_), "submit");
      for (const std::int64_t slot : ended) {
        if (hashing) hashes_ ^= strata::hash_64(block(slot));
        free.push_back(slot);
      }
      ended.clear();
      check(io_uring_submit_and_wait(&ring_, 1), "submit_and_wait");
      io_uring_cqe* completion = nullptr;
      while (io_uring_peek_cqe(&ring_, &completion) == 0) {
        STRATA_CHECK(completion->res == setup_.block, completion->res);
        ended.push_back(static_cast<std::int64_t>(completion->user_data));
        io_uring_cqe_seen(&ring_, completion);
        ++done;
      }
    }
    for (const std::int64_t slot : ended)
      if (hashing) hashes_ ^= strata::hash_64(block(slot));
  }

 private:
  static void check(int result, const char* what) {
    if (result < 0) throw strata::HostError(std::string(what) + ": " + std::strerror(-result));
  }
  [[nodiscard]] std::span<std::byte> block(std::int64_t slot) const {
    return memory_.bytes().subspan(static_cast<std::size_t>(slot * setup_.block),
                                   static_cast<std::size_t>(setup_.block));
  }
  void begin(Mode mode, std::int64_t number, std::int64_t count, std::int64_t slot) {
    const Step step(mode, number, count);
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    const auto bytes = static_cast<unsigned>(setup_.block);
    const auto offset = static_cast<std::uint64_t>(step.part * setup_.block);
    if (step.read)
      io_uring_prep_read_fixed(entry, 0, block(slot).data(), bytes, offset, 0);
    else
      io_uring_prep_write_fixed(entry, 0, block(slot).data(), bytes, offset, 0);
    entry->flags |= IOSQE_FIXED_FILE;
    entry->user_data = static_cast<std::uint64_t>(slot);
  }

  Setup setup_;
  AlignedMemory memory_;
  std::int64_t slots_;  // blocks of memory, at least twice as many as are under way
  io_uring ring_{};
  std::uint64_t hashes_ = 0;
};

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

std::int64_t cached_pages(int file, std::int64_t bytes) {
  void* mapped = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ, MAP_SHARED, file, 0);
  STRATA_CHECK(mapped != MAP_FAILED, "mmap");
  std::vector<unsigned char> pages(static_cast<std::size_t>(bytes / 4096));
  STRATA_CHECK(::mincore(mapped, static_cast<std::size_t>(bytes), pages.data()) == 0, "mincore");
  ::munmap(mapped, static_cast<std::size_t>(bytes));
  return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; });
}

/// One way to do the same, and its rate in each round.
struct Candidate {
  std::string name;
  std::function<double(Mode)> run;  // bytes per second
  std::vector<double> rates = {};
};

class Bench {
 public:
  explicit Bench(const Setup& setup)
      : setup_(setup),
        window_(kTransfer * kUnderWay),
        store_(strata::offload::open_store(
            {.directories = {setup.directory},
             .bytes = setup.bytes,
             .options = {.settings = {.request_bytes = setup.block, .depth = setup.depth}}})),
        bare_(store_->file(0), setup) {
    std::uint64_t state = 1;
    for (std::byte& byte : window_.bytes()) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      byte = static_cast<std::byte>(state >> 56);
    }
    const std::vector<std::span<std::byte>> ranges{window_.bytes()};
    store_->register_memory(ranges);
    for (const std::string& note : store_->notes()) std::printf("note: %s\n", note.c_str());
    valid(store_->notes().empty(), "the store runs at its best");
    valid((::fcntl(store_->file(0), F_GETFL) & O_DIRECT) != 0, "O_DIRECT is set");
  }

  bool run() {
    for (const Mode mode : {Mode::read, Mode::write, Mode::mixed}) {
      // Write through the store: the others wrote last, without its checksums.
      run_store(*store_, window_, Mode::write);
      std::printf("fio: %s\n",
                  strata::bench::fio_command(fio_job(), store_->file(0), mode).c_str());
      measure(mode);
    }
    valid(cached_pages(store_->file(0), setup_.bytes) == 0, "no page of the file is cached");
    return valid_;
  }

 private:
  [[nodiscard]] strata::bench::FioJob fio_job() const {
    return {setup_.bytes, setup_.block, setup_.depth};
  }

  void valid(bool condition, const char* what) {
    if (condition) return;
    std::printf("INVALID: not so: %s\n", what);
    valid_ = false;
  }

  /// Times `work` in this process and checks how many bytes the kernel counted.
  double timed(const std::function<void()>& work, double& cpu) {
    const std::int64_t counted = counted_bytes();
    const double cpu_before = cpu_seconds();
    const auto begin = std::chrono::steady_clock::now();
    work();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    cpu += cpu_seconds() - cpu_before;
    const auto off = static_cast<double>(counted_bytes() - counted - setup_.bytes);
    valid(std::abs(off) <= 0.01 * static_cast<double>(setup_.bytes),
          "the kernel counted the bytes that were asked for, within 1 %");
    return static_cast<double>(setup_.bytes) / seconds;
  }

  void measure(Mode mode) {
    double store_cpu = 0;
    double bare_cpu = 0;
    double hashing_cpu = 0;
    std::vector<Candidate> candidates{
        {"store",
         [&](Mode m) { return timed([&] { run_store(*store_, window_, m); }, store_cpu); }},
        {"bare", [&](Mode m) { return timed([&] { bare_.run(m, false); }, bare_cpu); }},
        {"hashing", [&](Mode m) { return timed([&] { bare_.run(m, true); }, hashing_cpu); }},
        {"fio", [&](Mode m) { return strata::bench::run_fio(fio_job(), store_->file(0), m); }}};
    const Candidate& store = candidates[0];
    const Candidate& bare = candidates[1];
    const Candidate& hashing = candidates[2];
    const Candidate& fio = candidates[3];
    const char* name = kModeNames[static_cast<std::size_t>(mode)];
    for (int round = 0; round < setup_.rounds; ++round) {
      // Rotate the order, so that each comes first in turn.
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        Candidate& next = candidates[(i + static_cast<std::size_t>(round)) % candidates.size()];
        next.rates.push_back(next.run(mode));
      }
      std::printf("%-5s round %d: store %.3f bare %.3f hashing %.3f fio %.3f GB/s\n", name, round,
                  store.rates.back() / 1e9, bare.rates.back() / 1e9, hashing.rates.back() / 1e9,
                  fio.rates.back() / 1e9);
    }
    const Candidate& faster = median(fio.rates) > median(bare.rates) ? fio : bare;
    const double gigabytes = static_cast<double>(setup_.bytes) * setup_.rounds / 1e9;
    std::printf(
        "%-5s median: store %.3f bare %.3f hashing %.3f fio %.3f GB/s; store / %s: %.3f, by round "
        "%.3f; store / hashing: %.3f, by round %.3f; processor: store %.3f bare %.3f hashing %.3f "
        "s/GB%s\n",
        name, median(store.rates) / 1e9, median(bare.rates) / 1e9, median(hashing.rates) / 1e9,
        median(fio.rates) / 1e9, faster.name.c_str(), median(store.rates) / median(faster.rates),
        ratio_by_round(store, faster), median(store.rates) / median(hashing.rates),
        ratio_by_round(store, hashing), store_cpu / gigabytes, bare_cpu / gigabytes,
        hashing_cpu / gigabytes, fio.rates.back() == 0 ? " (fio is not installed)" : "");
  }

  /// Returns the median of the rounds' own ratios.
  static double ratio_by_round(const Candidate& a, const Candidate& b) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < a.rates.size(); ++round)
      ratios.push_back(a.rates[round] / b.rates[round]);
    return median(ratios);
  }

  Setup setup_;
  AlignedMemory window_;
  std::unique_ptr<NvmeStore> store_;
  BareLoop bare_;
  bool valid_ = true;
};

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: nvme_bench DIRECTORY [SIZE_MIB] [BLOCK_KIB] [DEPTH] [ROUNDS]\n");
    return static_cast<int>(strata::ExitCode::usage);
  }
  const auto number = [&](int index, std::int64_t otherwise) {
    return index < count ? std::strtoll(arguments[index], nullptr, 10) : otherwise;
  };
  try {
    Setup setup{.directory = arguments[1]};
    setup.bytes = number(2, 1024) * kMiB;
    setup.block = number(3, 1024) << 10;
    setup.depth = static_cast<int>(number(4, 16));
    setup.rounds = static_cast<int>(number(5, 9));
    if (setup.bytes <= 0 || setup.bytes % (32 * kMiB) != 0 || setup.block % kMiB != 0 ||
        setup.block <= 0 || setup.depth <= 0)
      throw strata::InvalidArgument("SIZE_MIB is a multiple of 32, BLOCK_KIB of 1024");
    return Bench(setup).run() ? 0 : static_cast<int>(strata::ExitCode::host);
  } catch (const strata::Error& error) {
    std::fprintf(stderr, "nvme_bench: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
