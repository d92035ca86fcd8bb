/* The clock is ahead or behind by a number of seconds. What waits until a time of day goes on doing so by the real clock. */
#define SHIM "skew"
#include "shim.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/time.h>
#include <time.h>

#define MONOTONIC_AT_MOST 1000000000 /* seconds: a deadline beyond that is a time of day */

static bool is_wall(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

/* A deadline that was reckoned from the clock this shim shows, by the real one. */
static struct timespec real(const struct timespec *deadline)
{
	struct timespec t = *deadline;

	if (t.tv_sec > MONOTONIC_AT_MOST)
		t.tv_sec -= strength();
	return t;
}

SHOWN int clock_gettime(clockid_t clock, struct timespec *t)
{
	int result = REAL(clock_gettime)(clock, t);

	if (result == 0 && is_wall(clock))
		t->tv_sec += strength();
	return result;
}

SHOWN time_t time(time_t *t)
{
	time_t now = REAL(time)(NULL) + strength();

	if (t != NULL)
		*t = now;
	return now;
}

SHOWN int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	int result = REAL(gettimeofday)(t, zone);

	if (result == 0)
		t->tv_sec += strength();
	return result;
}

SHOWN int timespec_get(struct timespec *t, int base)
{
	int result = REAL(timespec_get)(t, base);

	if (result == TIME_UTC)
		t->tv_sec += strength();
	return result;
}

SHOWN int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
				 const struct timespec *restrict deadline)
{
	struct timespec t = real(deadline);

	return REAL(pthread_cond_timedwait)(c, m, &t);
}

SHOWN int pthread_mutex_timedlock(pthread_mutex_t *restrict m, const struct timespec *restrict deadline)
{
	struct timespec t = real(deadline);

	return REAL(pthread_mutex_timedlock)(m, &t);
}

SHOWN int sem_timedwait(sem_t *restrict s, const struct timespec *restrict deadline)
{
	struct timespec t = real(deadline);

	return REAL(sem_timedwait)(s, &t);
}

SHOWN int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left)
{
	struct timespec t = *wanted;

	if ((flags & TIMER_ABSTIME) && is_wall(clock))
		t.tv_sec -= strength();
	return REAL(clock_nanosleep)(clock, flags, &t, left);
}
