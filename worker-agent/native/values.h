// Data between FunctionRpc and the API: views of what came in, and values moved into what goes out.
#pragma once

#include "schema/proto/function_rpc.pb.h"
#include "worker-agent/native/include/windlass/function.h"

namespace windlass::native {

namespace rpc = AzureFunctionsRpcMessages;

// Views into `data`.
Data view_of(const rpc::TypedData& data);

// The value's parts are moved. `http`: whatever it is becomes an HTTP answer.
void put_value(Value&& value, bool http, rpc::TypedData* data);

// The request's headers, query and route parameters, in either of the forms hosts send them.
class HttpView final : public HttpRequest {
 public:
  void show(const rpc::RpcHttp* request) { request_ = request; }
  bool is_shown() const { return request_ != nullptr; }

  std::string_view method() const override { return request_->method(); }
  std::string_view url() const override { return request_->url(); }
  std::string_view header(std::string_view name) const override;
  std::string_view query(std::string_view name) const override;
  std::string_view parameter(std::string_view name) const override;
  std::string_view body() const override;
  Pairs headers() const override;
  Pairs queries() const override;
  Pairs parameters() const override;

 private:
  const rpc::RpcHttp* request_ = nullptr;
};

}  // namespace windlass::native
