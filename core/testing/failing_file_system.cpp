#include "core/testing/failing_file_system.h"

#include <csignal>
#include <utility>

#include "core/error.h"

namespace strata {

class FailingFile final : public StorageFile {
 public:
  FailingFile(std::unique_ptr<StorageFile> inner, FailingFileSystem& files)
      : inner_(std::move(inner)), files_(files) {}

  [[nodiscard]] const std::string& path() const override { return inner_->path(); }
  [[nodiscard]] std::int64_t size_bytes() const override { return inner_->size_bytes(); }
  void reserve(std::int64_t size_bytes) override {
    files_.strike_or_pass(FileOperation::reserve, path(), "cannot reserve the space");
    inner_->reserve(size_bytes);
  }
  void write(std::int64_t offset_bytes, std::span<const std::byte> data) override {
    if (files_.strikes(FileOperation::write)) {
      if (files_.fault_.partial) inner_->write(offset_bytes, data.first(data.size() / 2));
      files_.kill_if_meant();
      throw IoError(path(), static_cast<std::uint64_t>(offset_bytes),
                    "write of " + std::to_string(data.size()) + " bytes failed",
                    files_.fault_.error_number);
    }
    inner_->write(offset_bytes, data);
  }
  void read(std::int64_t offset_bytes, std::span<std::byte> out) const override {
    if (files_.strikes(FileOperation::read))
      throw IoError(path(), static_cast<std::uint64_t>(offset_bytes),
                    "read of " + std::to_string(out.size()) + " bytes failed",
                    files_.fault_.error_number);
    inner_->read(offset_bytes, out);
  }
  void sync() override {
    files_.strike_or_pass(FileOperation::sync, path(), "fsync failed");
    inner_->sync();
  }

 private:
  std::unique_ptr<StorageFile> inner_;
  FailingFileSystem& files_;
};

bool FailingFileSystem::strikes(FileOperation operation) {
  if (operation != fault_.operation) return false;
  const int number = ++count_;
  const bool strike = fault_.lasting ? number >= fault_.nth : number == fault_.nth;
  if (strike) ++fired_;
  if (strike && operation != FileOperation::write) kill_if_meant();
  return strike;
}

void FailingFileSystem::kill_if_meant() const {
  if (fault_.kills) ::raise(SIGKILL);
}

void FailingFileSystem::strike_or_pass(FileOperation operation, const std::string& path,
                                       const char* what) {
  if (strikes(operation)) throw IoError(path, 0, what, fault_.error_number);
}

std::unique_ptr<StorageFile> FailingFileSystem::create(const std::string& path, Caching caching) {
  strike_or_pass(FileOperation::create, path, "cannot create");
  return std::make_unique<FailingFile>(inner_.create(path, caching), *this);
}

std::unique_ptr<StorageFile> FailingFileSystem::open_for_writing(const std::string& path,
                                                                 Caching caching) {
  strike_or_pass(FileOperation::open, path, "cannot open for writing");
  return std::make_unique<FailingFile>(inner_.open_for_writing(path, caching), *this);
}

std::unique_ptr<StorageFile> FailingFileSystem::open_for_reading(const std::string& path,
                                                                 Caching caching) {
  strike_or_pass(FileOperation::open, path, "cannot open");
  return std::make_unique<FailingFile>(inner_.open_for_reading(path, caching), *this);
}

void FailingFileSystem::make_directory(const std::string& path) {
  strike_or_pass(FileOperation::make_directory, path, "cannot create the directory");
  inner_.make_directory(path);
}

void FailingFileSystem::make_link(const std::string& target, const std::string& path) {
  if (strikes(FileOperation::make_link))
    throw IoError(path, 0, "cannot create the link to " + target, fault_.error_number);
  inner_.make_link(target, path);
}

void FailingFileSystem::sync_directory(const std::string& path) {
  strike_or_pass(FileOperation::sync_directory, path, "fsync of the directory failed");
  inner_.sync_directory(path);
}

void FailingFileSystem::rename(const std::string& from, const std::string& to) {
  if (strikes(FileOperation::rename))
    throw IoError(from, 0, "cannot rename to " + to, fault_.error_number);
  inner_.rename(from, to);
}

void FailingFileSystem::remove_file(const std::string& path) {
  strike_or_pass(FileOperation::remove, path, "cannot remove");
  inner_.remove_file(path);
}

void FailingFileSystem::remove_directory(const std::string& path) {
  strike_or_pass(FileOperation::remove, path, "cannot remove the directory");
  inner_.remove_directory(path);
}

std::vector<DirectoryEntry> FailingFileSystem::list(const std::string& path) {
  strike_or_pass(FileOperation::list, path, "cannot list");
  return inner_.list(path);
}

std::optional<std::int64_t> FailingFileSystem::free_bytes(const std::string& path) {
  return free_bytes_ ? free_bytes_ : inner_.free_bytes(path);
}

}  // namespace strata
