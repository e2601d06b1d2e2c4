#include "train/engine/save_checkpoint.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "comm/fail_together.h"
#include "comm/gather_texts.h"
#include "comm/host_stream.h"
#include "comm/shown_collective.h"
#include "core/error.h"
#include "runtime/graph/state_names.h"

namespace strata::train {
namespace {

/// Bytes that are read from a device or a disk at a time.
constexpr std::int64_t kReadBytes = std::int64_t{4} << 20;

}  // namespace

/// Carries pieces, smaller than a block, from rank to rank. Made and destroyed collectively.
class CheckpointSave::PieceCarrier {
 public:
  explicit PieceCarrier(comm::Communicator& communicator)
      : communicator_(communicator),
        arena_(make_shared_arena(communicator, "pieces", kBlockBytes)) {
    communicator_.register_arena({arena_.base(), arena_.bytes(), arena_.memfd()});
  }
  ~PieceCarrier() {
    try {
      communicator_.unregister_arena(arena_.base());
    } catch (const Error&) {
      // The communicator is dead; whoever used it last has been told.
    }
  }
  PieceCarrier(const PieceCarrier&) = delete;
  PieceCarrier& operator=(const PieceCarrier&) = delete;

  void send(std::span<const std::byte> bytes, int peer) {
    std::memcpy(arena_.base(), bytes.data(), bytes.size());
    run(comm::CollectiveKind::send, static_cast<std::int64_t>(bytes.size()), peer);
  }
  void receive(std::span<std::byte> to, int peer) {
    run(comm::CollectiveKind::receive, static_cast<std::int64_t>(to.size()), peer);
    std::memcpy(to.data(), arena_.base(), to.size());
  }

 private:
  void run(comm::CollectiveKind kind, std::int64_t bytes, int peer) {
    comm::Collective message{.kind = kind, .input_type = DType::u8};
    message.peer = peer;
    // A message's partition gives its size to every rank, whichever rank is meant.
    message.partition.bounds.assign(static_cast<std::size_t>(communicator_.size()) + 1, bytes);
    message.partition.bounds[0] = 0;
    std::vector<std::byte> workspace(
        static_cast<std::size_t>(communicator_.workspace_bytes(message)));
    comm::HostStream stream;
    const comm::ShownCollective shown(communicator_, "exchange pieces of a checkpoint");
    const bool sends = kind == comm::CollectiveKind::send;
    communicator_.run(stream, message, sends ? arena_.base() : nullptr,
                      sends ? nullptr : arena_.base(), workspace);
  }

