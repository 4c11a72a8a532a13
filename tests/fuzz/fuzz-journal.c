/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "act/journal/journal.h"
#include "fuzz.h"

static Journal *new_journal(void)
{
    Journal *journal = calloc(1, sizeof(*journal));

    if (!journal)
        return NULL;
    journal->file = JOURNAL_FILE_NULL;
    journal->pool = intern_pool_new();
    journal->boot_id = strdup("boot");
    if (!journal->pool || !journal->boot_id)
        return journal_free(journal);
    return journal;
}

/* Any text is read or refused with a sentence. What was read is written as a text that reads back as the
 * same, without an error. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(journal_free_p) Journal *first = new_journal(), *second = new_journal();
    CLEANUP_FREE char *error = NULL, *none = NULL, *text = NULL, *again = NULL;
    size_t good = 0, len = 0, len_again = 0;
    bool foreign = false;
    int r;

    if (!first || !second)
        return 0;
    r = journal_parse(first, (const char *)data, size, &good, &foreign, &error);
    if (r != 0 && (r != ACT_E_CORRUPT || !error))
        abort();
    if (good > size || (foreign && first->n_processes > 0))
        abort();

    text = journal_format(first, &len);
    if (!text || journal_parse(second, text, len, &good, &foreign, &none) != 0 || good != len || foreign)
        abort();
    again = journal_format(second, &len_again);
    if (!again || len != len_again || memcmp(text, again, len) != 0)
        abort();
    return 0;
}
