/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A recording shows why something was decided, and what a changed planner decides differently. It has the names of
 * programs and cgroups, so only its owner may read it. Each entry is written before its plan is carried out. */

#include "daemon/recorder.h"

#include <fcntl.h>
#include <stdio_ext.h>
#include <string.h>

struct Recorder {
    FILE *out; /* NULL: recording has ended */
    off_t len; /* of whole entries */
    char *path;
    char *policies;
    Log *log;
};

Recorder *recorder_free(Recorder *recorder)
{
    if (!recorder)
        return NULL;
    if (recorder->out)
        (void)fclose(recorder->out);
    free(recorder->path);
    free(recorder->policies);
    free(recorder);
    return NULL;
}

int recorder_new(const char *path, Log *log, Recorder **ret)
{
    Recorder *recorder = calloc(1, sizeof(*recorder));
    int fd, r;

    if (!recorder)
        return -ENOMEM;
    recorder->log = log;
    recorder->path = strdup(path);
    fd = recorder->path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0600) : -1;
    if (fd >= 0)
        recorder->out = fdopen(fd, "w");
    if (recorder->out) {
        *ret = recorder;
        return 0;
    }
    r = -errno;
    /* It was made here (O_EXCL), and would be in the way of the next start. */
    if (fd >= 0)
        (void)unlink(path);
    close_p(&fd);
    (void)recorder_free(recorder);
    return log_failure(r, log, NULL, "cannot create the recording %s: %s", path, strerror(-r));
}

/* Drops an entry that was written in part: with it, nothing of the record could be read. */
static void end(Recorder *recorder, const char *why)
{
    log_warning(recorder->log, NULL, "%s: %s; not recording any more", recorder->path, why);
    __fpurge(recorder->out);
    (void)!ftruncate(fileno(recorder->out), recorder->len);
    (void)fclose(recorder->out);
    recorder->out = NULL;
}

int recorder_add(Recorder *recorder, const TranscriptEntry *entry)
{
    int r;

    if (!recorder || !recorder->out)
        return 0;
    r = transcript_write(recorder->out, &recorder->policies, entry);
    if (r < 0)
        return r;
    /* The last part may fit although an earlier one did not. */
    if (fflush(recorder->out) != 0 || ferror(recorder->out)) {
        end(recorder, strerror(errno));
        return 0;
    }
    recorder->len = ftello(recorder->out);
    if (recorder->len >= (off_t)(TRANSCRIPT_MAX - TRANSCRIPT_ENTRY_MAX))
        end(recorder, "full");
    return 0;
}
