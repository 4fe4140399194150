// Included before everything that sees protobuf's messages, in the tsan build only: there map_field.h would
// give a map two members that Debian's library, which handles the same maps, does not know of.
#pragma once

#include <atomic>  // The standard library is told of the sanitizer first.
#include <functional>
#include <memory>
#include <string>

#undef __SANITIZE_THREAD__
#include <google/protobuf/map_field.h>
#define __SANITIZE_THREAD__ 1
