// What a running service took from files and takes again when they change, or when it is told to: tokens,
// keys, certificates. What cannot be read stays as it was, and the log says why in one sentence.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "protocol/adapters/file_watch.h"
#include "protocol/base/result.h"
#include "protocol/shell/json_log.h"

namespace windlass {

class Reloader final {
 public:
  // Reads the files and puts them in force, or leaves everything as it was and says why.
  using Reader = std::function<Result<Done>()>;

  // Both must outlive the reloader.
  Reloader(EventLoop& loop, JsonLog& log) : loop_(loop), log_(log) {}

  // Before watch(). `what` is for people: "the credentials".
  void add(std::string what, std::vector<std::string> files, Reader read);
  // Changes count from here on: call it before the files are read for the first time.
  void watch(FileWatchOptions options = {});

  // Loop thread: everything, changed or not.
  void reload();

 private:
  struct Source {
    std::string what;
    Reader read;
  };
  void handle_changed(const std::vector<std::size_t>& files);
  void read(const Source& source);

  EventLoop& loop_;
  JsonLog& log_;
  std::vector<Source> sources_;
  std::vector<std::string> files_;
  std::vector<std::size_t> source_of_;  // each file's
  std::unique_ptr<FileWatch> watch_;
};

}  // namespace windlass
