/* A witness of CURP in the data plane: records, collections and probes are answered here, before any
 * process sees them (ARGUS, APNet 2019, with XDP in place of a SmartNIC).
 *
 * What a table promises is written in crates/protocols/curp/src/table.rs, and src/layout.rs says what lies
 * where. Several processors may be in here at once:
 *
 * - A set of slots has a lock. Everything that reads or changes slots holds it, one set at a time.
 * - A record first takes a slot of each of its keys (BUSY), then writes its payload into each, then makes
 *   them FULL. A slot that is BUSY belongs to the processor that took it, until that one gives it back:
 *   nobody else takes it, whatever has become of its view.
 * - Whether a view is frozen is read with the set's lock held, each time. Whoever has frozen a view and
 *   then reads a set with its lock misses no record that was accepted.
 * - A slot names the view that it is of by a generation, which no other view ever has: the slots of a
 *   view that has ended are free without being cleared. */

#include "layout.h"

struct bpf_spin_lock {
	u32 val;
};

static void (*lock)(struct bpf_spin_lock *) = (void *)93;
static void (*unlock)(struct bpf_spin_lock *) = (void *)94;

struct header {
	u32 magic;
	u8 version;
	u8 op;
	u8 status;
	u8 count;
	u64 epoch;
	u32 wlv;
	u16 length;
	u16 flags;
	u64 token;
	u64 client;
	u64 seq;
};

struct entry {
	u64 hash;
	u64 client;
	u64 seq;
};

struct view {
	u64 epoch;
	u64 record_token;
	u64 gc_token;
	u32 wlv;
	u32 generation;
	u8 live;
	u8 frozen;
	u8 unused[6];
};

struct views {
	struct view of[VIEWS_MAX];
};

/* Without a payload when EMPTY; then its names are a tombstone, or nobody's. */
struct slot {
	u64 hash;
	u64 client;
	u64 seq;
	/* When it was recorded, reported as stale, or collected. */
	u64 round;
	u32 generation;
	u16 length;
	u8 state;
	/* Collected while BUSY. */
	u8 drop;
};

struct set {
	struct bpf_spin_lock lock;
	u32 unused;
	struct slot slots[WAYS];
};

struct payload {
	u8 bytes[PAYLOAD_BYTES];
};

struct config {
	/* In the network's order; an address of 0 is any. */
	u32 address;
	u16 port;
	u16 unused;
	/* Of the loader alone. */
	u64 cluster;
	u64 life;
	u64 layout;
};

struct report {
	u32 generation;
	u32 unused;
	struct entry entry;
};

struct crc_tables {
	u32 of[8][256];
};

/* What one processor works on. */
struct work {
	union {
		struct header header;
		u64 words[DATAGRAM_MAX / 8];
		u8 bytes[DATAGRAM_MAX];
	};
	u64 round;
	u32 view;
	u32 generation;
	u32 way[KEYS_MAX];
	/* What was in the slots that were taken. */
	struct slot before[KEYS_MAX];
	/* What was found under the keys. */
	u32 taken;
	u32 tombstone;
	u32 own;
	u32 busy;
	u32 conflict;
	u32 full;
	u32 frozen;
	struct report report;
};

#define ARRAY_OF(what, kind, entries, name)    \
	struct {                               \
		int (*type)[kind];             \
		int (*max_entries)[entries];   \
		u32 *key;                      \
		what *value;                   \
	} name SEC(".maps")

ARRAY_OF(struct config, MAP_ARRAY, 1, config);
ARRAY_OF(struct views, MAP_ARRAY, 1, views);
ARRAY_OF(u64, MAP_ARRAY, VIEWS_MAX, rounds);
ARRAY_OF(struct set, MAP_ARRAY, SETS, sets);
ARRAY_OF(struct payload, MAP_ARRAY, SLOTS, payloads);
ARRAY_OF(struct crc_tables, MAP_ARRAY, 1, crc_tables);
ARRAY_OF(u64, MAP_PERCPU_ARRAY, COUNTERS, counters);
ARRAY_OF(struct work, MAP_PERCPU_ARRAY, 1, works);

