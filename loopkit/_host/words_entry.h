// How the runtime calls a kernel without knowing its signature.
//
// The generated source is followed by LK_ENTRY(name, sizes...): the arguments
// come as an array of pointers and are unpacked by the kernel's own types.
#pragma once

template <unsigned... I>
struct lk_numbers {};
template <unsigned N, unsigned... I>
struct lk_count : lk_count<N - 1, N - 1, I...> {};
template <unsigned... I>
struct lk_count<0, I...> {
  typedef lk_numbers<I...> type;
};

template <class T>
struct lk_bare { typedef T type; };
template <class T>
struct lk_bare<const T> { typedef T type; };

template <class... A, unsigned... I>
static inline __attribute__((always_inline)) void lk_call(void (*kernel)(A...), void **arguments,
                                                          lk_numbers<I...>) {
  kernel(*(typename lk_bare<A>::type *)arguments[I]...);
}
template <class... A>
static inline __attribute__((always_inline)) void lk_invoke(void (*kernel)(A...),
                                                            void **arguments) {
  lk_call(kernel, arguments, typename lk_count<sizeof...(A)>::type());
}

// Whether the kernel's parameters have the sizes that the caller will pass.
template <class... A, unsigned N>
static constexpr bool lk_matches(void (*)(A...), const unsigned (&sizes)[N]) {
  if (N != sizeof...(A) + 1) return false;
  unsigned const own[] = {sizeof(A)..., 0};
  for (unsigned i = 0; i < N; ++i)
    if (own[i] != sizes[i]) return false;
  return true;
}

#define LK_EXPORT extern "C" __attribute__((visibility("default")))
#define LK_ENTRY(name, ...)                                                                    \
  static constexpr unsigned lk_sizes[] = {__VA_ARGS__};                                        \
  static_assert(lk_matches(&name, lk_sizes),                                                   \
                "the parameters of " #name " are not those that its Program declares");        \
  LK_EXPORT void lk_entry(void **arguments) { lk_invoke(&name, arguments); }                   \
  LK_EXPORT void lk_plain(void **arguments, lk_thread *self, const lk_index *turns,            \
                          unsigned count) {                                                    \
    for (unsigned i = 0; i < count; ++i) {                                                     \
      self->position = turns[i];                                                               \
      lk_invoke(&name, arguments);                                                             \
    }                                                                                          \
  }                                                                                            \
  static __thread __attribute__((used)) char lk_anchor_byte;                                   \
  LK_EXPORT void *lk_anchor() { return &lk_anchor_byte; }

// Gives `extern __shared__ type name[]` its memory, and a zone behind it.
#define LK_DYNAMIC_SHARED(type, name, bytes)                                                   \
  thread_local __attribute__((aligned(1024))) type                                             \
      name[((bytes) + lk_guard_size + sizeof(type) - 1) / sizeof(type)];                       \
  LK_EXPORT void *lk_guard() { return reinterpret_cast<char *>(name) + (bytes); }
#define LK_NO_DYNAMIC_SHARED()                                                                 \
  LK_EXPORT void *lk_guard() { return nullptr; }
