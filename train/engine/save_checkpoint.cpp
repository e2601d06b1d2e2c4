#include "train/engine/save_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <span>

#include "comm/gather_texts.h"
#include "comm/host_stream.h"
#include "comm/together.h"
#include "core/error.h"
#include "train/checkpoint/block_writer.h"
#include "train/engine/saved_state.h"

namespace strata::train {
namespace {

/// Bytes of pieces that travel before blocks are filled again: what bounds the memory for them.
constexpr std::int64_t kTravelBytes = std::int64_t{16} << 20;
/// Read from a device or a disk at a time.
constexpr std::int64_t kReadBytes = std::int64_t{4} << 20;

/// Carries pieces between two ranks; a piece that travels is smaller than a block. Collective in
/// its beginning and end.
class PieceCarrier {
 public:
  explicit PieceCarrier(comm::Communicator& communicator)
      : communicator_(communicator),
        arena_("pieces", kBlockBytes,
               communicator.backend() == "shm" ? runtime::ArenaKind::shared_memory
                                               : runtime::ArenaKind::private_memory) {
    communicator_.register_arena({arena_.base(), arena_.bytes(), arena_.memfd()});
  }
  ~PieceCarrier() {
    try {
      communicator_.unregister_arena(arena_.base());
    } catch (const Error&) {
      // The communicator is dead, which whoever used it last has been told.
    }
  }
  PieceCarrier(const PieceCarrier&) = delete;
  PieceCarrier& operator=(const PieceCarrier&) = delete;

  void send(std::span<const std::byte> bytes, int peer) {
    std::memcpy(arena_.base(), bytes.data(), bytes.size());
    run(comm::CollectiveKind::send, static_cast<std::int64_t>(bytes.size()), peer);
  }
  std::vector<std::byte> receive(std::int64_t bytes, int peer) {
    run(comm::CollectiveKind::receive, bytes, peer);
    return {arena_.base(), arena_.base() + bytes};
  }

 private:
  void run(comm::CollectiveKind kind, std::int64_t bytes, int peer) {
    comm::Collective message{.kind = kind, .input_type = DType::u8};
    message.peer = peer;
    // The partition of a message is its size, whoever is meant.
    message.partition.bounds.assign(static_cast<std::size_t>(communicator_.size()) + 1, bytes);
    message.partition.bounds[0] = 0;
    std::vector<std::byte> workspace(
        static_cast<std::size_t>(communicator_.workspace_bytes(message)));
    comm::HostStream stream;
    const bool sends = kind == comm::CollectiveKind::send;
    communicator_.run(stream, message, sends ? arena_.base() : nullptr,
                      sends ? nullptr : arena_.base(), workspace);
  }

  comm::Communicator& communicator_;
  runtime::Arena arena_;
};

class Save {
 public:
  Save(Engine& engine, FileSystem& files, const SaveRequest& request)
      : engine_(engine), files_(files), request_(request), state_(engine) {}

  SaveResult run() {
    // One step after the other: nobody begins one that another rank could not finish.
    together([&] {
      if (rank() == 0)
        writer_ = make_writer(
            create_staging_folder(files_, request_.output, request_.step, request_.attempt),
            BlockWriter::Role::creator);
    });
    together([&] {
      if (rank() != 0) writer_ = make_writer(staging(), BlockWriter::Role::helper);
    });
    write_blocks();
    std::vector<BlockHash> mine;
    together([&] {
      rethrow();
      mine = writer_->finish();
    });
    const std::vector<BlockHash> hashes = gather(mine);
    together([&] {
      if (rank() != 0) return;
      const std::vector<WholeFile> small = small_files();
      const Manifest manifest =
          make_manifest(state_.layout(), request_.step, request_.facts, small, hashes);
      commit_checkpoint(files_, request_.output, manifest, small, request_.attempt);
    });
    SaveResult result;
    for (const CheckpointLayout::CheckpointFile& file : state_.layout().files())
      result.bytes += file.size_bytes;
    result.my_bytes = writer_->bytes_written();
    return result;
  }

 private:
  [[nodiscard]] int rank() const { return engine_.communicator().rank(); }

  [[nodiscard]] std::string staging() const {
    return request_.output + "/" +
           folder_name(request_.step, FolderState::staging, request_.attempt);
  }

  [[nodiscard]] std::unique_ptr<BlockWriter> make_writer(const std::string& directory,
                                                         BlockWriter::Role role) const {
    return std::make_unique<BlockWriter>(files_, directory, state_.layout(),
                                         state_.assignment().blocks_of(rank()), role);
  }

