/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs a fuzz target over the files of its corpus directory. An empty or missing corpus is a failure, so that a target
 * cannot pass without having been run. */

#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* A heap copy of exactly the file's size, so that the address sanitizer sees a read past its end. */
static int run_file(int dir_fd, const char *name)
{
    struct stat st;
    uint8_t *data;
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            (void)close(fd);
        return 0;
    }

    data = malloc(st.st_size ? (size_t)st.st_size : 1);
    if (!data || read(fd, data, (size_t)st.st_size) != st.st_size) {
        (void)fprintf(stderr, "%s: cannot be read\n", name);
        exit(1);
    }
    (void)close(fd);
    (void)LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
    free(data);
    return 1;
}

int main(int argc, char **argv)
{
    struct dirent *entry;
    int n = 0;
    DIR *dir;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
        return 2;
    }
    dir = opendir(argv[1]);
    if (!dir) {
        perror(argv[1]);
        return 1;
    }
    while ((entry = readdir(dir)))
        n += run_file(dirfd(dir), entry->d_name);
    (void)closedir(dir);

    (void)printf("%d inputs\n", n);
    return n > 0 ? 0 : 1;
}
