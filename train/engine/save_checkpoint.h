// All state of an engine into a checkpoint, written by all ranks at once: while training stands
// still, or from a snapshot while it goes on.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/file_system.h"
#include "train/checkpoint/block_writer.h"
#include "train/checkpoint/checkpoint_commit.h"
#include "train/engine/engine.h"
#include "train/engine/saved_state.h"

namespace strata::train {

struct SaveRequest {
  std::string output;  ///< prepared folder (prepare_output_folder), the same files for all ranks
  std::int64_t step = 0;
  SaveAttempt attempt;
  Facts facts;                         ///< of the manifest; rank 0's count
  std::vector<WholeFile> whole_files;  ///< config.json, trainer_state.json, ...; rank 0's count
  bool only_finite = false;            ///< nothing is committed where a value is NaN or infinite
  /// Once all is written: what of the run is not finite, whatever the values, in words that are the
  /// same on all ranks; "": nothing. May be empty.
  std::function<std::string()> not_finite;
  /// On rank 0, after the commit, on a thread of the save. Throws nothing. May be empty.
  /// `not_finite` as in SaveResult.
  std::function<void(const std::string& not_finite)> after_commit;
};

struct SaveResult {
  std::int64_t bytes = 0;     ///< of the whole checkpoint, small files left out
  std::int64_t my_bytes = 0;  ///< written by this rank
  bool committed = false;
  /// Once all is written: what is NaN or infinite, "values of" a tensor or the request's words; "":
  /// nothing.
  std::string not_finite;
};

/// One save in stages, each done on every rank before the next begins anywhere. Calls marked
/// "collective" are made by all ranks in the same order while the engine is settled; they throw on
/// all ranks when anything failed on one, with every failing rank's message. Then, and when a save
/// is given up, the folder's other checkpoints are untouched and what was written is removed.
///
/// Borrows engine and files, and is destroyed before them.
class CheckpointSave {
 public:
  /// Collective: makes folder and files. Throws InvalidArgument for an attempt without a name.
  /// Where snapshots go through windows, what the next one holds is written while its step runs.
  CheckpointSave(Engine& engine, FileSystem& files, SaveRequest request);
  /// Gives up what is not committed; waits for this rank's threads.
  ~CheckpointSave();
  CheckpointSave(const CheckpointSave&) = delete;
  CheckpointSave& operator=(const CheckpointSave&) = delete;

  /// Collective: from the last snapshot (InvalidArgument without one), after its step; what it
  /// keeps stays until this save ends. Pieces of blocks that several ranks save travel at once, the
  /// rest is written beside the caller.
  void write_snapshot();
  /// Collective: from the engine as it stands, drained (else InvalidArgument), until all blocks are
  /// written.
  void write_state();

  /// Whether advance() would wait for this rank's own work now. Any time.
  [[nodiscard]] bool is_busy() const { return busy_; }
  /// Collective, after write_*: waits for this rank and goes on to the next stage. True: that was
  /// the last; what was committed survives a crash of the machine.
  bool advance();

  [[nodiscard]] std::int64_t step() const { return request_.step; }
  [[nodiscard]] SaveResult result() const;

 private:
  class PieceCarrier;
  enum class Stage : std::uint8_t { begun, writing, committing, done, given_up };

  [[nodiscard]] int rank() const { return engine_.communicator().rank(); }
  [[nodiscard]] std::string staging() const;
  [[nodiscard]] std::unique_ptr<BlockWriter> make_writer(const std::string& directory,
                                                         BlockWriter::Role role) const;
  [[nodiscard]] std::vector<WholeFile> small_files() const;
  void begin_writing(bool is_there, const char* advice);
  void give_up_staging();
  template <typename Body>
  void fail_together(const Body& body);
  void launch(std::function<void()> body);
  void join();
  void rethrow() const;

  void exchange(std::span<const RoutedPiece> pieces, SaveSource source, PieceCarrier& carrier,
                std::span<std::byte> arriving);
  void put_all(std::span<const RoutedPiece> pieces, SaveSource source,
               std::span<const std::byte> arrived);
  void put_own(const Piece& whole, SaveSource source);
  [[nodiscard]] bool had_window(const Piece& piece, SaveSource source) const;
  void take(const SavedState::Routed& part);
  void put(const Piece& piece, std::span<const std::byte> bytes);
  std::span<const std::byte> read(const Piece& piece, SaveSource source);
  std::vector<BlockHash> gather(const std::vector<BlockHash>& mine);

  Engine& engine_;
  std::shared_ptr<const void> borrowed_;
  FileSystem& files_;
  SaveRequest request_;
  SavedState state_;
  std::unique_ptr<BlockWriter> writer_;
  Stage stage_ = Stage::begun;
  std::thread thread_;
  std::atomic<bool> busy_ = false;
  std::atomic<bool> given_up_ = false;
  std::exception_ptr error_;       ///< of this rank; its thread's, until it is joined
  std::vector<BlockHash> hashes_;  ///< likewise
  ValueCheck values_;              ///< of this rank
  std::string not_finite_;         ///< of all ranks, once all is written
  std::vector<std::byte> buffer_;
  bool has_windows_;
  /// Where pieces wait that go through windows and that other ranks write, in
  /// runtime::kSaveLeaving.
  std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> leaving_;  // by file and first byte
};

/// Collective, between steps, drained: a whole save at once. When it returns the checkpoint
/// survives a crash of the machine. Throws as CheckpointSave.
SaveResult save_checkpoint(Engine& engine, FileSystem& files, const SaveRequest& request);

}  // namespace strata::train
