#include "protocol/shell/reloader.h"

#include <set>
#include <utility>

namespace windlass {

void Reloader::add(std::string what, std::vector<std::string> files, Reader read) {
  for (std::string& file : files) {
    files_.push_back(std::move(file));
    source_of_.push_back(sources_.size());
  }
  sources_.push_back({std::move(what), std::move(read)});
}

void Reloader::watch(FileWatchOptions options) {
  watch_ = std::make_unique<FileWatch>(
      loop_, files_, [this](const std::vector<std::size_t>& files) { handle_changed(files); }, options);
}

void Reloader::reload() {
  for (const Source& source : sources_) read(source);
}

void Reloader::handle_changed(const std::vector<std::size_t>& files) {
  std::set<std::size_t> sources;  // a certificate and its key are read once
  for (const std::size_t file : files) sources.insert(source_of_[file]);
  for (const std::size_t source : sources) read(sources_[source]);
}

void Reloader::read(const Source& source) {
  if (const auto done = source.read(); done) {
    log_.info("files were read again", {{"what", source.what}});
  } else {
    log_.error("files cannot be read again; what was in force stays",
               {{"what", source.what}, {"reason", done.error().reason}});
  }
}

}  // namespace windlass
