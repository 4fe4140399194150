#include "worker-agent/native/values.h"

#include <algorithm>
#include <stdexcept>

#include "protocol/base/utf8.h"

namespace windlass::native {
namespace {

bool same_header(std::string_view one, std::string_view other) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [&](char a, char b) { return lower(a) == lower(b); });
}

using Plain = google::protobuf::Map<std::string, std::string>;
using Nullable = google::protobuf::Map<std::string, rpc::NullableString>;

Pairs all_of(const Nullable& nullable, const Plain& plain) {
  Pairs pairs;
  pairs.reserve(nullable.size() + plain.size());
  for (const auto& [name, value] : nullable) pairs.emplace_back(name, value.value());
  for (const auto& [name, value] : plain) {
    if (!nullable.contains(name)) pairs.emplace_back(name, value);
  }
  return pairs;
}

std::string_view one_of(const Nullable& nullable, const Plain& plain, std::string_view name) {
  const std::string key(name);
  if (const auto found = nullable.find(key); found != nullable.end()) return found->second.value();
  if (const auto found = plain.find(key); found != plain.end()) return found->second;
  return {};
}

// Hosts take a message with broken text for garbage, so it fails here, where the cause can be named.
std::string text_of(std::string&& text, const char* what) {
  if (!is_utf8(text))
    throw std::invalid_argument(std::string(what) + " is not UTF-8; use windlass::Value::bytes for bytes");
  return std::move(text);
}

void put_cookie(Cookie&& cookie, rpc::RpcHttpCookie* to) {
  *to->mutable_name() = text_of(std::move(cookie.name), "a cookie's name");
  *to->mutable_value() = text_of(std::move(cookie.value), "a cookie's value");
  if (!cookie.path.empty()) to->mutable_path()->set_value(text_of(std::move(cookie.path), "a cookie's path"));
  if (!cookie.domain.empty())
    to->mutable_domain()->set_value(text_of(std::move(cookie.domain), "a cookie's domain"));
  if (cookie.max_age) to->mutable_max_age()->set_value(static_cast<double>(cookie.max_age->count()));
  if (cookie.secure) to->mutable_secure()->set_value(true);
  if (cookie.http_only) to->mutable_http_only()->set_value(true);
  switch (cookie.same_site) {
    case Cookie::SameSite::Unset:
      break;
    case Cookie::SameSite::Lax:
      to->set_same_site(rpc::RpcHttpCookie::Lax);
      break;
    case Cookie::SameSite::Strict:
      to->set_same_site(rpc::RpcHttpCookie::Strict);
      break;
    case Cookie::SameSite::None:
      to->set_same_site(rpc::RpcHttpCookie::ExplicitNone);
      break;
  }
}

// Hosts must accept a map here, so of two headers with one name the last stays; cookies have a list of their
// own.
void put_http(HttpResponse&& response, rpc::RpcHttp* http) {
  http->set_status_code(std::to_string(response.status));
  for (auto& [name, value] : response.headers) {
    (*http->mutable_headers())[text_of(std::move(name), "a header's name")] =
        text_of(std::move(value), "a header's value");
  }
  for (Cookie& cookie : response.cookies) put_cookie(std::move(cookie), http->add_cookies());
  *http->mutable_body()->mutable_bytes() = std::move(response.body);
}

HttpResponse as_response(Value::Any&& any) {
  if (auto* response = std::get_if<HttpResponse>(&any)) return std::move(*response);
  if (std::holds_alternative<std::nullptr_t>(any)) return {.status = 204};
  const auto with_type = [](std::string body, std::string type) {
    return HttpResponse{.body = std::move(body), .headers = {{"content-type", std::move(type)}}};
  };
  if (auto* text = std::get_if<std::string>(&any))
    return with_type(std::move(*text), "text/plain; charset=utf-8");
  if (auto* json = std::get_if<Value::Json>(&any))
    return with_type(std::move(json->text), "application/json");
  if (auto* bytes = std::get_if<Value::Bytes>(&any))
    return with_type(std::move(bytes->bytes), "application/octet-stream");
  if (const auto* integer = std::get_if<std::int64_t>(&any))
    return with_type(std::to_string(*integer), "application/json");
  return with_type(std::to_string(std::get<double>(any)), "application/json");
}

}  // namespace

