#include "sim/base/stack.hpp"

#include <pthread.h>

#include <cerrno>
#include <exception>
#include <new>
#include <system_error>

namespace topsim {
namespace {
struct Job {
  const std::function<void()>& body;
  std::exception_ptr error;
};

void* run(void* argument) {
  Job& job = *static_cast<Job*>(argument);
  try {
    job.body();
  } catch (...) {
    job.error = std::current_exception();
  }
  return nullptr;
}
}  // namespace

void on_stack_of(std::size_t bytes, const std::function<void()>& body) {
  Job job{body, nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  int failed = pthread_attr_setstacksize(&attributes, bytes);
  pthread_t thread{};
  if (failed == 0) failed = pthread_create(&thread, &attributes, run, &job);
  pthread_attr_destroy(&attributes);
  if (failed == EAGAIN || failed == ENOMEM) throw std::bad_alloc();
  if (failed != 0) throw std::system_error(failed, std::generic_category(), "a thread with a large stack");
  pthread_join(thread, nullptr);
  if (job.error) std::rethrow_exception(job.error);
}
}  // namespace topsim