struct {
	int (*type)[MAP_QUEUE];
	int (*max_entries)[REPORTS_MAX];
	struct report *value;
} reports SEC(".maps");

INLINE void *only(void *map)
{
	u32 zero = 0;
	return map_lookup(map, &zero);
}

INLINE void count(u32 what)
{
	u64 *counter = map_lookup(&counters, &what);
	if (counter)
		*counter += 1;
}

INLINE int dropped(u32 why)
{
	count(why);
	return XDP_DROP;
}

/* CRC-32C of the first bytes of the work: eight at a time. */
ALONE u32 crc_of(u32 length)
{
	struct work *work = only(&works);
	struct crc_tables *tables = only(&crc_tables);
	u32 crc = ~0U;
	u32 words = length >> 3;
	if (!work || !tables || length > DATAGRAM_MAX)
		return 0;
	for (u32 i = 0; i < DATAGRAM_MAX / 8; i++) {
		if (i >= words)
			break;
		u64 word = work->words[i] ^ crc;
		crc = tables->of[7][word & 255] ^ tables->of[6][word >> 8 & 255] ^
		      tables->of[5][word >> 16 & 255] ^ tables->of[4][word >> 24 & 255] ^
		      tables->of[3][word >> 32 & 255] ^ tables->of[2][word >> 40 & 255] ^
		      tables->of[1][word >> 48 & 255] ^ tables->of[0][word >> 56];
	}
	for (u32 i = 0; i < 7; i++) {
		u32 at = words * 8 + i;
		if (at >= length || at >= DATAGRAM_MAX)
			break;
		crc = tables->of[0][(crc ^ work->bytes[at]) & 255] ^ crc >> 8;
	}
	return ~crc;
}

INLINE int is_live(const struct views *views, u32 generation)
{
	int live = 0;
	for (int i = 0; i < VIEWS_MAX; i++)
		live |= (views->of[i].generation == generation) & views->of[i].live;
	return live;
}

INLINE int is_of(const struct slot *slot, u64 hash, u64 client, u64 seq)
{
	return slot->hash == hash && slot->client == client && slot->seq == seq;
}

/* Looks under one key, and takes a slot when it may. What it finds is kept in the work. */
ALONE int look(u32 key, u32 takes)
{
	struct work *work = only(&works);
	struct views *all = only(&views);
	if (!work || !all || key >= KEYS_MAX)
		return 1;
	u64 hash = work->words[HEADER_BYTES / 8 + key];
	u32 index = hash & (SETS - 1);
	struct set *set = map_lookup(&sets, &index);
	if (!set)
		return 1;
	u64 client = work->header.client, seq = work->header.seq, round = work->round;
	u32 view = work->view & (VIEWS_MAX - 1), generation = work->generation;
	u32 tombstone = 0, own = 0, busy = 0, conflict = 0, stale = 0, free = WAYS;
	u64 oldest = ~0ULL, stale_client = 0, stale_seq = 0;

	lock(&set->lock);
	u32 frozen = *(volatile u8 *)&all->of[view].frozen;
	for (u32 way = 0; way < WAYS; way++) {
		struct slot *slot = &set->slots[way];
		u32 ours = slot->generation == generation;
		u64 age = ours ? slot->round : 0;
		u32 kept = slot->state != SLOT_EMPTY;
		if (slot->state == SLOT_FULL && !ours)
			kept = is_live(all, slot->generation);
		if (!kept) {
			tombstone |= ours && is_of(slot, hash, client, seq);
			/* The oldest tombstone goes first. */
			if (age < oldest) {
				oldest = age;
				free = way;
			}
			continue;
		}
		if (!ours || slot->hash != hash)
			continue;
		if (slot->client == client && slot->seq == seq) {
			own |= slot->state == SLOT_FULL;
			busy |= slot->state == SLOT_BUSY;
			continue;
		}
		conflict = 1;
		if (slot->state == SLOT_FULL && (s64)(round - slot->round) > STALE_ROUNDS && !frozen) {
			stale = 1;
			stale_client = slot->client;
			stale_seq = slot->seq;
			slot->round = round;
		}
	}
	takes = takes && !(frozen | tombstone | own | busy | conflict);
	if (takes && free < WAYS) {
		struct slot *slot = &set->slots[free & (WAYS - 1)];
		work->before[key] = *slot;
		slot->hash = hash;
		slot->client = client;
		slot->seq = seq;
		slot->round = round;
		slot->generation = generation;
		slot->length = work->header.length;
		slot->state = SLOT_BUSY;
		slot->drop = 0;
	}
	unlock(&set->lock);

	if (takes && free < WAYS) {
		work->way[key] = free;
		work->taken |= 1 << key;
	}
	work->frozen |= frozen;
	work->tombstone |= tombstone;
	work->own |= own;
	work->busy |= busy;
	work->conflict |= conflict;
	work->full |= takes && free >= WAYS;
	if (stale) {
		work->report.generation = generation;
		work->report.entry.hash = hash;
		work->report.entry.client = stale_client;
		work->report.entry.seq = stale_seq;
		map_push(&reports, &work->report, 0); /* when there is room: it is reported again later */
	}
	return 0;
}

