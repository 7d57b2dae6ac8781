/* A relay: the least that any broker of STOMP does for a message, without being one. What it costs is what the kernel
 * and the protocol alone cost; what a broker costs more is the broker.
 *
 * One thread, one epoll loop. A turn reads what has arrived, 64 KiB of each connection, takes SEND frames apart, renders
 * a RECEIPT for the sender and a MESSAGE for the subscriber (for a topic, all of them), and writes once to each
 * connection. Messages without a subscriber are kept in memory until one comes. SENDs with persistent:true are written
 * to a file first, with one fdatasync for the turn; nobody ever reads it. There are no limits, no acknowledgements, no
 * transactions, no ERROR frames, and lines end without CR.
 *
 *     cc -O2 -o relay bench/relay.c && ./relay PORT FILE
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_BYTES = 64 * 1024,
    UNSENT_BYTES_MAX = 4 << 20, /* with more, nothing is read until the client has taken some */
    SLOW_MS_MAX = 10000,        /* a client that takes nothing for so long is let go */
    FILE_BYTES = 16 << 20,      /* written in advance, then again and again from its beginning */
    EVENTS_MAX = 128,
};

typedef struct { /* bytes in the order in which they came: from start to end of what is allocated */
    char *data;
    size_t start, end, size;
} Buffer;

typedef struct Connection {
    int socket;
    Buffer in, out;
    struct Destination *last; /* the one it sent to last */
    bool dirty, waits, gone;  /* it is in the list of this turn; epoll tells when it can be written to; it is closed */
} Connection;

typedef struct Subscription {
    Connection *connection;
    char *id;
    struct Subscription *next;
} Subscription;

typedef struct Destination {
    char *name;
    size_t length;
    bool is_topic;
    Subscription *subscriptions;
    Buffer kept; /* messages without a subscriber: a size_t, then so many bytes */
    struct Destination *next;
} Destination;

typedef struct {
    const char *at;
    size_t length;
} Text;

static int loop, file;
static off_t file_at;
static Buffer unsynced;
static Destination *destinations;
static unsigned long message_id;
static Connection **dirty;
static size_t dirty_count, dirty_size;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- bytes ---- */

static void make_room(Buffer *buffer, size_t more)
{
    if (buffer->size - buffer->end >= more)
        return;
    memmove(buffer->data, buffer->data + buffer->start, buffer->end - buffer->start);
    buffer->end -= buffer->start;
    buffer->start = 0;
    if (buffer->size - buffer->end >= more && buffer->end <= buffer->size / 2)
        return;
    buffer->size = 2 * (buffer->end + more);
    buffer->data = realloc(buffer->data, buffer->size);
    if (buffer->data == NULL)
        fail("realloc");
}

static void append(Buffer *buffer, const char *bytes, size_t length)
{
    make_room(buffer, length);
    memcpy(buffer->data + buffer->end, bytes, length);
    buffer->end += length;
}

static void append_text(Buffer *buffer, const char *text)
{
    append(buffer, text, strlen(text));
}

/* The value of a header in the lines of a frame; `name` begins with the line feed before it and ends with the colon. */
static Text header(Text head, const char *name)
{
    Text value = {NULL, 0};
    const char *found = memmem(head.at, head.length, name, strlen(name));
    if (found != NULL) {
        value.at = found + strlen(name);
        value.length = (size_t)((char *)memchr(value.at, '\n', head.length) - value.at);
    }
    return value;
}

/* ---- what leaves ---- */

static Buffer *output(Connection *connection)
{
    if (!connection->dirty) {
        connection->dirty = true;
        if (dirty_count == dirty_size) {
            dirty_size = dirty_size ? 2 * dirty_size : 64;
            dirty = realloc(dirty, dirty_size * sizeof *dirty);
            if (dirty == NULL)
                fail("realloc");
        }
        dirty[dirty_count++] = connection;
    }
    return &connection->out;
}

/* A MESSAGE of what its SEND had behind the command, in two parts: a receipt header between them was left out. */
static void deliver(Subscription *to, Text first, Text second)
{
    char id[32];
    Buffer *out = output(to->connection);
    append_text(out, "MESSAGE\nsubscription:");
    append_text(out, to->id);
    append_text(out, "\nmessage-id:");
    append(out, id, (size_t)sprintf(id, "%lu\n", ++message_id));
    append(out, first.at, first.length);
    append(out, second.at, second.length);
}

