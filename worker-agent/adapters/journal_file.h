// The journal's log as a file: appended and synced on a thread of its own, one batch at a time; what is
// decided meanwhile forms the next batch, so many commands share one sync.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "protocol/base/result.h"
#include "worker-agent/adapters/files.h"
#include "worker-agent/core/agent_core.h"

namespace windlass::agent {

class JournalFile final {
 public:
  // The batch is on the disk, or why not, said on the writer's thread. E.STORE.FULL: nothing of it was
  // written, and it is tried again every second. Anything else: what is on the disk is not known any more,
  // end the process.
  using Written = std::function<void(Result<Done> result)>;

  // Who calls has locked the folder that the file is in.
  static Result<std::unique_ptr<JournalFile>> open(const std::string& path);
  ~JournalFile();
  JournalFile(const JournalFile&) = delete;
  JournalFile& operator=(const JournalFile&) = delete;

  // Before start().
  const Bytes& contents() const { return contents_; }  // as found
  Result<Done> keep(std::size_t bytes);                // cuts a torn tail off; frees contents()

  void start(Written written);
  void write(Batch batch);  // one at a time

 private:
  JournalFile(std::string path, FileDescriptor file, Bytes contents);
  Result<Done> append(BytesView bytes);
  Result<Done> replace(BytesView bytes);

  std::string path_;
  FileDescriptor file_;
  Bytes contents_;
  std::size_t size_ = 0;
  Written written_;
  std::mutex mutex_;
  std::condition_variable_any wanted_;
  std::optional<Batch> batch_;
  std::jthread thread_;
};

}  // namespace windlass::agent
