// SPDX-License-Identifier: Apache-2.0
// The user's browser, where there is one in front of which the user sits.
#pragma once

#include <string>

namespace gpuprof {

// Whether this is a session over ssh with no display: a browser here would be of no use.
bool is_remote_session();

// Starts BROWSER, or what the desktop opens pages with. False: there is none here, or each failed
// within a second. Waits for that long where a browser goes on.
bool start_browser(const std::string& address);

// "ssh -L PORT:127.0.0.1:PORT HOST", to be run where the user sits.
std::string forwarding_command(unsigned port);

}  // namespace gpuprof
