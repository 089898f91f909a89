// SPDX-License-Identifier: Apache-2.0
#include "formats/core/runs/node_name.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace gpuprof {

// The kubelet begins the hosts file of a pod of the node's network with this line
// (managedHostsHeaderWithHostNetwork in Kubernetes' pkg/kubelet/kubelet_pods.go).
bool has_name_of_node(const char* hosts_file) {
  constexpr std::string_view kHeader = "# Kubernetes-managed hosts file (host network).\n";
  char text[kHeader.size()];
  const int file = ::open(hosts_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  ssize_t got;
  do {
    got = ::read(file, text, sizeof text);
  } while (got < 0 && errno == EINTR);
  ::close(file);
  return got == sizeof text && std::string_view(text, sizeof text) == kHeader;
}

}  // namespace gpuprof
