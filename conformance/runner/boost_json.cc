// Boost.JSON's definitions, compiled once: the library is used as headers.
#include <boost/json/src.hpp>