  comm::Communicator& communicator_;
  runtime::Arena arena_;
};

CheckpointSave::CheckpointSave(Engine& engine, FileSystem& files, SaveRequest request)
    : engine_(engine),
      borrowed_(engine.lend()),
      files_(files),
      request_(std::move(request)),
      state_(engine.programs()),
      has_windows_(engine.programs().outlet().bytes() > 0) {
  check_attempt(request_.attempt);
  if (request_.step < 0)
    throw InvalidArgument(fmt::format(
        "SaveRequest::step is {}, expected the number of steps that are done", request_.step));
  // Rank 0 goes first, then the others, so that no rank begins a save that another cannot finish.
  fail_together([&] {
    if (rank() == 0)
      writer_ = make_writer(
          create_staging_folder(files_, request_.output, request_.step, request_.attempt),
          BlockWriter::Role::creator);
  });
  fail_together([&] {
    if (rank() != 0) writer_ = make_writer(staging(), BlockWriter::Role::helper);
  });
  if (!has_windows_) return;
  std::int64_t waiting = 0;
  for (const RoutedPiece& routed : state_.pieces()) {
    if (routed.saver != rank() || routed.writer == rank() ||
        !had_window(routed.piece, SaveSource::snapshot))
      continue;
    leaving_[{routed.piece.file, routed.piece.begin}] = waiting;
    waiting += routed.piece.size_bytes();
  }
  engine_.set_snapshot_receiver(
      [this](const std::string& storage, std::int64_t begin, std::span<const std::byte> bytes) {
        try {
          for (const SavedState::Routed& part : state_.route(storage, begin, bytes, values_))
            take(part);
        } catch (...) {
          error_ = std::current_exception();  // an error of the save, not of the step
        }
      });
}

CheckpointSave::~CheckpointSave() {
  given_up_ = true;
  join();
  engine_.release_snapshot();
  writer_.reset();
  // Other ranks may still write there, to files that no longer have a name.
  if (stage_ != Stage::done && stage_ != Stage::given_up && rank() == 0)
    abandon_checkpoint(files_, request_.output, request_.step, request_.attempt);
}

std::string CheckpointSave::staging() const {
  return request_.output + "/" + folder_name(request_.step, FolderState::staging, request_.attempt);
}

std::unique_ptr<BlockWriter> CheckpointSave::make_writer(const std::string& directory,
                                                         BlockWriter::Role role) const {
  BlockWriterOptions options;
  options.beat = engine_.beat();
  if (engine_.programs().persistent.has(runtime::kSaveBlocks))
    options.memory = engine_.storage(runtime::kSaveBlocks).data();
  return std::make_unique<BlockWriter>(files_, directory, state_.layout(),
                                       state_.assignment().blocks_of(rank()), role, options);
}

std::vector<WholeFile> CheckpointSave::small_files() const {
  std::vector<WholeFile> all = request_.whole_files;
  for (const auto& [name, text] : state_.layout().indexes()) all.push_back({name, text});
  return all;
}

/// Runs `body` and exchanges errors with the other ranks. Throws on all ranks if it failed on any.
template <typename Body>
void CheckpointSave::fail_together(const Body& body) {
  const auto failure = comm::fail_together(engine_.communicator(), body);
  if (!failure) return;
  std::string all;
  for (std::size_t r = 0; r < failure->messages.size(); ++r)
    if (!failure->messages[r].empty())
      all += fmt::format("{}{}: {}", all.empty() ? "rank " : "; rank ", r, failure->messages[r]);
  give_up_staging();
  throw Error(failure->code, all);
}

/// Removes the staging folder when no rank writes any more. Collective.
void CheckpointSave::give_up_staging() {
  writer_.reset();
  engine_.barrier();  // nobody writes any more
  if (rank() == 0) abandon_checkpoint(files_, request_.output, request_.step, request_.attempt);
}

void CheckpointSave::launch(std::function<void()> body) {
  busy_ = true;
  thread_ = std::thread([this, body = std::move(body)] {
    try {
      body();
    } catch (...) {
      error_ = std::current_exception();
    }
    busy_ = false;
  });
}

void CheckpointSave::join() {
  if (thread_.joinable()) thread_.join();
}

void CheckpointSave::rethrow() const {
  if (error_) std::rethrow_exception(error_);
}

/// Sends and receives pieces in the same order on all ranks, so that no two wait for each other.
void CheckpointSave::exchange(std::span<const RoutedPiece> pieces, SaveSource source,
                              PieceCarrier& carrier, std::span<std::byte> arriving) {
  for (const RoutedPiece& routed : pieces) {
    if (routed.saver == routed.writer) continue;
    if (routed.saver == rank()) {
      carrier.send(read(routed.piece, source), routed.writer);
    } else if (routed.writer == rank()) {
      const auto bytes = static_cast<std::size_t>(routed.piece.size_bytes());
      carrier.receive(arriving.first(bytes), routed.saver);
      arriving = arriving.subspan(bytes);
    }
  }
}

/// Writes the pieces of this rank's blocks. `arrived`: those of other ranks, in order.
void CheckpointSave::put_all(std::span<const RoutedPiece> pieces, SaveSource source,
                             std::span<const std::byte> arrived) {
  for (const RoutedPiece& routed : pieces) {
    if (routed.writer != rank() || state_.is_header(routed.piece)) continue;
    if (routed.saver == rank()) {
      if (!had_window(routed.piece, source)) put_own(routed.piece, source);
    } else {
      const auto bytes = static_cast<std::size_t>(routed.piece.size_bytes());
      put(routed.piece, arrived.first(bytes));
      arrived = arrived.subspan(bytes);
    }
  }
}

void CheckpointSave::put_own(const FilePiece& whole, SaveSource source) {
  for (std::int64_t begin = whole.begin; begin < whole.end && !error_ && !given_up_;
       begin += kReadBytes) {
    const FilePiece part{whole.file, begin, std::min(begin + kReadBytes, whole.end)};
    put(part, read(part, source));
  }
}

/// Writes a piece, or nothing after an error: exchanging pieces goes on, since other ranks wait.
void CheckpointSave::put(const FilePiece& piece, std::span<const std::byte> bytes) {
  if (error_) return;
  try {
    writer_->put(piece.file, piece.begin, bytes);
  } catch (...) {
    error_ = std::current_exception();
  }
}

/// True if a piece of this rank came through a window: written, or in runtime::kSaveLeaving.
bool CheckpointSave::had_window(const FilePiece& piece, SaveSource source) const {
  return source == SaveSource::snapshot && has_windows_ && !state_.is_on_disk(piece);
}

/// Takes bytes from a window to the file, or to where they wait for the rank that writes them.
void CheckpointSave::take(const SavedState::Routed& part) {
  if (given_up_) return;
  if (part.writer == rank()) return put(part.piece, part.bytes);
  const auto [place, waiting] =
      *std::prev(leaving_.upper_bound({part.piece.file, part.piece.begin}));
  const std::int64_t at = waiting + part.piece.begin - place.second;
  std::memcpy(engine_.storage(runtime::kSaveLeaving).data() + at, part.bytes.data(),
              part.bytes.size());
}

/// Reads a piece of this rank; after an error returns zeros, since another rank may wait for them.
std::span<const std::byte> CheckpointSave::read(const FilePiece& piece, SaveSource source) {
  if (had_window(piece, source))
    return engine_.storage(runtime::kSaveLeaving)
        .subspan(static_cast<std::size_t>(leaving_.at({piece.file, piece.begin})),
                 static_cast<std::size_t>(piece.size_bytes()));
  if (!error_) try {
      return state_.read(engine_, source, piece, buffer_, values_);
    } catch (...) {
      error_ = std::current_exception();
    }
  buffer_.assign(static_cast<std::size_t>(piece.size_bytes()), std::byte{0});
  return buffer_;
}

/// Checks that this save has not begun to write and that its state `is_there`, then begins.
void CheckpointSave::begin_writing(bool is_there, const char* advice) {
  if (stage_ != Stage::begun)
    throw InvalidArgument("CheckpointSave: this save has its state already; make another save");
  if (!is_there) throw InvalidArgument(std::string("CheckpointSave: ") + advice);
  stage_ = Stage::writing;
}

void CheckpointSave::write_snapshot() {
  begin_writing(engine_.has_snapshot(),
                "write_snapshot() without a snapshot; start a step with Snapshot::take first");
  const std::span<const RoutedPiece> pieces = state_.pieces();
  const std::span<std::byte> arriving = engine_.storage(runtime::kSaveArriving);
  engine_.complete_snapshot();
  {
    PieceCarrier carrier(engine_.communicator());
    exchange(pieces, SaveSource::snapshot, carrier, arriving);
  }
  launch([this, pieces, arriving] {
    put_all(pieces, SaveSource::snapshot, arriving);
    rethrow();
    if (!given_up_) hashes_ = writer_->finish();
  });
}

/// Writes stretch by stretch: first ranks exchange pieces, from memory to memory, so that none
/// waits for another's disk; then each writes the pieces of its own blocks.
void CheckpointSave::write_state() {
  begin_writing(engine_.is_drained(),
                "a step is under way, so there is no one state; drain() first");
  std::vector<std::byte> own;  // used if the Plan has no memory for arriving pieces
  std::span<std::byte> arriving;
  if (engine_.programs().persistent.has(runtime::kSaveArriving)) {
    arriving = engine_.storage(runtime::kSaveArriving);
  } else {
    own.resize(static_cast<std::size_t>(state_.stretch_bytes()));
    arriving = own;
  }
  PieceCarrier carrier(engine_.communicator());
  for (std::size_t first = 0; first < state_.pieces().size();) {
    const std::span<const RoutedPiece> stretch = state_.stretch(first);
    exchange(stretch, SaveSource::state, carrier, arriving);
    put_all(stretch, SaveSource::state, arriving);
    first += stretch.size();
  }
  fail_together([&] {
    rethrow();
    hashes_ = writer_->finish();
  });
}

bool CheckpointSave::advance() {
  if (stage_ == Stage::begun)
    throw InvalidArgument("CheckpointSave: advance() before write_state() or write_snapshot()");
  join();
  fail_together([&] { rethrow(); });
  if (stage_ == Stage::committing) {
    stage_ = Stage::done;
    return true;
  }
  for (const std::string& tensor : comm::gather_texts(engine_.communicator(), values_.not_finite()))
    if (not_finite_.empty() && !tensor.empty()) not_finite_ = "values of " + tensor;
  if (request_.only_finite && !not_finite_.empty()) {
    give_up_staging();
    stage_ = Stage::given_up;
    return true;
  }
  if (not_finite_.empty() && request_.not_finite) not_finite_ = request_.not_finite();
  stage_ = Stage::committing;
  std::vector<BlockHash> hashes = gather(hashes_);
  if (rank() == 0)
    launch([this, hashes = std::move(hashes)] {
      const std::vector<WholeFile> small = small_files();
      Facts facts = request_.facts;
      if (!not_finite_.empty()) facts.emplace_back(kNotFiniteFact, not_finite_);
      const Manifest manifest =
          make_manifest(state_.layout(), request_.step, std::move(facts), small, hashes);
      commit_checkpoint(files_, request_.output, manifest, small, request_.attempt,
                        request_.before_renames);
      if (request_.after_commit) request_.after_commit(not_finite_);
    });
  return false;
}

SaveResult CheckpointSave::result() const {
  SaveResult result;
  for (const CheckpointLayout::CheckpointFile& file : state_.layout().files())
    result.bytes += file.size_bytes;
  result.my_bytes = writer_ ? writer_->bytes_written() : 0;
  result.committed = stage_ == Stage::done;
  result.not_finite = not_finite_;
  return result;
}

/// Returns the hashes of all ranks. Collective.
std::vector<BlockHash> CheckpointSave::gather(const std::vector<BlockHash>& mine) {
  static_assert(std::is_trivially_copyable_v<BlockHash>);
  const std::string_view bytes(reinterpret_cast<const char*>(mine.data()),
                               mine.size() * sizeof(BlockHash));
  std::vector<BlockHash> all;
  for (const std::string& text : comm::gather_texts(engine_.communicator(), bytes)) {
    const std::size_t before = all.size();
    all.resize(before + text.size() / sizeof(BlockHash));
    std::memcpy(all.data() + before, text.data(), text.size());
  }
  return all;
}

SaveResult save_checkpoint(Engine& engine, FileSystem& files, const SaveRequest& request) {
  CheckpointSave save(engine, files, request);
  save.write_state();
  while (!save.advance()) continue;
  return save.result();
}

}  // namespace strata::train
