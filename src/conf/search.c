/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Search order. One rule serves files and drop-ins: gather() collects the names with a suffix from a list of
 * directories, sorts them by name and then by directory, and keeps the first of each name. For the drop-ins
 * of NAME, the directories are DIRECTORY/NAME.d. */

#include "conf/search.h"

#include "base/parse.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* One name in one directory. */
typedef struct Candidate {
    char *name;
    char *path;
    size_t directory; /* index in the search order */
} Candidate;

typedef struct Candidates {
    Candidate *items;
    size_t n_items, capacity;
} Candidates;

static void candidate_done(Candidate *c)
{
    free(c->name);
    free(c->path);
}

static void candidates_done(Candidates *list)
{
    for (size_t i = 0; i < list->n_items; i++)
        candidate_done(&list->items[i]);
    free(list->items);
}

static int compare_candidates(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;
    int r = strcmp(x->name, y->name);

    return r ? r : (x->directory > y->directory) - (x->directory < y->directory);
}

/* Adds `name`. The file itself is examined later, and only if it wins, so that hidden files need not be readable. */
static int candidates_add(Candidates *list, const char *directory, size_t order, const char *name)
{
    Candidate c = {.directory = order};

    c.name = strdup(name);
    c.path = format_text("%s/%s", directory, name);
    if (!c.name || !c.path || !GROW(list->items, list->capacity, list->n_items + 1)) {
        candidate_done(&c);
        return -ENOMEM;
    }
    list->items[list->n_items++] = c;
    return 0;
}

static int scan_directory(Candidates *list, const char *directory, size_t order, const char *suffix,
                          ConfReport *report)
{
    CLEANUP(closedir_p) DIR *dir = opendir(directory);
    size_t before = list->n_items;
    struct dirent *entry;

    if (!dir && errno == ENOENT)
        return 0;
    if (!dir) {
        conf_report_add(report, CONF_SEVERITY_ERROR, directory, 0, "cannot be read: %s", strerror(errno));
        return 0;
    }
    while ((errno = 0, entry = readdir(dir))) {
        int r;

        /* ".policy" itself is a hidden file, not a policy without a name. */
        if (*entry->d_name == '.' || !has_suffix(entry->d_name, strlen(entry->d_name), suffix))
            continue;
        if (list->n_items - before >= CONF_FILES_MAX) {
            conf_report_add(report, CONF_SEVERITY_ERROR, directory, 0, "holds more than %u files named *%s",
                            CONF_FILES_MAX, suffix);
            return 0;
        }
        r = candidates_add(list, directory, order, entry->d_name);
        if (r < 0)
            return r;
    }
    if (errno)
        conf_report_add(report, CONF_SEVERITY_ERROR, directory, 0, "cannot be read: %s", strerror(errno));
    return 0;
}

/* Whether the file that won its name can be read and does not mask the name. */
static bool is_in_force(const char *path, ConfReport *report)
{
    struct stat st;

    if (stat(path, &st) < 0) {
        /* Always an error: otherwise a hidden file or a default would silently take effect. */
        conf_report_add(report, CONF_SEVERITY_ERROR, path, 0, "cannot be read: %s", strerror(errno));
        return false;
    }
    return !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3);
}

/* Keeps the first of each name in a sorted list. */
static void keep_winners(Candidates *list)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n_items; i++) {
        if (n > 0 && strcmp(list->items[n - 1].name, list->items[i].name) == 0)
            candidate_done(&list->items[i]);
        else
            list->items[n++] = list->items[i];
    }
    list->n_items = n;
}

/* Searches the directories, or with `name` their subdirectories NAME.d. The caller releases `ret` also on failure. */
static int gather(const char *const *directories, const char *name, const char *suffix, Candidates *ret,
                  ConfReport *report)
{
    for (size_t i = 0; directories[i]; i++) {
        CLEANUP_FREE char *path =
            name ? format_text("%s/%s.d", directories[i], name) : strdup(directories[i]);
        int r = path ? scan_directory(ret, path, i, suffix, report) : -ENOMEM;

        if (r < 0)
            return r;
    }
    if (ret->n_items > 0)
        qsort(ret->items, ret->n_items, sizeof(*ret->items), compare_candidates);
    keep_winners(ret);
    return 0;
}

static int find_dropins(const char *const *directories, ConfFile *file, ConfReport *report)
{
    CLEANUP(candidates_done) Candidates found = {0};
    int r = gather(directories, file->name, ".conf", &found, report);

    if (r < 0 || found.n_items == 0)
        return r;

    file->dropins = calloc(found.n_items, sizeof(*file->dropins));
    if (!file->dropins)
        return -ENOMEM;
    for (size_t i = 0; i < found.n_items; i++)
        if (is_in_force(found.items[i].path, report))
            file->dropins[file->n_dropins++] = TAKE_PTR(found.items[i].path);
    return 0;
}

