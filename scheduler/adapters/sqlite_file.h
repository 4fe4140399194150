// A thin owner of one SQLite connection: statements, errors as Results, and the checks before a file is
// trusted. What the tables mean is sqlite_store.cc's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "protocol/base/bytes.h"
#include "protocol/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace windlass {

// Ours, in the file's header: "WNDL".
inline constexpr std::uint32_t kSqliteApplicationId = 0x574e444c;

enum class FileKind { Absent, Ours };

// Looks at the first bytes without SQLite, so that a file that is not ours is not even opened. An empty file
// counts as absent.
Result<FileKind> look_at(const std::string& path);

// One compiled statement, used again and again. After step() said that there is no row, or failed, it is
// reset.
class SqliteStatement final {
 public:
  SqliteStatement() = default;
  explicit SqliteStatement(sqlite3_stmt* statement) : statement_(statement) {}

  void bind(int at, std::string_view text);  // the text must live until the statement is reset
  void bind_bytes(int at, BytesView bytes);
  void bind(int at, std::int64_t number);
  int step();  // SQLITE_ROW, SQLITE_DONE or an error
  void reset();
  std::string_view text(int column) const;
  BytesView bytes(int column) const;
  std::int64_t number(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class SqliteFile final {
 public:
  enum class Mode { Existing, Create };
  static Result<std::unique_ptr<SqliteFile>> open(const std::string& path, Mode mode);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  Result<Done> run(const std::string& sql);
  Result<std::string> ask(const std::string& sql);  // the first column of the first row; empty without one
  Result<SqliteStatement> prepare(std::string_view sql);
  bool is_in_transaction() const;
  // The file keeps its bytes when it is closed: nothing is moved from the log into it.
  void leave_untouched();

  // What SQLite's answer means to an operator, with the path.
  Error error(int answer, std::string_view doing) const;

 private:
  SqliteFile(std::string path, sqlite3* database) : path_(std::move(path)), database_(database) {}

  std::string path_;
  sqlite3* database_;
};

}  // namespace windlass
