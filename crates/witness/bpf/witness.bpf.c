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

#include "table.h"

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
