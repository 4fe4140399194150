#include "protocol/messages/frame.h"

namespace windlass {
namespace {

struct TypeOf {
  std::string_view operator()(const Handshake&) const { return "control.handshake"; }
  std::string_view operator()(const Register&) const { return "control.register"; }
  std::string_view operator()(const SessionAccept&) const { return "control.session.accept"; }
  std::string_view operator()(const Resume&) const { return "control.resume"; }
  std::string_view operator()(const Reset&) const { return "control.reset"; }
  std::string_view operator()(const Drain&) const { return "control.drain"; }
  std::string_view operator()(const Ack&) const { return "control.ack"; }
  std::string_view operator()(const Heartbeat&) const { return "control.heartbeat"; }
  std::string_view operator()(const UnknownControl& body) const { return body.type; }
  std::string_view operator()(const Data& body) const { return body.type; }
};

}  // namespace

std::string_view type_of(const Frame& frame) {
  return std::visit(TypeOf{}, frame.body);
}

std::string_view to_string(Role role) {
  switch (role) {
    case Role::Scheduler:
      return "scheduler";
    case Role::Worker:
      return "worker";
    case Role::Runtime:
      return "runtime";
  }
  return "";
}

std::uint64_t credit_bytes(const Data& data) {
  return data.payload.size() + (data.attachment ? data.attachment->bytes.size() : 0);
}

}  // namespace windlass
