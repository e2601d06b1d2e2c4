#include "train/data/data_kind.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "core/ascii.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

/// Kinds of files that would be read as nonsense text; remedy_for() says how to make text of them.
enum class Kind { records, table, packed, archive, tokens, weights, document };

constexpr std::string_view kInsist =
    "; if it is plain text all the same, say so with --data-is-text";

std::string_view remedy_for(Kind kind) {
  switch (kind) {
    case Kind::records:
      return "JSON records are not plain text (chat templates and masks of prompts are not "
             "built); write their text into a file, such as: jq -r .text FILE > FILE.txt";
    case Kind::table:
      return "tables are not plain text; write the column that holds the text into a .txt file";
    case Kind::packed:
      return "compressed files are not read; unpack it first";
    case Kind::archive:
      return "archives are not read; unpack it and name the text files in it";
    case Kind::tokens:
      return "these tokens are not read; give text, or .bin files of llm.c or nanoGPT";
    case Kind::weights:
      return "this holds weights, not text; name a model with --model";
    case Kind::document:
      return "documents and pictures are not read; save the text as .txt";
  }
  return "";
}

struct Extension {
  std::string_view name;
  Kind kind;
};
constexpr Extension kExtensions[] = {
    {".json", Kind::records},    {".jsonl", Kind::records}, {".ndjson", Kind::records},
    {".csv", Kind::table},       {".tsv", Kind::table},     {".parquet", Kind::table},
    {".arrow", Kind::table},     {".feather", Kind::table}, {".orc", Kind::table},
    {".avro", Kind::table},      {".lance", Kind::table},   {".tfrecord", Kind::table},
    {".tfrecords", Kind::table}, {".xls", Kind::table},     {".xlsx", Kind::table},
    {".db", Kind::table},        {".sqlite", Kind::table},  {".h5", Kind::table},
    {".hdf5", Kind::table},      {".gz", Kind::packed},     {".bgz", Kind::packed},
    {".bz2", Kind::packed},      {".xz", Kind::packed},     {".zst", Kind::packed},
    {".lz4", Kind::packed},      {".zip", Kind::archive},   {".tar", Kind::archive},
    {".tgz", Kind::archive},     {".7z", Kind::archive},    {".rar", Kind::archive},
    {".npy", Kind::tokens},      {".npz", Kind::tokens},    {".idx", Kind::tokens},
    {".mds", Kind::tokens},      {".pt", Kind::weights},    {".pth", Kind::weights},
    {".ckpt", Kind::weights},    {".pkl", Kind::weights},   {".pickle", Kind::weights},
    {".gguf", Kind::weights},    {".onnx", Kind::weights},  {".safetensors", Kind::weights},
    {".pdf", Kind::document},    {".doc", Kind::document},  {".docx", Kind::document},
    {".epub", Kind::document},   {".odt", Kind::document},  {".png", Kind::document},
    {".jpg", Kind::document},    {".jpeg", Kind::document},
};

struct Magic {
  std::string_view bytes;
  std::string_view what;
  Kind kind;
};
using namespace std::string_view_literals;
constexpr Magic kMagics[] = {
    {"PAR1"sv, "Parquet", Kind::table},
    {"ARROW1"sv, "Arrow", Kind::table},
    {"\xff\xff\xff\xff"sv, "an Arrow stream", Kind::table},
    {"Obj\x01"sv, "Avro", Kind::table},
    {"SQLite format 3\0"sv, "an SQLite database", Kind::table},
    {"\x89HDF\r\n"sv, "HDF5", Kind::table},
    {"\x1f\x8b"sv, "gzip", Kind::packed},
    {"BZh"sv, "bzip2", Kind::packed},
    {"\xfd\x37zXZ\0"sv, "xz", Kind::packed},
    {"\x28\xb5\x2f\xfd"sv, "zstd", Kind::packed},
    {"\x04\x22\x4d\x18"sv, "lz4", Kind::packed},
    {"PK\x03\x04"sv, "a zip archive", Kind::archive},
    {"7z\xbc\xaf\x27\x1c"sv, "a 7z archive", Kind::archive},
    {"\x93NUMPY"sv, "NumPy's .npy", Kind::tokens},
    {"MMIDIDX"sv, "Megatron's index", Kind::tokens},
    {"GGUF"sv, "GGUF", Kind::weights},
    {"%PDF-"sv, "PDF", Kind::document},
    {"\x89PNG"sv, "PNG", Kind::document},
};
/// Token files hold any bytes, so that shorter magic numbers may match by chance.
constexpr std::size_t kLeastMagicOfTokens = 4;

constexpr std::int64_t kLookedAtBytes = 64 << 10;

[[noreturn]] void refuse(const std::string& path, const std::string& what, Kind kind,
                         std::string_view insist) {
  throw DataError(fmt::format("{}: {}; {}{}", path, what, remedy_for(kind), insist));
}

void refuse_folder(const std::string& path) {
  const fs::path folder(path);
  if (fs::exists(folder / "dataset_info.json") || fs::exists(folder / "dataset_dict.json"))
    throw DataError(path +
                    ": a folder of Hugging Face's `datasets`, which is not read; write the "
                    "column that holds the text into a .txt file");
  throw DataError(path + ": found a folder, expected files; name those in it, such as --data " +
                  (folder / "*.txt").string());
}

