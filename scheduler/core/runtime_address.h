// Whether anybody but the runtime itself says that it is to be found at an address.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace windlass {

// `addresses` are the operator's: "host" for any port, "host:port", "*.domain" for one label more, "*" for
// all. `certificate_names` are those of the certificate that the runtime showed: "DNS:name", "IP:...".
bool is_vouched_for(std::string_view url, const std::vector<std::string>& addresses,
                    const std::vector<std::string>& certificate_names);

// Whether an entry of the settings is one of the above.
bool is_runtime_address(std::string_view address);

}  // namespace windlass