/* Ends what was begun with a slot of one key: keeps it when it may, else gives it back as it was. Only a
 * collection leaves names behind: of a record that nobody keeps they would answer ACCEPTED. */
ALONE int settle(u32 key, u32 keeps)
{
	struct work *work = only(&works);
	struct views *all = only(&views);
	if (!work || !all || key >= KEYS_MAX)
		return 1;
	u32 index = work->words[HEADER_BYTES / 8 + key] & (SETS - 1);
	struct set *set = map_lookup(&sets, &index);
	if (!set)
		return 1;
	u32 view = work->view & (VIEWS_MAX - 1), generation = work->generation;
	u64 round = work->round;
	struct slot *slot = &set->slots[work->way[key] & (WAYS - 1)];

	lock(&set->lock);
	u32 frozen = *(volatile u8 *)&all->of[view].frozen;
	keeps = keeps && !frozen && is_live(all, generation);
	if (keeps && slot->drop) {
		slot->state = SLOT_EMPTY;
		slot->round = round;
	} else if (keeps) {
		slot->state = SLOT_FULL;
	} else {
		*slot = work->before[key];
	}
	unlock(&set->lock);
	return !keeps;
}

/* Frees the slot of one entry of a collection. */
ALONE int collect(u32 number)
{
	struct work *work = only(&works);
	struct views *all = only(&views);
	if (!work || !all || number >= ENTRIES_MAX)
		return 1;
	u32 at = HEADER_BYTES / 8 + number * 3;
	if (at + 3 > DATAGRAM_MAX / 8)
		return 1;
	u64 hash = work->words[at], client = work->words[at + 1], seq = work->words[at + 2];
	u32 index = hash & (SETS - 1);
	struct set *set = map_lookup(&sets, &index);
	if (!set)
		return 1;
	u32 view = work->view & (VIEWS_MAX - 1), generation = work->generation;
	u64 round = work->round;

	lock(&set->lock);
	u32 frozen = *(volatile u8 *)&all->of[view].frozen;
	for (u32 way = 0; way < WAYS; way++) {
		struct slot *slot = &set->slots[way];
		if (frozen || slot->generation != generation || !is_of(slot, hash, client, seq))
			continue;
		if (slot->state == SLOT_BUSY) {
			slot->drop = 1;
		} else {
			slot->state = SLOT_EMPTY;
			slot->round = round;
		}
	}
	unlock(&set->lock);
	work->frozen |= frozen;
	return 0;
}

