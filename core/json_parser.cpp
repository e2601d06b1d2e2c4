#include <fmt/core.h>
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <system_error>
#include <utility>

#include "core/json.h"
#include "core/json_document.h"
#include "core/json_writer.h"
#include "core/utf8.h"

namespace strata {
namespace {

constexpr std::pair<std::string_view, std::string_view> kPythonWords[] = {
    {"True", "true"}, {"False", "false"}, {"None", "null"}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Recursive descent parser of one text; options_.depth_limit bounds the recursion.
class Parser {
 public:
  Parser(std::string_view text, const JsonOptions& options, JsonDocument& document)
      : text_(text), options_(options), document_(document) {}

  void run() {
    // Offsets and node numbers are 32 bits wide.
    const std::int64_t limit = std::min(options_.size_limit_bytes, std::int64_t{1} << 31);
    if (static_cast<std::int64_t>(text_.size()) > limit)
      fail(
          fmt::format("the document has {} bytes, more than the limit of {}", text_.size(), limit));
    if (text_.starts_with("\xef\xbb\xbf"))
      fail("the file begins with a byte order mark; save it without");
    skip_space();
    if (at_end()) fail("the document is empty");
    parse_value(add_node(JsonNode::kNone, JsonNode::kNone), 0);
    skip_space();
    if (!at_end()) fail("unexpected " + here() + " after the end of the document");
    if (!duplicates_.empty()) {
      line_ = duplicate_line_;
      fail(duplicates_);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw_json_fault(options_.fault, fmt::format("{}:{}: {}", document_.file, line_, message));
  }

  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[at_]; }

  /// Describes what stands at the cursor, for messages.
  [[nodiscard]] std::string here() const {
    if (at_end()) return "end of file";
    const std::size_t size = utf8_character_size(text_.substr(at_));
    if (size == 0) return fmt::format("byte {}", static_cast<unsigned char>(text_[at_]));
    return quoted_json(text_.substr(at_, size));
  }

  void skip_space() {
    for (;; ++at_) {
      while (at_comment()) skip_comment();
      if (at_end()) return;
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return;
    }
  }

  [[nodiscard]] bool at_comment() const {
    const std::string_view rest = text_.substr(at_);
    return rest.starts_with("//") || rest.starts_with("/*") || rest.starts_with('#');
  }

  void skip_comment() {
    if (!options_.allow_comments) fail("comments are not allowed in this file");
    if (!text_.substr(at_).starts_with("/*")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
      return;
    }
    const std::size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) fail("the comment that begins here does not end");
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end + 2;
  }

  JsonNode& node(std::uint32_t index) { return document_.nodes[index]; }

  /// Appends a child to `parent` after its sibling `previous`.
  std::uint32_t add_node(std::uint32_t parent, std::uint32_t previous) {
    const auto index = static_cast<std::uint32_t>(document_.nodes.size());
    document_.nodes.emplace_back();
    node(index).line = line_;
    node(index).parent = parent;
    if (parent != JsonNode::kNone) {
      node(index).position = node(parent).child_count++;
      (previous == JsonNode::kNone ? node(parent).first_child : node(previous).next_sibling) =
          index;
    }
    return index;
  }

  void parse_value(std::uint32_t index, int depth) {
    const char c = peek();
    if (c == '{' || c == '[') {
      if (depth >= options_.depth_limit)
        fail(fmt::format("nested deeper than {} levels", options_.depth_limit));
      c == '{' ? parse_object(index, depth) : parse_array(index, depth);
    } else if (c == '"') {
      node(index).kind = JsonKind::string;
      const auto [offset, size] = parse_string();
      node(index).text_offset = offset;
      node(index).text_size = size;
    } else if (c == '-' || is_digit(c)) {
      parse_number(node(index));
    } else {
      parse_word(node(index));
    }
  }

  void parse_word(JsonNode& node) {
    const std::string_view rest = text_.substr(at_);
    const auto accept = [&](std::string_view word) {
      if (!rest.starts_with(word)) return false;
      at_ += word.size();
      return true;
    };
    if (accept("true") || accept("false")) {
      node.kind = JsonKind::boolean;
      node.boolean = rest.starts_with("true");
    } else if (options_.allow_infinity && accept("Infinity")) {
      node.kind = JsonKind::real;
      node.real = std::numeric_limits<double>::infinity();
    } else if (!accept("null")) {
      if (rest.starts_with("NaN") || rest.starts_with("Infinity"))
        fail("NaN and Infinity are not JSON numbers");
      for (const auto& [python, json] : kPythonWords)
        if (rest.starts_with(python))
          fail(fmt::format("expected a value, found {}, which JSON spells {}", python, json));
      fail("expected a value, found " + here());
    }
  }

  void parse_number(JsonNode& node) {
    const std::size_t start = at_;
    if (peek() == '-') ++at_;
    const bool leading_zero = peek() == '0';
    const std::size_t whole_digits = skip_digits("a digit");
    if (leading_zero && whole_digits > 1) fail("a number may not begin with 0");
    bool whole = true;
    if (peek() == '.') {
      ++at_;
      whole = false;
      skip_digits("a digit after the decimal point");
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      whole = false;
      if (peek() == '+' || peek() == '-') ++at_;
      skip_digits("a digit of the exponent");
    }
    const char* first = text_.data() + start;
    const char* last = text_.data() + at_;
    if (whole && std::from_chars(first, last, node.integer).ec == std::errc()) {
      node.kind = JsonKind::integer;
      return;
    }
    node.kind = JsonKind::real;
    if (std::from_chars(first, last, node.real).ec != std::errc())
      fail(fmt::format("the number {} is outside of the range of a double",
                       text_.substr(start, std::min<std::size_t>(at_ - start, 40))));
  }

  std::size_t skip_digits(const char* expected) {
    const std::size_t start = at_;
    while (is_digit(peek())) ++at_;
    if (at_ == start) fail("expected " + std::string(expected) + ", found " + here());
    return at_ - start;
  }

  /// Appends the unescaped characters to the document's text; returns their offset and size.
  std::pair<std::uint32_t, std::uint32_t> parse_string() {
    ++at_;
    std::string& out = document_.text;
    const auto offset = static_cast<std::uint32_t>(out.size());
    for (;;) {
      if (at_end()) fail("the file ends inside a string");
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') break;
      if (c == '\n') fail("a line ends inside a string");
      if (c < 0x20) fail(fmt::format("control character {} inside a string", c));
      if (c == '\\') {
        parse_escape(out);
        continue;
      }
      const std::size_t size = utf8_character_size(text_.substr(at_));
      if (size == 0)
        fail(fmt::format("a string is not valid UTF-8 at byte {} of the document", at_));
      out.append(text_.substr(at_, size));
      at_ += size;
    }
    ++at_;
    return {offset, static_cast<std::uint32_t>(out.size()) - offset};
  }

  void parse_escape(std::string& out) {
    static constexpr std::string_view kNames = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    ++at_;
    const char c = peek();
    if (c == 'u') {
      ++at_;
      append_utf8(out, parse_code_point());
      return;
    }
    const std::size_t i = at_end() ? std::string_view::npos : kNames.find(c);
    if (i == std::string_view::npos) fail("unknown escape \\ followed by " + here());
    out.push_back(kMeanings[i]);
    ++at_;
  }

  std::uint32_t parse_code_point() {
    const std::uint32_t high = parse_hex4();
    if (high >= 0xdc00 && high <= 0xdfff) fail("a \\u escape is half of a surrogate pair");
    if (high < 0xd800 || high > 0xdbff) return high;
    if (!text_.substr(at_).starts_with("\\u")) fail("a \\u escape is half of a surrogate pair");
    at_ += 2;
    const std::uint32_t low = parse_hex4();
    if (low < 0xdc00 || low > 0xdfff) fail("a \\u escape is half of a surrogate pair");
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
  }

  std::uint32_t parse_hex4() {
    const std::string_view digits = text_.substr(at_, 4);
    std::uint32_t value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || digits.size() < 4 || end != digits.data() + 4)
      fail("expected four hexadecimal digits after \\u");
    at_ += 4;
    return value;
  }

