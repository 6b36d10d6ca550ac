/* The maps of a witness, and what is done to one slot of its table at a time. */

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