/* Writes the next report over a question's entry, when it is of this view and its record still there. */
ALONE u32 write_report(u32 number)
{
	struct work *work = only(&works);
	if (!work || number >= REPORTS_MAX || map_pop(&reports, &work->report))
		return 0;
	struct entry entry = work->report.entry;
	u32 index = entry.hash & (SETS - 1), generation = work->generation, there = 0;
	struct set *set = map_lookup(&sets, &index);
	if (!set || work->report.generation != generation)
		return 0;
	lock(&set->lock);
	for (u32 way = 0; way < WAYS; way++) {
		struct slot *slot = &set->slots[way];
		there |= slot->generation == generation && slot->state == SLOT_FULL &&
			 is_of(slot, entry.hash, entry.client, entry.seq);
	}
	unlock(&set->lock);
	u32 at = HEADER_BYTES / 8 + number * 3;
	if (!there)
		return 0;
	work->words[at] = entry.hash;
	work->words[at + 1] = entry.client;
	work->words[at + 2] = entry.seq;
	return 1;
}

INLINE int copy_payload(struct xdp_md *ctx, struct work *work, u32 key)
{
	u32 index = work->words[HEADER_BYTES / 8 + key] & (SETS - 1);
	u32 slot = index * WAYS + (work->way[key] & (WAYS - 1));
	struct payload *payload = map_lookup(&payloads, &slot);
	u32 length = work->header.length;
	if (!payload || length < STAMP_BYTES || length > PAYLOAD_BYTES)
		return 1;
	u32 at = FRAME_BYTES + HEADER_BYTES + work->header.count * 8;
	return load_bytes(ctx, at, payload->bytes, length) != 0;
}

INLINE int has_distinct_keys(const struct work *work, u32 keys)
{
	for (u32 one = 1; one < KEYS_MAX; one++) {
		if (one >= keys)
			break;
		for (u32 other = 0; other < KEYS_MAX; other++) {
			if (other >= one)
				break;
			if (work->words[HEADER_BYTES / 8 + one] == work->words[HEADER_BYTES / 8 + other])
				return 0;
		}
	}
	return 1;
}

/* Keeps a request under all of its keys, or under none. */
INLINE u32 record(struct xdp_md *ctx, struct work *work)
{
	u32 keys = work->header.count, failed = 0;
	if (!keys || keys > KEYS_MAX || !work->header.client || !work->header.length ||
	    !has_distinct_keys(work, keys))
		return STATUS_BAD;
	for (u32 key = 0; key < KEYS_MAX; key++) {
		if (key >= keys)
			break;
		/* After the first obstacle it only looks, to say which one it is. */
		failed |= look(key, !(failed | work->tombstone | work->own | work->busy | work->conflict |
				      work->full | work->frozen));
	}
	u32 keeps = !(failed | work->tombstone | work->own | work->busy | work->conflict | work->full |
		      work->frozen);
	for (u32 key = 0; key < KEYS_MAX; key++) {
		if (key >= keys || !keeps)
			break;
		failed |= copy_payload(ctx, work, key);
	}
	keeps = keeps && !failed;
	u32 lost = 0;
	for (u32 key = 0; key < KEYS_MAX; key++) {
		if (key >= keys)
			break;
		if (work->taken & 1 << key)
			lost |= settle(key, keeps && !lost);
	}
	if (failed)
		return STATUS_BUSY;
	if (work->frozen || (keeps && lost))
		return STATUS_FROZEN;
	if (work->tombstone)
		return STATUS_ACCEPTED; /* on all backups already */
	if (work->conflict)
		return STATUS_CONFLICT;
	if (work->busy)
		return STATUS_BUSY;
	if (work->full)
		return STATUS_FULL;
	return STATUS_ACCEPTED;
}

