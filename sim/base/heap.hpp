// How glibc's heap takes memory from the system. Nothing here changes what it holds; other heaps are left as
// they are.
#pragma once

#include <cstddef>

namespace topsim {

// For a whole command, at its beginning: buffers of up to some MB come from the heap, and what is freed stays
// there for the next. By itself glibc maps each anew, and all of its pages are faulted in and cleared again:
// a sixth of all faults of a run of 16,384 ranks.
void keep_freed_memory();

// For runs whose state no cache holds: with pages of 4 KiB a tenth of their time and more goes where each
// look at it reads page tables first. Of what the heap hands out from here on to the thread that asks, about
// `bytes` come on huge pages where the system gives them; they are taken as they are used. Small runs would
// pay more for clearing such pages than they gain.
void put_heap_on_huge_pages(std::size_t bytes);
}  // namespace topsim
