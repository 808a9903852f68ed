// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/watchdog.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/cli.h"

static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool has_thread, is_on, has_expired;
  struct timespec deadline;
  char what[512];
  double seconds;
  tl_watchdog_fn *expired;
  void *user;
} dog = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool is_over(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec > dog.deadline.tv_sec || (now.tv_sec == dog.deadline.tv_sec && now.tv_nsec >= dog.deadline.tv_nsec);
}

static void *watch(void *unused) {
  (void)unused;
  pthread_mutex_lock(&dog.mutex);
  while (!dog.is_on || !is_over()) {
    if (dog.is_on)
      pthread_cond_timedwait(&dog.changed, &dog.mutex, &dog.deadline);
    else
      pthread_cond_wait(&dog.changed, &dog.mutex);
  }
  dog.has_expired = true;
  pthread_mutex_unlock(&dog.mutex);
  dog.expired(dog.user, dog.what, dog.seconds);
  fflush(NULL);
  _exit(TL_EXIT_FAILURE);
}

// Signals are for the other threads.
static void create_thread(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&dog.changed, &attributes);
  pthread_condattr_destroy(&attributes);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  dog.has_thread = pthread_create(&thread, NULL, watch, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (dog.has_thread) pthread_detach(thread);
}

// Whoever comes too late waits for the end of the process.
static void lock_unless_expired(void) {
  pthread_mutex_lock(&dog.mutex);
  while (dog.has_expired) {
    pthread_mutex_unlock(&dog.mutex);
    pause();
    pthread_mutex_lock(&dog.mutex);
  }
}

void tl_watchdog_start(const char *what, double seconds, tl_watchdog_fn *expired, void *user) {
  lock_unless_expired();
  if (!dog.has_thread) create_thread();
  clock_gettime(CLOCK_MONOTONIC, &dog.deadline);
  double whole = floor(seconds);
  dog.deadline.tv_sec += (time_t)whole;
  dog.deadline.tv_nsec += (long)((seconds - whole) * 1e9);
  if (dog.deadline.tv_nsec >= 1000000000) {
    dog.deadline.tv_nsec -= 1000000000;
    dog.deadline.tv_sec++;
  }
  snprintf(dog.what, sizeof dog.what, "%s", what);
  dog.seconds = seconds;
  dog.expired = expired;
  dog.user = user;
  dog.is_on = true;
  if (dog.has_thread) pthread_cond_signal(&dog.changed);
  pthread_mutex_unlock(&dog.mutex);
}

void tl_watchdog_stop(void) {
  lock_unless_expired();
  dog.is_on = false;
  if (dog.has_thread) pthread_cond_signal(&dog.changed);
  pthread_mutex_unlock(&dog.mutex);
}