/* Whether any of the keys has a record. */
INLINE u32 probe(struct work *work)
{
	u32 keys = work->header.count, failed = 0;
	u64 client = work->header.client;
	work->header.client = 0; /* nobody's: every record is another's */
	for (u32 key = 0; key < KEYS_MAX; key++) {
		if (key >= keys)
			break;
		failed |= look(key, 0);
	}
	work->header.client = client;
	if (work->frozen)
		return STATUS_FROZEN;
	return failed | work->conflict ? STATUS_DIRTY : STATUS_CLEAN;
}

/* Forgets what is synced. */
INLINE u32 forget(struct work *work)
{
	u32 entries = work->header.count, view = work->view & (VIEWS_MAX - 1);
	u32 of_view = view; /* `view` stays in a register, within its bounds */
	u64 *round = map_lookup(&rounds, &of_view);
	struct views *all = only(&views);
	if (!round || !all)
		return STATUS_BUSY;
	if (*(volatile u8 *)&all->of[view].frozen)
		return STATUS_FROZEN;
	work->round = __sync_fetch_and_add(round, 1) + 1;
	for (u32 number = 0; number < ENTRIES_MAX; number++) {
		if (number >= entries)
			break;
		collect(number);
	}
	return work->frozen ? STATUS_FROZEN : STATUS_GC_OK;
}

/* Writes what has been in the way for too long over the question's entries; how many. The answer is never
 * longer than the question. */
INLINE u32 report(u32 most)
{
	u32 written = 0;
	for (u32 number = 0; number < REPORTS_MAX; number++) {
		if (number >= most)
			break;
		written += write_report(written);
	}
	return written;
}

