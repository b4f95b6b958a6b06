// Fibres: a stack and a saved stack pointer each, switched by hand.
//
// swapcontext saves the signal mask by a system call and is some fifty times
// slower; it serves only where no assembly is written.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(LK_ASAN)
extern "C" void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size);
extern "C" void __sanitizer_finish_switch_fiber(void *save, const void **bottom, size_t *size);
#endif

#if defined(__x86_64__) || defined(__aarch64__)
#define LK_ASSEMBLY_SWITCH 1
#else
#include <ucontext.h>
#endif

extern "C" void lk_fibre_main();

struct lk_stack_context {
#if LK_ASSEMBLY_SWITCH
  void *pointer;
#else
  ucontext_t context;
#endif
#if defined(LK_ASAN)
  void *fake_stack;
  const void *bottom;
  size_t size;
#endif
};

#if LK_ASSEMBLY_SWITCH
// Both in switch.cpp: the frame that is popped, in words, and which of them is
// the address to go on at.
extern "C" void lk_switch_stacks(void **save, void *to);
#if defined(__x86_64__)
constexpr size_t lk_frame_words = 8;  // one spare: a function starts at 8 modulo 16
constexpr size_t lk_resume_word = 6;
#else
constexpr size_t lk_frame_words = 20;
constexpr size_t lk_resume_word = 11;
#endif
#endif

// Makes `context` start lk_fibre_main on the stack that ends at `top`.
static inline void lk_prepare(lk_stack_context *context, char *bottom, char *top) {
#if LK_ASSEMBLY_SWITCH
  uintptr_t *frame = reinterpret_cast<uintptr_t *>(top) - lk_frame_words;
  frame[lk_resume_word] = reinterpret_cast<uintptr_t>(&lk_fibre_main);
  context->pointer = frame;
#else
  getcontext(&context->context);
  context->context.uc_stack.ss_sp = bottom;
  context->context.uc_stack.ss_size = static_cast<size_t>(top - bottom);
  context->context.uc_link = nullptr;
  makecontext(&context->context, lk_fibre_main, 0);
#endif
#if defined(LK_ASAN)
  context->fake_stack = nullptr;
  context->bottom = bottom;
  context->size = static_cast<size_t>(top - bottom);
#else
  (void)bottom;
#endif
}

// `last` says that nobody will ever switch back to `from`.
static inline void lk_switch(lk_stack_context *from, lk_stack_context *to, bool last = false) {
#if defined(LK_ASAN)
  __sanitizer_start_switch_fiber(last ? nullptr : &from->fake_stack, to->bottom, to->size);
#else
  (void)last;
#endif
#if LK_ASSEMBLY_SWITCH
  lk_switch_stacks(&from->pointer, to->pointer);
#else
  swapcontext(&from->context, &to->context);
#endif
#if defined(LK_ASAN)
  __sanitizer_finish_switch_fiber(from->fake_stack, nullptr, nullptr);
#endif
}
