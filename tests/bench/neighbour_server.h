// A neighbour's server as a child process with a folder of its own. It ends with the object, and with the
// bench however that ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace windlass::bench {

class NeighbourServer final {
 public:
  struct Program {
    std::string name;     // searched in PATH
    std::string package;  // Debian's, for whoever lacks it
  };
  // What a start needs to know; the port is free when it is asked for, and another is tried if it no longer
  // is.
  struct Place {
    std::string folder;
    std::uint16_t port = 0;
    std::uint16_t second_port = 0;
  };
  // Writes `configuration(place)` to a file, starts the program with that file's name as last argument, and
  // returns when its port accepts.
  NeighbourServer(const Program& program, const std::vector<std::string>& arguments,
                  const std::string& parent_folder,
                  const std::function<std::string(const Place&)>& configuration);
  ~NeighbourServer();
  NeighbourServer(const NeighbourServer&) = delete;
  NeighbourServer& operator=(const NeighbourServer&) = delete;

  const Place& place() const { return place_; }
  double nanoseconds() const;  // processor time since its start, of all threads

 private:
  void start(const std::string& path, const std::vector<std::string>& arguments);
  bool accepts();
  bool has_ended();
  std::string log_end() const;

  Place place_;
  pid_t child_ = -1;
};

// Asks the files of `folder`, and of folders made in it later, to be written through to the disk by every
// write. False where the file system cannot.
bool write_through(const std::string& folder);

// The body of a plain HTTP answer on loopback; empty when there is none.
std::string http_body(std::uint16_t port, std::string_view path);

}  // namespace windlass::bench
