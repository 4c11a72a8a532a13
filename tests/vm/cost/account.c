/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "account.h"

int64_t account_due(Account *a, uint64_t now_nsec)
{
    uint64_t passed = now_nsec - a->paid_at_nsec;

    a->debt_nsec -= (int64_t)(passed < a->hidden_nsec ? passed : a->hidden_nsec);
    a->hidden_nsec = 0;
    a->paid_at_nsec = now_nsec;
    return a->debt_nsec;
}

void account_paid(Account *a, uint64_t begin_nsec, uint64_t end_nsec)
{
    a->debt_nsec -= (int64_t)(end_nsec - begin_nsec);
    if (a->debt_nsec < -CREDIT_MAX_NSEC)
        a->debt_nsec = -CREDIT_MAX_NSEC;
    a->paid_at_nsec = end_nsec;
}