/// `is_text`: names of records and tables are taken as they come.
void refuse_name(const std::string& path, bool is_text) {
  const std::string extension = ascii_lower_case(fs::path(path).extension().string());
  for (const Extension& other : kExtensions) {
    const bool may_be_text = other.kind == Kind::records || other.kind == Kind::table;
    if (extension == other.name && !(is_text && may_be_text))
      refuse(path, "found a file named " + extension, other.kind, may_be_text ? kInsist : "");
  }
}

void refuse_magic(const std::string& path, std::string_view beginning) {
  for (const Magic& magic : kMagics)
    if (beginning.starts_with(magic.bytes) &&
        (!is_token_file(path) || magic.bytes.size() >= kLeastMagicOfTokens))
      refuse(path, "by its first bytes this is " + std::string(magic.what), magic.kind, "");
}

/// Throws for a token file of Megatron, which says in an .idx beside it what it holds, unless that
/// is uint16, as in nanoGPT's files.
void refuse_megatron(const std::string& path) {
  const std::string index = fs::path(path).replace_extension(".idx").string();
  constexpr std::string_view kMagic = "MMIDIDX\0\0"sv;
  constexpr std::size_t kTypeAt = kMagic.size() + 8;  // after the version
  constexpr char kUint16 = 8;
  std::error_code ignored;
  if (!fs::is_regular_file(index, ignored)) return;
  const File file = File::open_for_reading(index);
  std::string header(kTypeAt + 1, '\0');
  if (file.size_bytes() < std::ssize(header)) return;
  file.read(0, std::as_writable_bytes(std::span(header)), "the header");
  if (header.starts_with(kMagic) && header[kTypeAt] != kUint16)
    throw DataError(path + ": tokens of Megatron that are not uint16, as " + index +
                    " says; of Megatron's files only uint16 ones are read");
}

/// Ends a cut-off JSON text after its last complete element or word, and closes its brackets.
std::string ended_early(std::string_view text) {
  std::string open, open_there;  // closing brackets, innermost last
  std::size_t end = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == (in_string ? ' ' : ',')) {
      end = i;
      open_there = in_string ? open + '"' : open;
    }
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') ++i;
    if (in_string) continue;
    if (c == '[' || c == '{') open += c == '[' ? ']' : '}';
    if ((c == ']' || c == '}') && !open.empty()) open.pop_back();
  }
  return std::string(text.substr(0, end)).append(open_there.rbegin(), open_there.rend());
}

/// True for a JSON object, list or string, or its beginning; words and numbers prove nothing.
bool is_json(std::string_view text, bool is_cut_off) {
  try {
    const JsonValue value = parse_json(is_cut_off ? ended_early(text) : std::string(text), "", {});
    return value.is(JsonKind::object) || value.is(JsonKind::array) || value.is(JsonKind::string);
  } catch (const DataError&) {
    return false;
  }
}

/// True if each of the first lines, at least two, is JSON.
bool are_json_lines(std::string_view text, bool is_cut_off) {
  constexpr int kLookedAtLines = 8;
  int lines = 0;
  while (!text.empty() && lines < kLookedAtLines) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const bool is_last = end == text.size();
    text.remove_prefix(is_last ? end : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (!is_json(line, is_last && is_cut_off)) return false;
    ++lines;
  }
  return lines > 1;
}

/// True if the text begins like a JSON object, a list of objects or lines of them, or if what was
/// read of it is JSON or lines of JSON.
bool begins_like_json(std::string_view text, bool is_cut_off) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::string bones;  // the first characters that are not blank
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) continue;
    bones += c;
    if (bones.size() == 3) break;
  }
  return bones.starts_with("{\"") || bones.starts_with("[{\"") || is_json(text, is_cut_off) ||
         are_json_lines(text, is_cut_off);
}

/// `is_text`: the user says that it is one, whatever it looks like.
void refuse_text(const std::string& path, std::string_view beginning, bool is_text) {
  if (beginning.starts_with("\xff\xfe") || beginning.starts_with("\xfe\xff"))
    throw DataError(path +
                    ": UTF-16 by its first bytes, expected UTF-8; convert it: iconv -f "
                    "UTF-16 -t UTF-8 " +
                    path);
  if (is_text) return;
  if (begins_like_json(beginning, std::ssize(beginning) == kLookedAtBytes))
    refuse(path, "the text begins like JSON", Kind::records, kInsist);
  if (const std::size_t zero = beginning.find('\0'); zero != std::string_view::npos)
    throw DataError(
        fmt::format("{}: byte {} is 0, which no plain text holds{}", path, zero, kInsist));
}

}  // namespace

bool is_token_file(const std::string& path) { return path.ends_with(".bin"); }

void require_plain_data(const std::string& path, bool is_text) {
  std::error_code ignored;  // a path that cannot be examined is reported when it is opened
  if (fs::is_directory(path, ignored)) refuse_folder(path);
  refuse_name(path, is_text);
  std::string beginning;
  try {
    const File file = File::open_for_reading(path);
    beginning.resize(static_cast<std::size_t>(std::min(file.size_bytes(), kLookedAtBytes)));
    file.read(0, std::as_writable_bytes(std::span(beginning)), "the first bytes");
  } catch (const IoError& error) {
    throw DataError(std::string("data file ") + error.what());
  }
  if (beginning.empty())
    throw DataError(path + ": the data file is empty, expected text or tokens");
  refuse_magic(path, beginning);
  if (is_token_file(path))
    refuse_megatron(path);
  else
    refuse_text(path, beginning, is_text);
}

}  // namespace strata::train
