/* Sets the wall clock of one process: what CLOCK_REALTIME says is moved by the seconds that stand in the file named by
 * WALL_CLOCK_OFFSET, read again each time. All other clocks are the machine's. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
	char text[32] = {0};
	const char *path = getenv("WALL_CLOCK_OFFSET");
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (file < 0)
		return 0;
	ssize_t length = read(file, text, sizeof text - 1);
	close(file);
	return length > 0 ? strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
	int result = (int)syscall(SYS_clock_gettime, clock, time);
	if (result == 0 && clock == CLOCK_REALTIME)
		time->tv_sec += offset();
	return result;
}
