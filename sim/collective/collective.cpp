#include "sim/collective/collective.hpp"

namespace topsim::collective {

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::tree:
      return "Tree";
    case Algorithm::ring:
      return "Ring";
    case Algorithm::collnet_direct:
      return "CollNetDirect";
    case Algorithm::collnet_chain:
      return "CollNetChain";
    case Algorithm::nvls:
      return "NVLS";
    case Algorithm::nvls_tree:
      return "NVLSTree";
    case Algorithm::pat:
      return "PAT";
    case Algorithm::direct:
      return "Direct";
    case Algorithm::torus:
      return "Torus";
    case Algorithm::one_shot:
      return "OneShot";
    case Algorithm::two_shot:
      return "TwoShot";
    case Algorithm::multimem:
      return "Multimem";
  }
  return "?";
}

std::string_view name_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::ll:
      return "LL";
    case Protocol::ll128:
      return "LL128";
    case Protocol::simple:
      return "Simple";
  }
  return "?";
}
}  // namespace topsim::collective
