/* The program that an interface has: hands a datagram to the witness at its port. An interface takes one
 * program, and may have several witnesses; each is another program with maps of its own. */

#include "layout.h"

struct {
	int (*type)[MAP_PROG_ARRAY];
	int (*max_entries)[PORTS];
	int (*key_size)[4];
	int (*value_size)[4];
} witnesses SEC(".maps");

SEC("xdp") int dispatch(struct xdp_md *ctx)
{
	struct frame *frame = (void *)(long)ctx->data;
	if ((void *)(frame + 1) > (void *)(long)ctx->data_end || !is_datagram(frame))
		return XDP_PASS;
	tail_call(ctx, &witnesses, __builtin_bswap16(frame->destination_port));
	return XDP_PASS; /* there is no witness at that port */
}

char program_license[] SEC("license") = "GPL";
