/* What of libfabric cannot be called from Rust: its functions are static inline calls through tables
 * of pointers, and what is asked of a provider is a tree of structures. Here is the small part of it
 * that one end of a connection needs, as plain functions over a pointer that nobody looks into.
 * ffi.rs declares the same, and says what each function needs and promises. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

/* The newest interface that is used here; an older library refuses it. */
#define INTERFACE FI_VERSION(1, 14)

/* Looks for what is over before an endpoint is closed. */
#define REST 1024

/* What may be asked of a provider beside endpoints that reach many others, reliably. */
enum need { REMOTE_MEMORY = 1, ATOMICS = 2, DELIVERY = 4, ORDER = 8 };

/* What is asked, and how many operations may be under way at an endpoint. */
struct manx_ask {
    const char *provider;
    const char *at;  /* this machine's address in the fabric, or none */
    uint32_t needs;
    uint32_t depth;
};

struct manx_offer {
    struct fi_info *info;
    char provider[64];
    uint64_t order_bytes;  /* remote writes up to this size are placed in their order */
    uint64_t message_bytes;
    uint64_t key_bytes;
};

/* One end of a connection, alone in its domain, with one piece of memory. */
struct manx_port {
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr;
    void *descriptor;
    char *memory;
    uint64_t base;  /* what others call the first byte */
};

enum kind { READ, WRITE, READ_WORDS, WRITE_WORDS, COMPARE_SWAP, FETCH_ADD };

struct manx_piece {
    uint64_t token;
    uint64_t peer;
    uint64_t address;
    uint64_t key;
    uint64_t local;  /* bytes from the beginning of this port's memory */
    uint64_t bytes;
    uint32_t kind;
};

/* What libfabric 1.17 takes for an endpoint of `tcp;ofi_rxm` unless it is told otherwise: 4,096 buffers
 * of 16 KiB for what comes, each set to zero, though an endpoint here has one peer, and between two
 * looks at who wants to be connected 10 ms. It reads this from the environment when it is first
 * called. Before main nobody else looks at that; what the operator has said stays. */
__attribute__((constructor)) static void be_modest(void) {
    setenv("FI_OFI_RXM_MSG_RX_SIZE", "128", 0);
    setenv("FI_OFI_RXM_CM_PROGRESS_INTERVAL", "1000", 0);
}

/* When it is loaded the library takes these two signals, to clean up after its provider `shm`, and raises
 * them once more: a program that ends in good order at the first signal, and at once at the second, heard
 * two of them. Its signals are its own. */
