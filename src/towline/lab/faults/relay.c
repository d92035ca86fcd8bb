/*
 * Stands between clients and a server of the same host and lets every byte wait.
 * usage: relay NAME LISTEN-PORT ADDRESS PORT MILLISECONDS BYTES-PER-SECOND
 * MILLISECONDS are added to a round trip, half of them each way; 0 bytes per second means as fast as they come.
 * NAME becomes the process's short name. A process per connection, which ends with it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 16384
#define CHUNKS 64

/* Bytes under way in one direction; a chunk of no bytes is the end of the stream. */
struct pipe {
	int from, to;
	bool heard_end, told_end;
	size_t first, count;
	int64_t free_at; /* microseconds: when the last byte so far is through */
	struct {
		int64_t due;
		size_t length, sent;
		char bytes[CHUNK];
	} chunks[CHUNKS];
};

static int64_t delay, rate; /* microseconds one way, bytes per second */

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void hear(struct pipe *p)
{
	size_t at = (p->first + p->count) % CHUNKS;
	ssize_t got = recv(p->from, p->chunks[at].bytes, CHUNK, MSG_DONTWAIT);
	int64_t start = now() + delay;

	if (got < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return;
		exit(0);
	}
	p->heard_end = got == 0;
	if (start < p->free_at)
		start = p->free_at;
	p->free_at = start + (rate > 0 ? got * 1000000 / rate : 0);
	p->chunks[at].due = p->free_at;
	p->chunks[at].length = (size_t)got;
	p->chunks[at].sent = 0;
	p->count++;
}

static void tell(struct pipe *p)
{
	ssize_t sent = 0;
	size_t at = p->first;

	if (p->chunks[at].length == 0) {
		shutdown(p->to, SHUT_WR);
		p->told_end = true;
	} else {
		sent = send(p->to, p->chunks[at].bytes + p->chunks[at].sent, p->chunks[at].length - p->chunks[at].sent,
			    MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0) {
			if (errno == EAGAIN || errno == EINTR)
				return;
			exit(0);
		}
		p->chunks[at].sent += (size_t)sent;
	}
	if (p->chunks[at].sent == p->chunks[at].length) {
		p->first = (p->first + 1) % CHUNKS;
		p->count--;
	}
}

static bool is_due(const struct pipe *p)
{
	return p->count > 0 && p->chunks[p->first].due <= now();
}

static int patience(const struct pipe pipes[2])
{
	int64_t wait = -1, left;

	for (int i = 0; i < 2; i++) {
		if (pipes[i].count == 0)
			continue;
		left = pipes[i].chunks[pipes[i].first].due - now();
		if (left > 0 && (wait < 0 || left < wait))
			wait = left;
	}
	return wait < 0 ? -1 : (int)(wait / 1000 + 1);
}

static void serve(int client, int server)
{
	static struct pipe pipes[2];

	pipes[0].from = pipes[1].to = client;
	pipes[0].to = pipes[1].from = server;
	while (!pipes[0].told_end || !pipes[1].told_end) {
		struct pollfd watched[4];

		for (int i = 0; i < 2; i++) {
			bool room = !pipes[i].heard_end && pipes[i].count < CHUNKS;

			watched[i] = (struct pollfd){ .fd = room ? pipes[i].from : -1, .events = POLLIN };
			watched[i + 2] = (struct pollfd){ .fd = is_due(&pipes[i]) ? pipes[i].to : -1, .events = POLLOUT };
		}
		if (poll(watched, 4, patience(pipes)) < 0 && errno != EINTR)
			return;
		for (int i = 0; i < 2; i++) {
			if (watched[i].revents)
				hear(&pipes[i]);
			if (watched[i + 2].revents && pipes[i].count > 0)
				tell(&pipes[i]);
		}
	}
}

static int connect_to(const char *address, int port)
{
	struct sockaddr_in server = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, address, &server.sin_addr);
	return connect(fd, (struct sockaddr *)&server, sizeof(server)) < 0 ? -1 : fd;
}

static int listen_on(int port)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&here, sizeof(here)) < 0 || listen(fd, 128) < 0)
		return -1;
	return fd;
}

int main(int argc, char **argv)
{
	int listener, client;

	if (argc != 7)
		return 64;
	prctl(PR_SET_NAME, argv[1]);
	delay = atol(argv[5]) * 1000 / 2;
	rate = atol(argv[6]);
	signal(SIGCHLD, SIG_IGN);
	listener = listen_on(atoi(argv[2]));
	if (listener < 0) {
		perror("relay");
		return 1;
	}
	while ((client = accept(listener, NULL, NULL)) >= 0 || errno == EINTR) {
		if (client >= 0 && fork() == 0) {
			int server;

			close(listener);
			usleep((useconds_t)(2 * delay)); /* the handshake, which the kernel has answered already */
			server = connect_to(argv[3], atoi(argv[4]));
			if (server >= 0)
				serve(client, server);
			_exit(0);
		}
		if (client >= 0)
			close(client);
	}
	return 1;
}