static void keep(Destination *destination, Text first, Text second)
{
    size_t length = first.length + second.length;
    append(&destination->kept, (char *)&length, sizeof length);
    append(&destination->kept, first.at, first.length);
    append(&destination->kept, second.at, second.length);
}

static void hand_over_kept(Destination *destination)
{
    Buffer *kept = &destination->kept;
    Text nothing = {NULL, 0}, whole;
    while (kept->start < kept->end) {
        memcpy(&whole.length, kept->data + kept->start, sizeof whole.length);
        whole.at = kept->data + kept->start + sizeof whole.length;
        deliver(destination->subscriptions, whole, nothing);
        kept->start += sizeof whole.length + whole.length;
    }
    free(kept->data);
    memset(kept, 0, sizeof *kept);
}

/* ---- frames ---- */

static Destination *destination_of(Connection *connection, Text name)
{
    Destination *found = connection->last;
    if (found != NULL && found->length == name.length && memcmp(found->name, name.at, name.length) == 0)
        return found;
    for (found = destinations; found != NULL; found = found->next)
        if (found->length == name.length && memcmp(found->name, name.at, name.length) == 0)
            return connection->last = found;
    found = calloc(1, sizeof *found);
    if (found == NULL)
        fail("calloc");
    found->name = strndup(name.at, name.length);
    found->length = name.length;
    found->is_topic = strncmp(found->name, "/topic/", 7) == 0;
    found->next = destinations;
    return connection->last = destinations = found;
}

static void on_send(Connection *connection, Text frame, Text head)
{
    Text receipt = header(head, "\nreceipt:");
    Text first, second = {NULL, 0};
    Destination *destination = destination_of(connection, header(head, "\ndestination:"));
    first.at = frame.at + strlen("SEND\n");
    first.length = (size_t)(frame.at + frame.length - first.at);
    if (receipt.at != NULL) {
        second.at = receipt.at + receipt.length + 1;
        second.length = (size_t)(frame.at + frame.length - second.at);
        first.length = (size_t)(receipt.at - strlen("receipt:") - first.at);
    }
    if (memmem(head.at, head.length, "\npersistent:true\n", 17) != NULL)
        append(&unsynced, frame.at, frame.length);
    if (destination->subscriptions == NULL && !destination->is_topic)
        keep(destination, first, second);
    for (Subscription *one = destination->subscriptions; one != NULL; one = destination->is_topic ? one->next : NULL)
        deliver(one, first, second);
}

static void on_subscribe(Connection *connection, Text head)
{
    Destination *destination = destination_of(connection, header(head, "\ndestination:"));
    Text id = header(head, "\nid:");
    Subscription *made = calloc(1, sizeof *made);
    if (made == NULL)
        fail("calloc");
    made->connection = connection;
    made->id = strndup(id.at == NULL ? "" : id.at, id.length);
    made->next = destination->subscriptions;
    destination->subscriptions = made;
    hand_over_kept(destination);
}

static void on_frame(Connection *connection, Text frame, Text head)
{
    Text receipt = header(head, "\nreceipt:");
    if (memcmp(frame.at, "SEND\n", 5) == 0)
        on_send(connection, frame, head);
    else if (memcmp(frame.at, "SUBSCRIBE\n", 10) == 0)
        on_subscribe(connection, head);
    else if (memcmp(frame.at, "CONNECT\n", 8) == 0)
        append(output(connection), "CONNECTED\nversion:1.2\n\n", 24);
    if (receipt.at != NULL) {
        Buffer *out = output(connection);
        append_text(out, "RECEIPT\nreceipt-id:");
        append(out, receipt.at, receipt.length);
        append(out, "\n\n", 3);
    }
}

/* All whole frames that a connection has sent. */
static void take_frames(Connection *connection)
{
    Buffer *in = &connection->in;
    while (in->start < in->end) {
        Text frame = {in->data + in->start, in->end - in->start}, head, length;
        const char *body, *end;
        if (*frame.at == '\n') { /* a heart-beat */
            in->start++;
            continue;
        }
        body = memmem(frame.at, frame.length, "\n\n", 2);
        if (body == NULL)
            return;
        body += 2;
        head.at = frame.at;
        head.length = (size_t)(body - 1 - frame.at);
        length = header(head, "\ncontent-length:");
        if (length.at == NULL)
            end = memchr(body, 0, (size_t)(frame.at + frame.length - body));
        else
            end = body + strtoul(length.at, NULL, 10);
        if (end == NULL || end >= frame.at + frame.length)
            return;
        frame.length = (size_t)(end + 1 - frame.at);
        on_frame(connection, frame, head);
        in->start += frame.length;
    }
    in->start = in->end = 0;
}

