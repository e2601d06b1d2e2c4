// Saves all state of an engine as a checkpoint, written by all ranks at once: while training stands
// still, or from a snapshot while training goes on.
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
  std::string output;  ///< prepared by prepare_output_folder; the same for all ranks
  std::int64_t step = 0;
  SaveAttempt attempt;
  Facts facts;                         ///< facts of the manifest; rank 0's are used
  std::vector<WholeFile> whole_files;  ///< config.json, trainer_state.json, ...: rank 0's are used
  bool only_finite = false;            ///< commit nothing if a value is NaN or infinite
  /// Called when all is written. Returns what of the run is not finite whatever the saved values
  /// are, in the same words on all ranks, or "". May be empty.
  std::function<std::string()> not_finite;
  /// Called on rank 0 right before the commit (commit_checkpoint), which it forbids by throwing.
  /// May be empty.
  std::function<void()> before_renames;
  /// Called on rank 0 after the commit, on a thread of the save. Must not throw. May be empty.
  /// `not_finite` as in SaveResult.
  std::function<void(const std::string& not_finite)> after_commit;
};

struct SaveResult {
  std::int64_t bytes = 0;     ///< size of the whole checkpoint, without its small files
  std::int64_t my_bytes = 0;  ///< written by this rank
  bool committed = false;
  /// Known when all is written: what is NaN or infinite ("values of" a tensor, or the request's
  /// words).
  std::string not_finite;
};

/// One save in stages, each done on every rank before the next begins anywhere. Calls marked
/// "collective" are made by all ranks in the same order while the engine is settled. If anything
/// fails on one rank they throw on all, with every failing rank's message. After that, and when a
/// save is given up, what it wrote is removed and the folder's other checkpoints are untouched.
///
/// Borrows engine and files, and must be destroyed before them.
class CheckpointSave {
 public:
  /// Collective: makes the folder and its files. If snapshots go through windows, the next snapshot
  /// is written while its step runs. Throws InvalidArgument for an attempt without a name.
  CheckpointSave(Engine& engine, FileSystem& files, SaveRequest request);
  /// Gives up a save that is not committed; waits for this rank's threads.
  ~CheckpointSave();
  CheckpointSave(const CheckpointSave&) = delete;
  CheckpointSave& operator=(const CheckpointSave&) = delete;

  /// Collective, after the step that took the last snapshot: begins to write that snapshot, which
  /// stays until this save ends. Pieces of blocks that several ranks save are exchanged before it
  /// returns; a thread writes the rest. Throws InvalidArgument without a snapshot.
  void write_snapshot();
  /// Collective: writes the state of the engine as it stands, and returns when all blocks are
  /// written. Throws InvalidArgument unless the engine is drained.
  void write_state();

  /// True if advance() would now wait for this rank's own work. Any time.
  [[nodiscard]] bool is_busy() const { return busy_; }
  /// Collective, after write_*: waits for this rank's work and goes on to the next stage. Returns
  /// true after the last one; what was committed then survives a crash of the machine.
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
  void put_own(const FilePiece& whole, SaveSource source);
  [[nodiscard]] bool had_window(const FilePiece& piece, SaveSource source) const;
  void take(const SavedState::Routed& part);
  void put(const FilePiece& piece, std::span<const std::byte> bytes);
  std::span<const std::byte> read(const FilePiece& piece, SaveSource source);
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
  std::exception_ptr error_;       ///< this rank's error; its thread writes it until it is joined
  std::vector<BlockHash> hashes_;  ///< this rank's blocks; also its thread's
  ValueCheck values_;              ///< sees the values that this rank saves
  std::string not_finite_;         ///< result over all ranks, known once all is written
  std::vector<std::byte> buffer_;
  bool has_windows_;
  /// Offsets in runtime::kSaveLeaving where pieces that go through windows wait for the other ranks
  /// that write them.
  std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> leaving_;  // by file and first byte
};

/// Collective, between steps, drained: does a whole save at once. When it returns, the checkpoint
/// survives a crash of the machine. Throws as CheckpointSave does.
SaveResult save_checkpoint(Engine& engine, FileSystem& files, const SaveRequest& request);

}  // namespace strata::train
