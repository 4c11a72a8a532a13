/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* numaplacectl: shows where the daemon places tasks and why. Verbs live in verbs/. */

#include "ctl/options.h"
#include "ctl/terminal/pager.h"

#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define WATCH_SEC 2U
/* Moves the cursor to the corner and clears the screen. */
#define CLEAR "\033[H\033[2J"

/* If the caller closed a standard descriptor, the next open() would get it, and a table could end up in the
 * daemon's socket. The stand-in is opened in the wrong direction, so that using it still fails. */
static void hold_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

/* Asks the pipe, because the errno of an earlier write is lost. */
static bool reader_gone(void)
{
    struct pollfd p = {.fd = STDOUT_FILENO};

    return poll(&p, 1, 0) > 0 && (p.revents & POLLERR);
}

/* Makes most output a single write. */
static void widen_output(void)
{
    static char buffer[1 << 16];

    if (!isatty(STDOUT_FILENO))
        (void)setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
}

/* Lost output is a failure, unless the reader has closed the pipe because it has seen enough (`... |
 * head`). */
static CtlExit finish_output(CtlExit code)
{
    const char *lost = ctl_flush();

    if (!lost || reader_gone())
        return code;
    return ctl_fail(code == CTL_EXIT_OK ? CTL_EXIT_FAILURE : code, "cannot write to standard output: %s",
                    lost);
}

/* Runs the verb until it is interrupted or fails, or nobody reads any more. */
static CtlExit watch(const CtlCommand *command)
{
    for (;;) {
        CtlExit code;

        if (command->options.clears)
            (void)fputs(CLEAR, stdout);
        code = command->verb->run(&command->options, command->argc, command->argv);
        if (code != CTL_EXIT_OK || ctl_flush())
            return code;
        (void)sleep(WATCH_SEC);
    }
}

int main(int argc, char **argv)
{
    CtlCommand command;
    bool sigpipe_ignored;
    Pager pager = {.error = -1};
    CtlExit code;

    hold_standard_descriptors();
    sigpipe_ignored =
        signal(SIGPIPE, SIG_IGN) == SIG_IGN; /* then a closed pipe is an error of write(), see above */
    (void)setlocale(LC_CTYPE, "");
    widen_output();

    code = options_parse(argc, argv, &command);
    command.options.sigpipe_ignored = sigpipe_ignored;
    if (command.verb && command.verb->pages)
        pager = pager_open(&command.options);
    if (command.verb && command.options.watch)
        code = watch(&command);
    else if (command.verb)
        code = command.verb->run(&command.options, command.argc, command.argv);
    return (int)pager_close(pager, finish_output(code));
}