  /// Call after an element: returns true when another one follows, false when it consumed `close`.
  bool another(char close, const char* what) {
    skip_space();
    if (peek() == ',' && !at_end()) {
      ++at_;
      skip_space();
      if (peek() != close) return true;
      if (!options_.allow_trailing_commas)
        fail("a comma before '" + std::string(1, close) + "' is not allowed");
    }
    if (peek() != close)
      fail("expected ',' or '" + std::string(1, close) + "' in the " + what + ", found " + here());
    ++at_;
    return false;
  }

  void parse_array(std::uint32_t index, int depth) {
    node(index).kind = JsonKind::array;
    ++at_;
    skip_space();
    if (peek() == ']') {
      ++at_;
      return;
    }
    std::uint32_t last = JsonNode::kNone;
    do {
      last = add_node(index, last);
      parse_value(last, depth + 1);
    } while (another(']', "array"));
  }

  void parse_object(std::uint32_t index, int depth) {
    node(index).kind = JsonKind::object;
    ++at_;
    skip_space();
    if (peek() == '}') {
      ++at_;
      return;
    }
    std::uint32_t last = JsonNode::kNone;
    do {
      if (peek() != '"') fail("expected a key in double quotes, found " + here());
      last = add_node(index, last);
      const auto [offset, size] = parse_string();
      node(last).key_offset = offset;
      node(last).key_size = size;
      skip_space();
      if (peek() != ':') fail("expected ':' after the key, found " + here());
      ++at_;
      skip_space();
      parse_value(last, depth + 1);
    } while (another('}', "object"));
    note_duplicates(index);
  }

