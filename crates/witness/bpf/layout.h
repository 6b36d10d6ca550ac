/* What the programs, the maps and the loader agree on. A test reads the numbers of this file and compares
 * them with src/layout.rs, so each is one line: #define NAME NUMBER. No header of a system is included:
 * the objects are the same wherever the compiler is. */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

/* The datagram (crates/protocols/curp/src/wire.rs). */
#define MAGIC 0x57505243
#define VERSION 1
#define HEADER_BYTES 48
#define CRC_BYTES 4
#define STAMP_BYTES 16
#define DATAGRAM_MAX 1472
#define KEYS_MAX 8
#define ENTRIES_MAX 56
#define ENTRY_BYTES 24

#define OP_RECORD 1
#define OP_GC 2
#define OP_PROBE 3

#define STATUS_ACCEPTED 1
#define STATUS_CONFLICT 2
#define STATUS_FULL 3
#define STATUS_WRONG_LIFE 4
#define STATUS_FROZEN 5
#define STATUS_BAD 6
#define STATUS_BUSY 7
#define STATUS_GC_OK 8
#define STATUS_CLEAN 9
#define STATUS_DIRTY 10

/* The table: sets of a few slots, and a payload for each slot. */
#define VIEWS_MAX 8
#define SETS 4096
#define WAYS 4
#define SLOTS 16384
#define PAYLOAD_BYTES 1416
#define REPORTS_MAX 32
#define STALE_ROUNDS 3
#define PORTS 65536

#define SLOT_EMPTY 0
#define SLOT_BUSY 1
#define SLOT_FULL 2

/* Counters, one an outcome; 1 to 10 are the statuses above. */
#define COUNT_PASSED 0
#define COUNT_LENGTH 11
#define COUNT_FOREIGN 12
#define COUNT_CHECKSUM 13
#define COUNT_FIELD 14
#define COUNT_ANSWER 15
#define COUNT_FAILED 16
#define COUNTERS 17

/* Of the kernel's interface. */
#define XDP_ABORTED 0
#define XDP_DROP 1
#define XDP_PASS 2
#define XDP_TX 3

#define MAP_ARRAY 2
#define MAP_PROG_ARRAY 3
#define MAP_PERCPU_ARRAY 6
#define MAP_QUEUE 22

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
/* A function that the verifier looks at by itself, once. */
#define ALONE __attribute__((noinline))

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*tail_call)(void *ctx, void *map, u32 index) = (void *)12;
static long (*adjust_tail)(struct xdp_md *ctx, int delta) = (void *)65;
static long (*map_push)(void *map, const void *value, u64 flags) = (void *)87;
static long (*map_pop)(void *map, void *value) = (void *)88;
static u64 (*buffer_bytes)(struct xdp_md *ctx) = (void *)188;
static long (*load_bytes)(struct xdp_md *ctx, u32 offset, void *to, u32 length) = (void *)189;
static long (*store_bytes)(struct xdp_md *ctx, u32 offset, void *from, u32 length) = (void *)190;

/* Headers of an IPv4 datagram without options: 42 bytes. */
struct frame {
	u8 to[6];
	u8 from[6];
	u16 kind;
	u8 version_and_length;
	u8 service;
	u16 ip_bytes;
	u16 id;
	u16 fragment;
	u8 hops;
	u8 protocol;
	u16 ip_sum;
	u32 source;
	u32 destination;
	u16 source_port;
	u16 destination_port;
	u16 udp_bytes;
	u16 udp_sum;
} __attribute__((packed, aligned(2)));

#define FRAME_BYTES 42
#define IP_BYTES 20
#define UDP_BYTES 8

/* Whether it is one whole UDP datagram over IPv4: no tag, no option, no fragment. Everything else goes
 * its usual way. */
INLINE int is_datagram(const struct frame *frame)
{
	return frame->kind == __builtin_bswap16(0x0800) && frame->version_and_length == 0x45 &&
	       !(frame->fragment & __builtin_bswap16(0x3fff)) && frame->protocol == 17;
}
