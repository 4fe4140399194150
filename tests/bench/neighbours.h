// What people run today where our session would be: message servers from Debian with acknowledged delivery,
// each a real process over TLS 1.3 on loopback, loaded by a client like wss_load's. They do not do the same
// work as a session or as one another; every choice of settings and of client that the documentation leaves
// open was made in the neighbour's favour, and is written down beside the code that makes it.
//
// A neighbour ends with the object, when what the client counted is compared with what the server says it
// did. An error reply, at any time, ends the bench with the reply's text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/bench/wss_contest.h"

namespace windlass::bench {

struct NeighbourOptions {
  std::string certificate_file;  // the server's
  std::string key_file;
  std::string authority_file;  // what its clients trust
  std::string folder;          // where the server's own folder is made: on a real disk
  std::size_t connections = 64;
  std::size_t body_bytes = 512;
};

NeighbourOptions neighbour_options(const Run& run, const Identity& identity);

// A request to a responder on another connection and its reply back: four hops over TLS for one operation.
std::unique_ptr<Contender> nats_request_reply(const NeighbourOptions& options);

// A publish that the server has stored and acknowledged. No consumer.
enum class Storage : std::uint8_t { Memory, File };
std::unique_ptr<Contender> jetstream(const NeighbourOptions& options, Storage storage);

// A message added to a stream, read by a consumer group and acknowledged.
enum class Durability : std::uint8_t { None, Always };
std::unique_ptr<Contender> redis_streams(const NeighbourOptions& options, Durability durability);

}  // namespace windlass::bench