  void note_duplicates(std::uint32_t object) {
    std::vector<std::uint32_t> children;
    for (auto i = node(object).first_child; i != JsonNode::kNone; i = node(i).next_sibling)
      children.push_back(i);
    const auto key = [this](std::uint32_t i) { return document_.key_of(node(i)); };
    std::stable_sort(children.begin(), children.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    for (std::size_t i = 0; i < children.size();) {
      std::size_t end = i + 1;
      while (end < children.size() && key(children[end]) == key(children[i])) ++end;
      if (end - i > 1) note_duplicate(children.data() + i, children.data() + end);
      i = end;
    }
  }

  void note_duplicate(const std::uint32_t* first, const std::uint32_t* last) {
    constexpr std::size_t kLimit = 4000;  // bytes of the message, roughly
    if (duplicates_.empty()) duplicate_line_ = node(*first).line;
    if (duplicates_.size() > kLimit) return;
    if (!duplicates_.empty()) duplicates_ += "; ";
    duplicates_ +=
        fmt::format("{} is given {} times (lines ", document_.path_of(*first), last - first);
    for (const std::uint32_t* i = first; i != last && duplicates_.size() <= kLimit; ++i)
      duplicates_ += fmt::format("{}{}", i == first ? "" : ", ", node(*i).line);
    duplicates_ += ")";
  }

  std::string_view text_;
  const JsonOptions& options_;
  JsonDocument& document_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::string duplicates_;
  int duplicate_line_ = 1;
};

}  // namespace

JsonValue parse_json(std::string_view text, const std::string& file, const JsonOptions& options) {
  auto document = std::make_shared<JsonDocument>();
  document->file = file;
  document->fault = options.fault;
  Parser(text, options, *document).run();
  return JsonValue(std::move(document), 0);
}

}  // namespace strata