/* ---- connections ---- */

static void watch(Connection *connection, int change, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = connection};
    if (epoll_ctl(loop, change, connection->socket, &event) < 0)
        fail("epoll_ctl");
}

static void accept_from(int server)
{
    int one = 1, accepted = accept4(server, NULL, NULL, SOCK_NONBLOCK);
    if (accepted < 0)
        return;
    setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    Connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        fail("calloc");
    connection->socket = accepted;
    watch(connection, EPOLL_CTL_ADD, EPOLLIN);
}

static void let_go(Connection *connection)
{
    output(connection); /* it is freed when the turn ends */
    connection->gone = true;
    close(connection->socket);
    for (Destination *destination = destinations; destination != NULL; destination = destination->next)
        for (Subscription **place = &destination->subscriptions, *one; (one = *place) != NULL;)
            if (one->connection == connection) {
                *place = one->next;
                free(one->id);
                free(one);
            } else
                place = &one->next;
}

static void read_from(Connection *connection)
{
    make_room(&connection->in, READ_BYTES);
    ssize_t count = recv(connection->socket, connection->in.data + connection->in.end, READ_BYTES, 0);
    if (count > 0) {
        connection->in.end += (size_t)count;
        take_frames(connection);
    } else if (count == 0 || errno != EAGAIN)
        let_go(connection);
}

static void write_to(Connection *connection)
{
    Buffer *out = &connection->out;
    while (out->start < out->end) {
        ssize_t count = send(connection->socket, out->data + out->start, out->end - out->start, MSG_NOSIGNAL);
        struct pollfd wait = {.fd = connection->socket, .events = POLLOUT};
        if (count > 0)
            out->start += (size_t)count;
        else if (errno != EAGAIN) {
            let_go(connection);
            return;
        } else if (out->end - out->start <= UNSENT_BYTES_MAX)
            break;
        else if (poll(&wait, 1, SLOW_MS_MAX) <= 0) {
            let_go(connection);
            return;
        }
    }
    if (out->start == out->end)
        out->start = out->end = 0;
    bool waits = out->end > 0;
    if (waits != connection->waits)
        watch(connection, EPOLL_CTL_MOD, waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
    connection->waits = waits;
}

/* ---- a turn ---- */

static void sync_file(void)
{
    size_t length = unsynced.end - unsynced.start;
    if (length == 0)
        return;
    if (file_at + (off_t)length > FILE_BYTES)
        file_at = 0;
    if (pwrite(file, unsynced.data + unsynced.start, length, file_at) != (ssize_t)length || fdatasync(file) < 0)
        fail("write");
    file_at += (off_t)length;
    unsynced.start = unsynced.end = 0;
}

static void turn(int server)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(loop, events, EVENTS_MAX, -1);
    for (int place = 0; place < count; place++) {
        Connection *connection = events[place].data.ptr;
        if (connection == NULL)
            accept_from(server);
        else if (events[place].events & ~(uint32_t)EPOLLOUT)
            read_from(connection);
        else
            output(connection);
    }
    sync_file();
    for (size_t place = 0; place < dirty_count; place++) {
        Connection *connection = dirty[place];
        if (!connection->gone)
            write_to(connection);
        connection->dirty = false;
        if (connection->gone) {
            free(connection->in.data);
            free(connection->out.data);
            free(connection);
        }
    }
    dirty_count = 0;
}

static int listen_on(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    int one = 1, server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(server, (struct sockaddr *)&address, sizeof address) < 0 || listen(server, 1024) < 0)
        fail("listen");
    if (epoll_ctl(loop, EPOLL_CTL_ADD, server, &event) < 0)
        fail("epoll_ctl");
    return server;
}

int main(int argc, char **argv)
{
    static char zeros[1 << 20];
    if (argc != 3) {
        fprintf(stderr, "relay PORT FILE\n");
        return 2;
    }
    file = open(argv[2], O_CREAT | O_RDWR | O_TRUNC, 0600);
    for (off_t at = 0; at < FILE_BYTES; at += (off_t)sizeof zeros)
        if (pwrite(file, zeros, sizeof zeros, at) != (ssize_t)sizeof zeros)
            fail(argv[2]);
    if (fsync(file) < 0)
        fail(argv[2]);
    loop = epoll_create1(0);
    int server = listen_on(atoi(argv[1]));
    for (;;)
        turn(server);
}
