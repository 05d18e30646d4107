#include "topology/catalogue/routing_codec.hpp"

namespace topsim::topology {
config::CodecPtr<Routing> codec(config::Type<Routing>) {
  return config::names<Routing>({
      {"static", Routing::static_, "one path, chosen by destination (InfiniBand forwarding tables)"},
      {"ecmp", Routing::ecmp, "one path a connection, chosen by a seeded hash"},
      {"adaptive", Routing::adaptive, "every packet takes the least loaded of the shortest paths"},
      {"spray", Routing::spray, "packets are spread evenly over the shortest paths"},
  });
}
}  // namespace topsim::topology