  [[nodiscard]] std::vector<WholeFile> small_files() const {
    std::vector<WholeFile> all = request_.whole_files;
    for (const auto& [name, text] : state_.layout().indexes()) all.push_back({name, text});
    return all;
  }

  /// Runs `body` and hears how the others fared. Throws on all ranks when it failed on one.
  template <typename Body>
  void together(const Body& body) {
    const auto failure = comm::together(engine_.communicator(), body);
    if (!failure) return;
    std::string all;
    for (std::size_t r = 0; r < failure->messages.size(); ++r)
      if (!failure->messages[r].empty())
        all +=
            (all.empty() ? "rank " : "; rank ") + std::to_string(r) + ": " + failure->messages[r];
    writer_.reset();
    engine_.barrier();  // nobody writes any more
    if (rank() == 0) abandon_checkpoint(files_, request_.output, request_.step, request_.attempt);
    throw Error(failure->code, all);
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

  /// After an error nothing more is written, but what travels goes on: others wait for it.
  void put(const Piece& piece, std::span<const std::byte> bytes) {
    if (error_) return;
    try {
      writer_->put(piece.file, piece.begin, bytes);
    } catch (const Error&) {
      error_ = std::current_exception();
    }
  }

  /// Stretch by stretch: first what travels, from memory to memory, so that no rank waits for
  /// another one's disk; then this rank's own pieces.
  void write_blocks() {
    const std::vector<RoutedPiece>& pieces = state_.assignment().pieces;
    PieceCarrier carrier(engine_.communicator());
    for (std::size_t begin = 0; begin < pieces.size();) {
      std::size_t end = begin;
      for (std::int64_t travels = 0; end < pieces.size() && travels < kTravelBytes; ++end)
        if (pieces[end].saver != pieces[end].writer) travels += pieces[end].piece.size_bytes();
      const std::span<const RoutedPiece> stretch(pieces.data() + begin, end - begin);
      const std::vector<std::vector<std::byte>> arrived = exchange(stretch, carrier);
      std::size_t next = 0;
      for (const RoutedPiece& routed : stretch) {
        if (routed.writer != rank() || is_header(routed.piece)) continue;
        if (routed.saver == rank())
          put_own(routed.piece);
        else
          put(routed.piece, arrived[next++]);
      }
      begin = end;
    }
  }

  /// The creator writes those by itself.
  [[nodiscard]] bool is_header(const Piece& piece) const {
    return piece.begin <
           static_cast<std::int64_t>(state_.layout().files()[piece.file].header.size());
  }

  /// In one order on all ranks, so that no two wait for each other.
  std::vector<std::vector<std::byte>> exchange(std::span<const RoutedPiece> pieces,
                                               PieceCarrier& carrier) {
    std::vector<std::vector<std::byte>> arrived;
    for (const RoutedPiece& routed : pieces) {
      if (routed.saver == routed.writer) continue;
      if (routed.saver == rank())
        carrier.send(read(routed.piece), routed.writer);
      else if (routed.writer == rank())
        arrived.push_back(carrier.receive(routed.piece.size_bytes(), routed.saver));
    }
    return arrived;
  }

  void put_own(const Piece& whole) {
    for (std::int64_t begin = whole.begin; begin < whole.end && !error_; begin += kReadBytes) {
      const Piece part{whole.file, begin, std::min(begin + kReadBytes, whole.end)};
      put(part, read(part));
    }
  }

  /// After an error zeros: nobody will see them, but somebody may wait for them.
  std::span<const std::byte> read(const Piece& piece) {
    if (!error_) try {
        return state_.read(piece, buffer_);
      } catch (const Error&) {
        error_ = std::current_exception();
      }
    buffer_.assign(static_cast<std::size_t>(piece.size_bytes()), std::byte{0});
    return buffer_;
  }

  /// All ranks' hashes, on rank 0 (the others take part).
  std::vector<BlockHash> gather(const std::vector<BlockHash>& mine) {
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

  Engine& engine_;
  FileSystem& files_;
  const SaveRequest& request_;
  SavedState state_;
  std::unique_ptr<BlockWriter> writer_;
  std::exception_ptr error_;
  std::vector<std::byte> buffer_;
};

}  // namespace

SaveResult save_checkpoint(Engine& engine, FileSystem& files, const SaveRequest& request) {
  return Save(engine, files, request).run();
}

}  // namespace strata::train
