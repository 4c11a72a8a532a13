/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Memory on its way to homes. Plans make the requests (plan/memory/follow.h) and act hands them to the
 * mover's threads. Here they are watched until they end: cancelled when the home changes or memory pressure
 * rises, and then folded in.
 *
 * A new World ends all requests: they are about processes it does not know yet. */

#include "base/time.h"
#include "daemon/manager/evidence.h"
#include "daemon/manager/manager.h"
#include "numaplace/messages.h"
#include "plan/memory/follow.h"

#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>

static FollowEnd end_of(MoverOutcome outcome)
{
    switch (outcome) {
    case MOVER_DONE:
        return FOLLOW_END_DONE;
    case MOVER_NO_ROOM:
        return FOLLOW_END_NO_ROOM;
    case MOVER_CANCELLED:
    case MOVER_GONE:
        return FOLLOW_END_CANCELLED;
    default:
        return FOLLOW_END_FAILED;
    }
}

/* Bytes that should have moved and could not. Only reasons from MOVER_REASON_SHARED on are about such pages. Those
 * before it are properties of mappings, and count all of their memory, wherever it lies. */
static uint64_t refused_bytes(const MoverAccount *account)
{
    uint64_t sum = 0;

    for (int i = MOVER_REASON_SHARED; i < MOVER_REASON_MAX; i++)
        sum += account->refused_bytes[i];
    return sum;
}

static void tell(Manager *manager, const OrderNews *news)
{
    const MoverResult *result = &news->result;
    const Process *process = world_process(manager->world, news->subject.pid);
    const char *comm = process && process->start_ticks == news->subject.start_ticks ? process->comm : "?";
    uint64_t refused = refused_bytes(&result->account);
    LogFields fields = {0};
    uint32_t n_held;

    if (!log_rate(manager->log, time_now_usec(), &n_held))
        return;
    log_fields_add(&fields, "NUMAPLACE_PID", "%d", (int)news->subject.pid);
    log_fields_add(&fields, "NUMAPLACE_COMM", "%s", comm);
    log_fields_add(&fields, "NUMAPLACE_OUTCOME", "%s", mover_outcome_names[result->outcome]);
    log_fields_add(&fields, "NUMAPLACE_MOVED_BYTES", "%" PRIu64, result->account.moved_bytes);
    log_fields_add(&fields, "NUMAPLACE_REFUSED_BYTES", "%" PRIu64, refused);
    log_fields_add(&fields, "NUMAPLACE_BLOCKED_USEC", "%" PRIu64, result->account.blocked_usec);
    log_record(manager->log, LOG_INFO, NUMAPLACE_MESSAGE_MEMORY, &fields,
               "memory of %s[%d]: %s, moved %" PRIu64 " KiB, %" PRIu64
               " KiB could not be moved; calls took %" PRIu64 " us, the longest %" PRIu64 " us",
               comm, (int)news->subject.pid, mover_outcome_names[result->outcome],
               result->account.moved_bytes >> 10, refused >> 10, result->account.blocked_usec,
               result->account.longest_usec);
}

static int on_memory(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    Manager *manager = userdata;
    OrderNews news;

    while (orders_collect(manager->orders, &news) > 0) {
        follow_over(manager->world, manager->policies,
                    &(FollowResult){
                        .subject = news.subject,
                        .group_id = news.group_id,
                        .end = end_of(news.result.outcome),
                        .time_usec = time_now_usec(),
                        .moved_bytes = news.moved_bytes,
                        .refused_bytes = refused_bytes(&news.result.account),
                        .blocked_usec = news.result.account.blocked_usec,
                    });
        tell(manager, &news);
        manager_evidence_order_over(manager, news.subject, end_of(news.result.outcome));
        manager->objects_changed = true;
    }
    return 0;
}

static int start(Manager *manager)
{
    Mover *mover = NULL;
    int r = mover_new(NULL, NULL, manager->root_fd, manager->world->topology, &mover);

    if (r < 0)
        return r;
    r = orders_new(mover, &manager->orders);
    if (r < 0) {
        mover_free(mover);
        return r;
    }
    r = sd_event_add_io(manager->event, &manager->memory_source, mover_fd(mover), EPOLLIN, on_memory,
                        manager);
    if (r < 0)
        return r;
    act_set_orders(manager->act, manager->orders);
    return 0;
}

void manager_memory_start(Manager *manager)
{
    const Topology *topology = manager->world->topology;
    int r;

    if (!manager->event || manager->orders || manager->mode != MANAGER_MODE_ACTIVE || manager->options.once ||
        topology->n_nodes < 2 || !manager_has_memory(manager, topology) ||
        strcmp(manager->options.root, "/") != 0)
        return;
    r = start(manager);
    if (r == 0)
        return;
    manager_memory_stop(manager);
    log_warning(manager->log, NUMAPLACE_MESSAGE_MISSING_FEATURE,
                "cannot move memory: %s; leaving it where it is", strerror(-r));
}

void manager_memory_stop(Manager *manager)
{
    if (manager->act)
        act_set_orders(manager->act, NULL);
    manager->memory_source = sd_event_source_disable_unref(manager->memory_source);
    manager->orders = orders_free(manager->orders);
}

void manager_memory_ticked(Manager *manager, bool slow)
{
    OrderNews news;

    if (!manager->orders)
        return;
    for (size_t i = 0; orders_look(manager->orders, i, &news) > 0; i++) {
        const Process *process = world_process(manager->world, news.subject.pid);

        if (!process || process->start_ticks != news.subject.start_ticks ||
            !follow_holds(manager->world, manager->policies, process))
            orders_cancel(manager->orders, news.subject);
        else
            follow_progress(manager->world, news.subject, news.moved_bytes);
    }
    if (slow) {
        mover_set_rate(orders_mover(manager->orders), follow_rate(manager->world));
        mover_tend(orders_mover(manager->orders), time_now_usec());
    }
}
