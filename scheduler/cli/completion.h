// Shell completion, made from the command line's own description, so that it never lags behind.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace windlass::cli {

// "bash" or "zsh".
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace windlass::cli
