#include "train/data/token_source.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/error.h"
#include "core/json_writer.h"

namespace strata::train {
namespace {

class ConcatenatedTokens : public TokenSource {
 public:
  explicit ConcatenatedTokens(std::vector<std::shared_ptr<const TokenSource>> parts)
      : parts_(std::move(parts)) {
    for (const auto& part : parts_) ends_.push_back(size() + part->size());
  }

  [[nodiscard]] std::int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }

  void read(std::int64_t first, std::span<std::int32_t> out) const override {
    STRATA_CHECK(first >= 0 && first + static_cast<std::int64_t>(out.size()) <= size(), first);
    auto part = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), first) -
                                         ends_.begin());
    for (; !out.empty(); ++part) {
      const std::int64_t begin = ends_[part] - parts_[part]->size();
      const std::int64_t count = std::min<std::int64_t>(std::ssize(out), ends_[part] - first);
      parts_[part]->read(first - begin, out.first(static_cast<std::size_t>(count)));
      out = out.subspan(static_cast<std::size_t>(count));
      first += count;
    }
  }

  [[nodiscard]] std::int64_t vocabulary_bound() const override {
    std::int64_t bound = 0;
    for (const auto& part : parts_) bound = std::max(bound, part->vocabulary_bound());
    return bound;
  }

  [[nodiscard]] std::string name() const override {
    if (parts_.size() == 1) return parts_[0]->name();
    return fmt::format("{} and {} more", parts_[0]->name(), parts_.size() - 1);
  }

 private:
  std::vector<std::shared_ptr<const TokenSource>> parts_;
  std::vector<std::int64_t> ends_;
};

class SlicedTokens : public TokenSource {
 public:
  SlicedTokens(std::shared_ptr<const TokenSource> source, std::int64_t begin, std::int64_t size)
      : source_(std::move(source)), begin_(begin), size_(size) {
    STRATA_CHECK(begin >= 0 && size >= 0 && begin <= source_->size() - size, begin, size);
  }

  [[nodiscard]] std::int64_t size() const override { return size_; }
  void read(std::int64_t first, std::span<std::int32_t> out) const override {
    STRATA_CHECK(first >= 0 && first + static_cast<std::int64_t>(out.size()) <= size_, first);
    source_->read(begin_ + first, out);
  }
  [[nodiscard]] std::int64_t vocabulary_bound() const override {
    return source_->vocabulary_bound();
  }
  [[nodiscard]] std::string name() const override { return source_->name(); }

 private:
  std::shared_ptr<const TokenSource> source_;
  std::int64_t begin_;
  std::int64_t size_;
};

class RenamedTokens : public TokenSource {
 public:
  RenamedTokens(std::shared_ptr<const TokenSource> source, std::string name)
      : source_(std::move(source)), name_(std::move(name)) {}

  [[nodiscard]] std::int64_t size() const override { return source_->size(); }
  void read(std::int64_t first, std::span<std::int32_t> out) const override {
    source_->read(first, out);
  }
  [[nodiscard]] std::int64_t vocabulary_bound() const override {
    return source_->vocabulary_bound();
  }
  [[nodiscard]] std::string name() const override { return name_; }

 private:
  std::shared_ptr<const TokenSource> source_;
  std::string name_;
};

class SingleToken : public TokenSource {
 public:
  SingleToken(std::int32_t id, std::int64_t vocabulary) : id_(id), vocabulary_(vocabulary) {
    STRATA_CHECK(id >= 0 && id < vocabulary, id, vocabulary);
  }

  [[nodiscard]] std::int64_t size() const override { return 1; }
  void read(std::int64_t first, std::span<std::int32_t> out) const override {
    STRATA_CHECK(first >= 0 && first + static_cast<std::int64_t>(out.size()) <= 1, first);
    std::fill(out.begin(), out.end(), id_);
  }
  [[nodiscard]] std::int64_t vocabulary_bound() const override { return vocabulary_; }
  [[nodiscard]] std::string name() const override { return "the end token"; }

 private:
  std::int32_t id_;
  std::int64_t vocabulary_;
};

}  // namespace

std::shared_ptr<const TokenSource> renamed(std::shared_ptr<const TokenSource> source,
                                           std::string name) {
  return std::make_shared<RenamedTokens>(std::move(source), std::move(name));
}

std::shared_ptr<const TokenSource> single_token(std::int32_t id, std::int64_t vocabulary) {
  return std::make_shared<SingleToken>(id, vocabulary);
}

std::shared_ptr<const TokenSource> concatenate(
    std::vector<std::shared_ptr<const TokenSource>> parts) {
  STRATA_CHECK(!parts.empty());
  return std::make_shared<ConcatenatedTokens>(std::move(parts));
}

std::shared_ptr<const TokenSource> slice(std::shared_ptr<const TokenSource> source,
                                         std::int64_t begin, std::int64_t size) {
  return std::make_shared<SlicedTokens>(std::move(source), begin, size);
}

SplitTokens hold_out(const std::shared_ptr<const TokenSource>& source, double fraction) {
  if (!(fraction > 0 && fraction < 1))
    throw ConfigError("the held-out fraction is " + json_number(fraction) +
                      ", expected between 0 and 1");
  const auto held_out = std::llround(static_cast<double>(source->size()) * fraction);
  const std::int64_t training = source->size() - held_out;
  return {slice(source, 0, training), slice(source, training, held_out)};
}

}  // namespace strata::train
