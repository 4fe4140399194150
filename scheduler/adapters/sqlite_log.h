// Looks at SQLite's write-ahead log before SQLite does. SQLite reads a log up to the first frame that is
// wrong and drops the rest without a word. That is right for the last commit, which a power cut may have torn
// before anybody was told of it; anything earlier was synced and acknowledged, and must not be forgotten
// silently.
#pragma once

#include <string>

#include "protocol/base/result.h"
#include "scheduler/adapters/sqlite_store.h"

namespace windlass {

// Of the store file at `path`, whose log may be absent. With StoreSync::Normal several commits may be torn at
// once, so only the log's header is judged.
Result<Done> look_at_log(const std::string& path, StoreSync sync);

}  // namespace windlass
