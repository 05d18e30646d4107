// How glibc's heap takes memory from the system. Contents of memory are not affected, nor are other
// heaps.
#pragma once

#include <cstddef>

namespace topsim {

// For a whole command, at its beginning: buffers of up to some MB come from the heap, and what is freed stays
// there for the next. By default glibc maps each buffer anew, and all of its pages are faulted in and cleared
// again: a sixth of all page faults of a run of 16,384 ranks.
void keep_freed_memory();

// For runs whose state fits no cache: with pages of 4 KiB they spend a tenth of their time or more on reading
// page tables. From here on, about `bytes` of what the heap gives to the calling thread are on huge pages,
// where the system has them; they are taken as they are used. Small runs would pay more for clearing such
// pages than they gain.
void put_heap_on_huge_pages(std::size_t bytes);
}  // namespace topsim