__attribute__((constructor)) static void give_signals_back(void) {
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

static int ask_for(struct fi_info *hints, const struct manx_ask *ask) {
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
    /* One thread at a time uses a port, and drives it. */
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    /* More room than is used: not every provider notices that its buffers are all taken. */
    hints->tx_attr->size = 4 * ask->depth;
    hints->rx_attr->size = 4 * ask->depth;
    if (ask->needs & (REMOTE_MEMORY | ATOMICS))
        hints->caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    if (ask->needs & REMOTE_MEMORY)
        hints->caps |= FI_RMA;
    if (ask->needs & ATOMICS)
        hints->caps |= FI_ATOMIC;
    if (ask->needs & DELIVERY)
        hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    if (ask->needs & ORDER) {
        hints->tx_attr->msg_order = FI_ORDER_RMA_WAW;
        hints->rx_attr->msg_order = FI_ORDER_RMA_WAW;
    }
    hints->fabric_attr->prov_name = strdup(ask->provider);
    return hints->fabric_attr->prov_name ? 0 : -FI_ENOMEM;
}

int manx_offer(const struct manx_ask *ask, struct manx_offer *offer) {
    struct fi_info *hints = fi_allocinfo();
    if (!hints)
        return -FI_ENOMEM;
    int failed = ask_for(hints, ask);
    if (!failed)
        failed = fi_getinfo(INTERFACE, ask->at, NULL, ask->at ? FI_SOURCE : 0, hints, &offer->info);
    fi_freeinfo(hints);
    if (failed)
        return failed;
    const struct fi_info *info = offer->info;
    snprintf(offer->provider, sizeof offer->provider, "%s", info->fabric_attr->prov_name);
    offer->order_bytes = ask->needs & ORDER ? info->ep_attr->max_order_waw_size : 0;
    offer->message_bytes = info->ep_attr->max_msg_size;
    offer->key_bytes = info->domain_attr->mr_key_size;
    return 0;
}

void manx_offer_free(struct fi_info *info) {
    fi_freeinfo(info);
}

/* 1: an operation is over, with this error or none; 0: nothing is; less: the port is broken. */
int64_t manx_port_poll(struct manx_port *port, uint64_t *token, int *error) {
    struct fi_cq_entry done;
    ssize_t found = fi_cq_read(port->cq, &done, 1);
    *error = 0;
    if (found == -FI_EAVAIL) {
        struct fi_cq_err_entry failed = {0};
        found = fi_cq_readerr(port->cq, &failed, 0);
        done.op_context = failed.op_context;
        *error = failed.err ? failed.err : FI_EOTHER;
    }
    if (found == 1)
        *token = (uintptr_t)done.op_context;
    return found == -FI_EAGAIN ? 0 : found;
}

static int close_one(struct fid *fid) {
    return fid ? fi_close(fid) : 0;
}

/* Lets a port that begins nothing more come to rest. While ofi_rxm closes an endpoint it handles what
 * it still finds, by means of the connection that it has just closed (libfabric 1.17). */
static void rest(struct manx_port *port) {
    uint64_t token;
    int error;
    for (int turn = 0; port->cq && turn < REST; turn++)
        manx_port_poll(port, &token, &error);
}

/* The first error of the two that others' access depends on: the endpoint and the key. */
int manx_port_close(struct manx_port *port) {
    rest(port);
    int endpoint = close_one(port->ep ? &port->ep->fid : NULL);
    int key = close_one(port->mr ? &port->mr->fid : NULL);
    close_one(port->cq ? &port->cq->fid : NULL);
    close_one(port->av ? &port->av->fid : NULL);
    close_one(port->domain ? &port->domain->fid : NULL);
    close_one(port->fabric ? &port->fabric->fid : NULL);
    free(port);
    return endpoint ? endpoint : key;
}

static int open_endpoint(struct manx_port *port, struct fi_info *info, const char **step) {
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
    struct fi_av_attr av = {.type = info->domain_attr->av_type, .count = 1};
    int failed;
    cq.size = info->tx_attr->size;
    *step = "fi_fabric";
    if ((failed = fi_fabric(info->fabric_attr, &port->fabric, NULL)))
        return failed;
    *step = "fi_domain";
    if ((failed = fi_domain(port->fabric, info, &port->domain, NULL)))
        return failed;
    *step = "fi_cq_open";
    if ((failed = fi_cq_open(port->domain, &cq, &port->cq, NULL)))
        return failed;
    *step = "fi_av_open";
    if ((failed = fi_av_open(port->domain, &av, &port->av, NULL)))
        return failed;
    *step = "fi_endpoint";
    if ((failed = fi_endpoint(port->domain, info, &port->ep, NULL)))
        return failed;
    *step = "fi_ep_bind";
    if ((failed = fi_ep_bind(port->ep, &port->cq->fid, FI_TRANSMIT | FI_RECV)))
        return failed;
    if ((failed = fi_ep_bind(port->ep, &port->av->fid, 0)))
        return failed;
    *step = "fi_enable";
    return fi_enable(port->ep);
}

static int register_memory(struct manx_port *port, const struct fi_info *info, size_t bytes,
                           int is_shared, uint64_t *key, const char **step) {
    const struct fi_domain_attr *domain = info->domain_attr;
    uint64_t access = is_shared ? FI_REMOTE_READ | FI_REMOTE_WRITE : FI_READ | FI_WRITE;
    uint64_t wanted = *key;
    if (domain->mr_key_size < sizeof wanted)
        wanted &= (UINT64_C(1) << (8 * domain->mr_key_size)) - 1;
    *step = "fi_mr_reg";
    int failed = fi_mr_reg(port->domain, port->memory, bytes, access, 0, wanted, 0, &port->mr, NULL);
    if (failed)
        return failed;
    *step = "fi_mr_key";
    port->descriptor = fi_mr_desc(port->mr);
    port->base = domain->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)port->memory : 0;
    *key = fi_mr_key(port->mr);
    return *key == FI_KEY_NOTAVAIL ? -FI_ENOKEY : 0;
}

/* `key`: the one wished for, then the one given. A step `fi_close` says that what had been opened could
 * not be closed again, and may still touch the memory. */
