#include "sim/base/heap.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#endif

namespace topsim {
#ifdef __GLIBC__
constexpr int kPad = 1 << 20;  // the least amount by which the heap grows
#endif

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_TOP_PAD, kPad);
#endif
}

// glibc's malloc requests huge pages itself only if an environment variable says so (glibc.malloc.hugetlb).
void put_heap_on_huge_pages([[maybe_unused]] std::size_t bytes) {
#ifdef __GLIBC__
  constexpr std::size_t kPage = 2U << 20, kBlock = 16U << 20, kMost = std::numeric_limits<int>::max() / 2;
  // By default malloc maps larger blocks separately, and returns free memory at the top of the heap.
  if (mallopt(M_MMAP_THRESHOLD, 2 * kBlock) == 0 ||
      mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max()) == 0)
    return;
  const auto top = [] { return reinterpret_cast<std::uintptr_t>(sbrk(0)); };
  // The heap grows once, in one piece, ahead of use: later growth would need another request for huge pages.
  mallopt(M_TOP_PAD, static_cast<int>(std::min(bytes, kMost)));
  const std::uintptr_t before = top();
  std::array<void*, 8> blocks{};  // use up the free space below the top
  for (void*& block : blocks)
    if (top() == before) block = std::malloc(kBlock);
  mallopt(M_TOP_PAD, kPad);
  const std::uintptr_t begin = (before + kPage - 1) / kPage * kPage, end = top() / kPage * kPage;
  if (begin < end) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  for (void* block : blocks) std::free(block);
#endif
}
}  // namespace topsim
