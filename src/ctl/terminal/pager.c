/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/terminal/pager.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Exits when all fits the screen, shows colours, cuts long lines, and leaves what was seen on the terminal. */
#define LESS_OPTIONS "FRSXMK"

/* The first that is set, or NULL. */
static const char *chosen_pager(void)
{
    const char *own = getenv("NUMAPLACE_PAGER");

    return own ? own : getenv("PAGER");
}

/* Whether the user acts as somebody else and may not be meant to have that user's shell, which pagers offer. */
static bool is_lent(void)
{
    return getenv("SUDO_UID") || getenv("DOAS_USER") || getenv("PKEXEC_UID");
}

static bool is_wanted(const CtlOptions *options)
{
    const char *chosen = chosen_pager();

    return options->clears && isatty(STDIN_FILENO) && !options->no_pager && options->json == CTL_JSON_OFF &&
           !options->watch && !options->follow && !options->output &&
           (!chosen || (*chosen && strcmp(chosen, "cat") != 0));
}

/* Used if not even more(1) is installed. */
static _Noreturn void copy(void)
{
    char text[4096];
    ssize_t n;

    while ((n = read(STDIN_FILENO, text, sizeof(text))) > 0) {
        for (ssize_t done = 0, r; done < n; done += r) {
            r = write(STDOUT_FILENO, text + done, (size_t)(n - done));
            if (r <= 0)
                _exit(EXIT_FAILURE);
        }
    }
    _exit(EXIT_SUCCESS);
}

static _Noreturn void run(const char *chosen)
{
    const char *less = getenv("NUMAPLACE_LESS");

    (void)setenv("LESS", less ? less : LESS_OPTIONS, 1);
    if (is_lent()) {
        (void)setenv("LESSSECURE", "1", 1);
        (void)setenv("PATH", "/usr/bin:/bin", 1);
        (void)execlp("less", "less", NULL);
        copy();
    }
    if (chosen) {
        (void)execl("/bin/sh", "sh", "-c", chosen, NULL);
        _exit(CTL_EXIT_RUN_NOT_FOUND);
    }
    (void)execlp("less", "less", NULL);
    (void)execlp("more", "more", NULL);
    copy();
}

static _Noreturn void begin(const int *fds)
{
    /* This program ignores SIGPIPE, and the pager would inherit that. */
    (void)signal(SIGPIPE, SIG_DFL);
    /* When this program is interrupted, the pager must not stay at the keyboard beside the shell. */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (dup2(fds[0], STDIN_FILENO) < 0)
        _exit(EXIT_FAILURE);
    /* copy() runs in this process: with these open it would never see the end. */
    (void)close(fds[0]);
    (void)close(fds[1]);
    run(chosen_pager());
}

/* Sends messages to the pager, too, not into the middle of its screen. Returns the original standard error,
 * -1 if it is unchanged, or -2 on failure. */
static int redirect(int fd)
{
    int error = isatty(STDERR_FILENO) ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) : -1;

    if (dup2(fd, STDOUT_FILENO) < 0)
        return -2;
    if (error >= 0)
        (void)dup2(fd, STDERR_FILENO);
    return error;
}

Pager pager_open(CtlOptions *options)
{
    Pager pager = {.error = -1};
    struct winsize size;
    int fds[2];

    if (!is_wanted(options) || pipe2(fds, O_CLOEXEC) < 0)
        return pager;
    if (options->columns == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        options->columns = size.ws_col;
    (void)fflush(stdout);
    pager.pid = fork();
    if (pager.pid == 0)
        begin(fds);
    if (pager.pid > 0)
        pager.error = redirect(fds[1]);
    (void)close(fds[0]);
    (void)close(fds[1]);
    if (pager.pid > 0 && pager.error < -1) {
        (void)kill(pager.pid, SIGTERM);
        (void)waitpid(pager.pid, NULL, 0);
        pager = (Pager){.error = -1};
    }
    return pager.pid > 0 ? pager : (Pager){.error = -1};
}

CtlExit pager_close(Pager pager, CtlExit code)
{
    int status = 0;

    if (pager.pid == 0)
        return code;
    /* An interrupt is meant for the pager, which ends a search then. */
    (void)signal(SIGINT, SIG_IGN);
    (void)fclose(stdout);
    if (pager.error >= 0)
        (void)dup2(pager.error, STDERR_FILENO);
    (void)TEMP_FAILURE_RETRY(waitpid(pager.pid, &status, 0));
    /* The exit codes of sh(1) for a chosen pager that cannot be run. */
    if (chosen_pager() && !is_lent() && WIFEXITED(status) &&
        (WEXITSTATUS(status) == CTL_EXIT_RUN_CANNOT || WEXITSTATUS(status) == CTL_EXIT_RUN_NOT_FOUND))
        return ctl_fail(code == CTL_EXIT_OK ? CTL_EXIT_FAILURE : code,
                        "the pager cannot be run (--no-pager does without): %s", chosen_pager());
    return code;
}
