// make_checkpoint MODEL OUTPUT STEP: OUTPUT/step-STEP with the weights, config.json and
// trainer_state.json of a Hugging Face directory, and one moment per tensor that is as large as the
// weight. Blocks of 4 KiB, so that small models have many.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "core/file.h"
#include "train/checkpoint/block_writer.h"
#include "train/checkpoint/checkpoint_commit.h"
#include "train/files/model_files.h"

namespace strata::train {
namespace {

void make_checkpoint(const std::string& model, const std::string& output, std::int64_t step) {
  const ModelFiles weights(model);
  std::vector<TensorSpec> specs, moments;
  for (const StoredTensor& tensor : weights.tensors()) {
    specs.push_back({tensor.name, tensor.dtype.value(), tensor.shape});
    moments.push_back({"moment1." + tensor.name, DType::f32, tensor.shape});
  }
  const CheckpointLayout layout(specs, moments, {.block_bytes = 4096});
  PosixFileSystem files;
  const SaveAttempt attempt{"made", 0};
  prepare_output_folder(files, output);
  const std::string staging = create_staging_folder(files, output, step, attempt);
  std::vector<std::int64_t> blocks;
  for (std::int64_t block = 0; block < layout.blocks(); ++block) blocks.push_back(block);
  BlockWriter writer(files, staging, layout, blocks, BlockWriter::Role::creator);
  for (const CheckpointLayout::PlacedTensor& placed : layout.tensors()) {
    const std::string& name = placed.spec.name;
    const bool moment = placed.bytes.file > 0;
    std::vector<std::byte> data(static_cast<std::size_t>(placed.bytes.size_bytes()));
    weights.read(moment ? name.substr(name.find('.') + 1) : name, 0,
                 placed.bytes.size_bytes() / size_of(placed.spec.dtype), placed.spec.dtype, data);
    writer.put(placed.bytes.file, placed.bytes.begin, data);
  }
  std::vector<WholeFile> small;
  for (const char* name : {"config.json", "trainer_state.json"})
    small.push_back({name, read_whole_file(model + "/" + name, 1 << 20)});
  const Manifest manifest = make_manifest(layout, step, {{"world", "1"}}, small, writer.finish());
  commit_checkpoint(files, output, manifest, small, attempt);
}

}  // namespace
}  // namespace strata::train

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s MODEL OUTPUT STEP\n", argv[0]);
    return 2;
  }
  strata::train::make_checkpoint(argv[1], argv[2], std::stoll(argv[3]));
  return 0;
}