void conf_file_done(ConfFile *file)
{
    free(file->name);
    free(file->path);
    for (size_t i = 0; i < file->n_dropins; i++)
        free(file->dropins[i]);
    free(file->dropins);
    *file = (ConfFile){0};
}

void conf_files_done(ConfFiles *files)
{
    for (size_t i = 0; i < files->n_files; i++)
        conf_file_done(&files->files[i]);
    free(files->files);
    *files = (ConfFiles){0};
}

/* Adds a file that won its name, with its drop-ins. */
static int add_file(ConfFiles *files, Candidate *winner, const char *const *directories, ConfReport *report)
{
    ConfFile file = {0};
    int r;

    if (!is_in_force(winner->path, report))
        return 0;
    if (!GROW(files->files, files->capacity, files->n_files + 1))
        return -ENOMEM;
    file.name = strdup(winner->name);
    if (!file.name)
        return -ENOMEM;
    file.path = TAKE_PTR(winner->path);
    r = find_dropins(directories, &file, report);
    if (r < 0) {
        conf_file_done(&file);
        return r;
    }
    files->files[files->n_files++] = file;
    return 0;
}

/* Warns about NAME.d directories that are not read because there is no NAME, most likely a typo. */
static int warn_orphans(const char *const *directories, const char *suffix, const Candidates *files,
                        ConfReport *report)
{
    CLEANUP(candidates_done) Candidates found = {0};
    CLEANUP_FREE char *suffix_d = format_text("%s.d", suffix);
    int r;

    if (!suffix_d)
        return -ENOMEM;
    r = gather(directories, NULL, suffix_d, &found, report);
    if (r < 0)
        return r;
    for (size_t i = 0; i < found.n_items; i++) {
        char *name = found.items[i].name;
        bool known = false;

        name[strlen(name) - strlen(".d")] = '\0';
        for (size_t k = 0; k < files->n_items && !known; k++)
            known = strcmp(files->items[k].name, name) == 0;
        if (!known)
            conf_report_add(report, CONF_SEVERITY_WARNING, found.items[i].path, 0,
                            "ignoring drop-ins of a file that does not exist: %s", name);
    }
    return 0;
}

/* One missing directory is normal. If all are missing, the path is mistyped or nothing is installed. */
static void warn_nowhere(const char *const *directories, ConfReport *report)
{
    for (size_t i = 0; directories[i]; i++)
        if (access(directories[i], F_OK) == 0 || errno != ENOENT)
            return;
    for (size_t i = 0; directories[i]; i++)
        conf_report_add(report, CONF_SEVERITY_WARNING, directories[i], 0,
                        "there is no such directory, so no files are read from it");
}

int conf_search(const char *const *directories, const char *suffix, ConfFiles *ret, ConfReport *report)
{
    CLEANUP(candidates_done) Candidates found = {0};
    CLEANUP(conf_files_done) ConfFiles files = {0};
    size_t n_errors = report->n_errors;
    int r = gather(directories, NULL, suffix, &found, report);

    for (size_t i = 0; r == 0 && i < found.n_items; i++)
        r = add_file(&files, &found.items[i], directories, report);
    if (r < 0)
        return r;
    if (report->n_errors > n_errors) {
        r = -EBADMSG;
    } else {
        warn_nowhere(directories, report);
        r = warn_orphans(directories, suffix, &found, report);
        if (r < 0)
            return r;
    }

    *ret = files;
    files = (ConfFiles){0};
    return r;
}

/* Fills in the first file called `name` in the directories, if there is one and it is not masked. */
static int find_main(const char *const *directories, ConfFile *file, ConfReport *report)
{
    for (size_t i = 0; directories[i]; i++) {
        CLEANUP_FREE char *path = format_text("%s/%s", directories[i], file->name);
        struct stat st;

        if (!path)
            return -ENOMEM;
        if (lstat(path, &st) < 0 && errno == ENOENT)
            continue;
        if (is_in_force(path, report))
            file->path = TAKE_PTR(path);
        return 0;
    }
    return 0;
}

int conf_search_one(const char *const *directories, const char *name, ConfFile *ret, ConfReport *report)
{
    CLEANUP(conf_file_done) ConfFile file = {0};
    size_t n_errors = report->n_errors;
    int r;

    file.name = strdup(name);
    if (!file.name)
        return -ENOMEM;
    r = find_main(directories, &file, report);
    if (r == 0)
        r = find_dropins(directories, &file, report);
    if (r < 0)
        return r;
    if (report->n_errors > n_errors)
        return -EBADMSG;

    *ret = file;
    file = (ConfFile){0};
    return 0;
}
