#include "scheduler/cli/completion.h"

#include <CLI/CLI.hpp>
#include <map>

namespace windlass::cli {
namespace {

// What may follow each chain of subcommands: further ones, and options.
void collect(const CLI::App& app, const std::string& chain, const std::string& inherited,
             std::map<std::string, std::string>& words) {
  std::string options = inherited;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) options += " --" + name;
  }
  std::string all;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name().empty()) continue;
    all += sub->get_name() + ' ';
    const std::string inner = chain.empty() ? sub->get_name() : chain + ' ' + sub->get_name();
    collect(*sub, inner, options, words);
  }
  words[chain] = all + options;
}

}  // namespace

std::string completion_script(const CLI::App& app, const std::string& shell) {
  std::map<std::string, std::string> words;
  collect(app, "", "", words);
  std::string text = "# Shell completion for windlass. Use: source <(windlass completion " + shell + ")\n";
  if (shell == "zsh") text += "autoload -U +X bashcompinit && bashcompinit\n";
  text +=
      "_windlass() {\n"
      "  local chain='' word i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    word=${COMP_WORDS[i]}\n"
      "    case \"${chain:+$chain }$word\" in\n      ";
  bool is_first = true;
  for (const auto& [chain, unused] : words) {
    if (chain.empty()) continue;
    text += (is_first ? "'" : "|'") + chain + "'";
    is_first = false;
  }
  text += ") chain=\"${chain:+$chain }$word\" ;;\n    esac\n  done\n  local words=''\n  case \"$chain\" in\n";
  for (const auto& [chain, list] : words) {
    text.append("    '").append(chain).append("') words='").append(list).append("' ;;\n");
  }
  text +=
      "  esac\n"
      "  if [[ \"$chain\" == completion ]]; then words='bash zsh'; fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
      "  if [[ ${#COMPREPLY[@]} -eq 0 ]]; then COMPREPLY=($(compgen -f -- \"${COMP_WORDS[COMP_CWORD]}\")); "
      "fi\n"
      "}\n"
      "complete -F _windlass windlass\n";
  return text;
}

}  // namespace windlass::cli