int manx_port_open(struct fi_info *info, void *memory, size_t bytes, int is_shared, uint64_t *key,
                   uint64_t *base, struct manx_port **opened, const char **step) {
    struct manx_port *port = calloc(1, sizeof *port);
    *step = "calloc";
    if (!port)
        return -FI_ENOMEM;
    port->memory = memory;
    int failed = open_endpoint(port, info, step);
    if (!failed)
        failed = register_memory(port, info, bytes, is_shared, key, step);
    if (failed) {
        if (manx_port_close(port))
            *step = "fi_close";
        return failed;
    }
    *base = port->base;
    *opened = port;
    return 0;
}

/* How many words one operation takes at most, or an error: it takes none. */
int64_t manx_port_words(struct manx_port *port, uint32_t kind) {
    struct fi_atomic_attr attr = {0};
    int failed = -FI_EINVAL;
    if (kind == READ_WORDS)
        failed = fi_query_atomic(port->domain, FI_UINT64, FI_ATOMIC_READ, &attr, FI_FETCH_ATOMIC);
    else if (kind == WRITE_WORDS)
        failed = fi_query_atomic(port->domain, FI_UINT64, FI_ATOMIC_WRITE, &attr, FI_FETCH_ATOMIC);
    else if (kind == COMPARE_SWAP)
        failed = fi_query_atomic(port->domain, FI_UINT64, FI_CSWAP, &attr, FI_COMPARE_ATOMIC);
    else if (kind == FETCH_ADD)
        failed = fi_query_atomic(port->domain, FI_UINT64, FI_SUM, &attr, FI_FETCH_ATOMIC);
    return failed ? failed : (int64_t)(attr.count > INT32_MAX ? INT32_MAX : attr.count);
}

int manx_port_name(struct manx_port *port, void *name, size_t *bytes) {
    return fi_getname(&port->ep->fid, name, bytes);
}

int manx_port_peer(struct manx_port *port, const void *name, uint64_t *peer) {
    fi_addr_t address = FI_ADDR_UNSPEC;
    int inserted = fi_av_insert(port->av, name, 1, &address, 0, NULL);
    *peer = address;
    return inserted == 1 ? 0 : inserted < 0 ? inserted : -FI_EINVAL;
}

/* What is sent lies at the beginning, and what was there before comes behind it. Words are written by
 * an exchange: what comes back says that they are there, and with libfabric 1.17 `shm` gives a buffer
 * back twice when a write without one is to be complete on delivery. */
int64_t manx_port_post(struct manx_port *port, const struct manx_piece *piece) {
    void *token = (void *)(uintptr_t)piece->token, *descriptor = port->descriptor;
    uint64_t *words = (uint64_t *)(port->memory + piece->local);
    size_t count = piece->bytes / sizeof *words;
    fi_addr_t peer = piece->peer;
    switch (piece->kind) {
    case READ:
        return fi_read(port->ep, words, piece->bytes, descriptor, peer, piece->address, piece->key,
                       token);
    case WRITE:
        return fi_write(port->ep, words, piece->bytes, descriptor, peer, piece->address,
                        piece->key, token);
    case READ_WORDS:
        return fi_fetch_atomic(port->ep, NULL, count, descriptor, words, descriptor, peer,
                               piece->address, piece->key, FI_UINT64, FI_ATOMIC_READ, token);
    case WRITE_WORDS:
        return fi_fetch_atomic(port->ep, words, count, descriptor, words + count, descriptor, peer,
                               piece->address, piece->key, FI_UINT64, FI_ATOMIC_WRITE, token);
    case COMPARE_SWAP:
        return fi_compare_atomic(port->ep, words, 1, descriptor, words + 1, descriptor, words + 2,
                                 descriptor, peer, piece->address, piece->key, FI_UINT64, FI_CSWAP,
                                 token);
    case FETCH_ADD:
        return fi_fetch_atomic(port->ep, words, 1, descriptor, words + 2, descriptor, peer,
                               piece->address, piece->key, FI_UINT64, FI_SUM, token);
    default:
        return -FI_EINVAL;
    }
}

/* Errors that say that the other side does not take the key (any more). */
int manx_is_refusal(int error) {
    return error == FI_EACCES || error == FI_EPERM || error == FI_EKEYREJECTED || error == FI_ENOKEY;
}

const char *manx_error(int error) {
    return fi_strerror(error);
}
