// What this process has used so far.
#pragma once

#include <sys/resource.h>

namespace topsim::bench {

inline rusage used() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

inline double cpu_seconds() {
  const rusage usage = used();
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

inline long peak_megabytes() {
  return used().ru_maxrss / 1024;
}
}  // namespace topsim::bench
