// Atomics.  Blocks may run on several OS threads, so they are real ones.
#pragma once

// Replaces *address by change(*address) and returns what stood there.
template <class T, class Change>
static inline T lk_update(T *address, Change change) {
  T old, next;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  do {
    next = change(old);
  } while (!__atomic_compare_exchange(address, &old, &next, true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED));
  return old;
}

#define LK_ATOMIC_VARIANTS(name, type)                                                         \
  static inline type name##_block(type *address, type value) { return name(address, value); }  \
  static inline type name##_system(type *address, type value) { return name(address, value); }
#define LK_ATOMIC(name, type, expression)                                                      \
  static inline type name(type *address, type value) {                                         \
    return lk_update(address, [=](type old) -> type { return expression; });                   \
  }                                                                                            \
  LK_ATOMIC_VARIANTS(name, type)
#define LK_ATOMIC_BUILTIN(name, type, builtin)                                                 \
  static inline type name(type *address, type value) {                                         \
    return builtin(address, value, __ATOMIC_RELAXED);                                          \
  }                                                                                            \
  LK_ATOMIC_VARIANTS(name, type)

#define LK_ATOMIC_INTEGER(type)                                                                \
  LK_ATOMIC_BUILTIN(atomicAnd, type, __atomic_fetch_and)                                       \
  LK_ATOMIC_BUILTIN(atomicOr, type, __atomic_fetch_or)                                         \
  LK_ATOMIC_BUILTIN(atomicXor, type, __atomic_fetch_xor)                                       \
  LK_ATOMIC_BUILTIN(atomicExch, type, __atomic_exchange_n)                                     \
  LK_ATOMIC(atomicMin, type, old < value ? old : value)                                        \
  LK_ATOMIC(atomicMax, type, old > value ? old : value)
#define LK_ATOMIC_CAS(type)                                                                    \
  static inline type atomicCAS(type *address, type expected, type value) {                     \
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST,            \
                                __ATOMIC_SEQ_CST);                                             \
    return expected;                                                                           \
  }                                                                                            \
  static inline type atomicCAS_block(type *address, type expected, type value) {               \
    return atomicCAS(address, expected, value);                                                \
  }                                                                                            \
  static inline type atomicCAS_system(type *address, type expected, type value) {              \
    return atomicCAS(address, expected, value);                                                \
  }

LK_ATOMIC_INTEGER(int)
LK_ATOMIC_INTEGER(unsigned)
LK_ATOMIC_INTEGER(unsigned long long)
LK_ATOMIC_INTEGER(long long)
LK_ATOMIC_BUILTIN(atomicAdd, int, __atomic_fetch_add)
LK_ATOMIC_BUILTIN(atomicAdd, unsigned, __atomic_fetch_add)
LK_ATOMIC_BUILTIN(atomicAdd, unsigned long long, __atomic_fetch_add)
LK_ATOMIC(atomicAdd, float, old + value)
LK_ATOMIC(atomicAdd, double, old + value)
LK_ATOMIC_BUILTIN(atomicSub, int, __atomic_fetch_sub)
LK_ATOMIC_BUILTIN(atomicSub, unsigned, __atomic_fetch_sub)
LK_ATOMIC(atomicExch, float, ((void)old, value))
LK_ATOMIC(atomicInc, unsigned, old >= value ? 0u : old + 1u)
LK_ATOMIC(atomicDec, unsigned, old == 0u || old > value ? value : old - 1u)
LK_ATOMIC_CAS(int)
LK_ATOMIC_CAS(unsigned)
LK_ATOMIC_CAS(unsigned long long)
LK_ATOMIC_CAS(unsigned short)
#undef LK_ATOMIC_INTEGER
#undef LK_ATOMIC_BUILTIN
#undef LK_ATOMIC_CAS