Data view_of(const rpc::TypedData& data) {
  using Case = rpc::TypedData::DataCase;
  Data view;
  switch (data.data_case()) {
    case Case::DATA_NOT_SET:
      break;
    case Case::kString:
      view.kind = Data::Kind::Text, view.text = data.string();
      break;
    case Case::kJson:
      view.kind = Data::Kind::Json, view.text = data.json();
      break;
    case Case::kBytes:
      view.kind = Data::Kind::Bytes, view.text = data.bytes();
      break;
    case Case::kStream:
      view.kind = Data::Kind::Bytes, view.text = data.stream();
      break;
    case Case::kHttp:
      view.kind = Data::Kind::Http;
      break;
    case Case::kInt:
      view.kind = Data::Kind::Integer, view.integer = data.int_();
      break;
    case Case::kDouble:
      view.kind = Data::Kind::Number, view.number = data.double_();
      break;
    case Case::kCollectionBytes: {
      const auto& items = data.collection_bytes().bytes();
      view.kind = Data::Kind::Blobs, view.parts.assign(items.begin(), items.end());
      break;
    }
    case Case::kCollectionString: {
      const auto& items = data.collection_string().string();
      view.kind = Data::Kind::Texts, view.parts.assign(items.begin(), items.end());
      break;
    }
    case Case::kCollectionDouble: {
      const auto& items = data.collection_double().double_();
      view.kind = Data::Kind::Numbers, view.numbers.assign(items.begin(), items.end());
      break;
    }
    case Case::kCollectionSint64: {
      const auto& items = data.collection_sint64().sint64();
      view.kind = Data::Kind::Integers, view.integers.assign(items.begin(), items.end());
      break;
    }
    case Case::kModelBindingData:
      view.kind = Data::Kind::Bytes, view.text = data.model_binding_data().content();
      break;
    case Case::kCollectionModelBindingData: {
      view.kind = Data::Kind::Blobs;
      for (const auto& item : data.collection_model_binding_data().model_binding_data()) {
        view.parts.emplace_back(item.content());
      }
      break;
    }
  }
  return view;
}

void put_value(Value&& value, bool http, rpc::TypedData* data) {
  Value::Any& any = value.any();
  if (http) {
    put_http(as_response(std::move(any)), data->mutable_http());
  } else if (auto* text = std::get_if<std::string>(&any)) {
    *data->mutable_string() = text_of(std::move(*text), "the returned text");
  } else if (auto* json = std::get_if<Value::Json>(&any)) {
    *data->mutable_json() = text_of(std::move(json->text), "the returned JSON");
  } else if (auto* bytes = std::get_if<Value::Bytes>(&any)) {
    *data->mutable_bytes() = std::move(bytes->bytes);
  } else if (const auto* integer = std::get_if<std::int64_t>(&any)) {
    data->set_int_(*integer);
  } else if (const auto* number = std::get_if<double>(&any)) {
    data->set_double_(*number);
  } else if (auto* response = std::get_if<HttpResponse>(&any)) {
    put_http(std::move(*response), data->mutable_http());
  }
}

std::string_view HttpView::header(std::string_view name) const {
  for (const auto& [key, value] : request_->nullable_headers()) {
    if (same_header(key, name)) return value.value();
  }
  for (const auto& [key, value] : request_->headers()) {
    if (same_header(key, name)) return value;
  }
  return {};
}

std::string_view HttpView::query(std::string_view name) const {
  return one_of(request_->nullable_query(), request_->query(), name);
}

std::string_view HttpView::parameter(std::string_view name) const {
  return one_of(request_->nullable_params(), request_->params(), name);
}

std::string_view HttpView::body() const {
  const rpc::TypedData& body = request_->has_body() ? request_->body() : request_->rawbody();
  return view_of(body).text;
}

Pairs HttpView::headers() const {
  return all_of(request_->nullable_headers(), request_->headers());
}

Pairs HttpView::queries() const {
  return all_of(request_->nullable_query(), request_->query());
}

Pairs HttpView::parameters() const {
  return all_of(request_->nullable_params(), request_->params());
}

}  // namespace windlass::native
