// A stack of a known size, for a search that goes deeper than a thread's own stack may allow: that of a
// worker of oneTBB, of a thread of somebody else's program, of a shell with a low limit.
#pragma once

#include <cstddef>
#include <functional>

namespace topsim {

// Runs `body` on a thread of its own with so many bytes of stack, and waits for it; what it throws is thrown
// on. Memory is taken as far as the stack is used.
void on_stack_of(std::size_t bytes, const std::function<void()>& body);
}  // namespace topsim