INLINE u16 ip_sum(const struct frame *frame)
{
	const u16 *halves = (const void *)&frame->version_and_length;
	u32 sum = 0;
	for (u32 i = 0; i < IP_BYTES / 2; i++)
		sum += halves[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* Makes the answer of the question, where it lies, and sends it back. */
INLINE int answer(struct xdp_md *ctx, struct work *work, u32 status, u32 entries)
{
	u32 body = HEADER_BYTES + entries * ENTRY_BYTES;
	count(status);
	work->header.status = status;
	work->header.count = entries;
	work->header.flags = 0;
	work->header.length = 0;
	work->header.token = 0;
	u32 crc = crc_of(body);
	/* Else the compiler checks another copy than it uses, and the verifier does not see the bounds. */
	__asm__ volatile("" : "+r"(body));
	if (body < HEADER_BYTES || body > HEADER_BYTES + REPORTS_MAX * ENTRY_BYTES)
		return dropped(COUNT_FAILED);
	if (store_bytes(ctx, FRAME_BYTES, work->bytes, body) ||
	    store_bytes(ctx, FRAME_BYTES + body, &crc, CRC_BYTES))
		return dropped(COUNT_FAILED);

	struct frame *frame = (void *)(long)ctx->data;
	int had = buffer_bytes(ctx);
	if ((void *)(frame + 1) > (void *)(long)ctx->data_end)
		return dropped(COUNT_FAILED);
	for (u32 i = 0; i < 6; i++) {
		u8 byte = frame->to[i];
		frame->to[i] = frame->from[i];
		frame->from[i] = byte;
	}
	u32 address = frame->source;
	frame->source = frame->destination;
	frame->destination = address;
	u16 port = frame->source_port;
	frame->source_port = frame->destination_port;
	frame->destination_port = port;
	frame->hops = 64;
	frame->ip_bytes = __builtin_bswap16(IP_BYTES + UDP_BYTES + body + CRC_BYTES);
	frame->udp_bytes = __builtin_bswap16(UDP_BYTES + body + CRC_BYTES);
	frame->udp_sum = 0; /* none: the datagram has its own */
	frame->ip_sum = 0;
	frame->ip_sum = ip_sum(frame);
	if (adjust_tail(ctx, (int)(FRAME_BYTES + body + CRC_BYTES - had)))
		return dropped(COUNT_FAILED);
	return XDP_TX;
}

/* Why the work is no question of a witness; 0 when it is one. */
INLINE u32 refusal(const struct work *work, u32 length)
{
	const struct header *header = &work->header;
	u32 at = length - CRC_BYTES, sum = 0;
	if (header->magic != MAGIC || header->version != VERSION)
		return COUNT_FOREIGN;
	for (u32 i = 0; i < CRC_BYTES; i++) {
		if (at + i >= DATAGRAM_MAX)
			return COUNT_LENGTH;
		sum |= (u32)work->bytes[at + i] << i * 8;
	}
	if (crc_of(at) != sum)
		return COUNT_CHECKSUM;
	u32 collects = header->op == OP_GC;
	if (header->op < OP_RECORD || header->op > OP_PROBE || header->status > STATUS_DIRTY ||
	    header->count > (collects ? ENTRIES_MAX : KEYS_MAX) || header->flags > 1 ||
	    (header->length && header->length < STAMP_BYTES))
		return COUNT_FIELD;
	if (at != HEADER_BYTES + header->count * (collects ? ENTRY_BYTES : 8) + header->length)
		return COUNT_LENGTH;
	return header->flags ? 0 : COUNT_ANSWER;
}

/* The view that a question is of; VIEWS_MAX when it is not served here. */
INLINE u32 view_of(const struct views *all, const struct header *header)
{
	u32 found = VIEWS_MAX;
	for (u32 i = 0; i < VIEWS_MAX; i++) {
		const struct view *view = &all->of[i];
		if (view->live && view->epoch == header->epoch && view->wlv == header->wlv)
			found = i;
	}
	return found;
}

/* Does what a question asks for, and answers it. */
INLINE int serve(struct xdp_md *ctx, struct work *work)
{
	const struct views *all = only(&views);
	if (!all)
		return dropped(COUNT_FAILED);
	u32 index = view_of(all, &work->header);
	if (index >= VIEWS_MAX)
		return answer(ctx, work, STATUS_WRONG_LIFE, 0);
	const struct view *view = &all->of[index];
	u32 op = work->header.op, most = work->header.count, status = STATUS_BAD, entries = 0;
	u64 token = op == OP_GC ? view->gc_token : view->record_token;
	work->generation = view->generation;
	work->view = index;
	const u64 *round = map_lookup(&rounds, &index);
	if (!round)
		return dropped(COUNT_FAILED);
	work->round = *round;
	work->taken = 0;
	work->tombstone = 0;
	work->own = 0;
	work->busy = 0;
	work->conflict = 0;
	work->full = 0;
	work->frozen = 0;
	if (work->header.token != token) {
		status = STATUS_BAD;
	} else if (op == OP_RECORD) {
		status = record(ctx, work);
	} else if (op == OP_PROBE) {
		status = probe(work);
	} else {
		status = forget(work);
		if (status == STATUS_GC_OK)
			entries = report(most);
	}
	return answer(ctx, work, status, entries);
}

SEC("xdp") int witness(struct xdp_md *ctx)
{
	struct frame *frame = (void *)(long)ctx->data;
	const struct config *mine = only(&config);
	struct work *work = only(&works);
	if (!mine || !work)
		return XDP_PASS;
	if ((void *)(frame + 1) > (void *)(long)ctx->data_end || !is_datagram(frame) ||
	    frame->destination_port != mine->port ||
	    (mine->address && frame->destination != mine->address)) {
		count(COUNT_PASSED);
		return XDP_PASS;
	}
	u32 length = __builtin_bswap16(frame->udp_bytes);
	if (__builtin_bswap16(frame->ip_bytes) != length + IP_BYTES)
		return dropped(COUNT_LENGTH);
	length -= UDP_BYTES;
	if (length < HEADER_BYTES + CRC_BYTES || length > DATAGRAM_MAX)
		return dropped(COUNT_LENGTH);
	if (load_bytes(ctx, FRAME_BYTES, work->bytes, length))
		return dropped(COUNT_LENGTH);
	u32 why = refusal(work, length);
	if (why)
		return dropped(why);
	return serve(ctx, work);
}

char program_license[] SEC("license") = "GPL";
