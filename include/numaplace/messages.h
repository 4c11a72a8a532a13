/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* MESSAGE_ID= of the records the daemon writes to the journal; the message catalog has an entry for each. */

#define NUMAPLACE_MESSAGE_STARTED          "d47338b838fb4e53839ae59232a9964b"
#define NUMAPLACE_MESSAGE_STOPPED          "92d560f9ce6c4066a8f170e297a2d9d6"
#define NUMAPLACE_MESSAGE_RECOVERED        "323ab724cef646e094fcdd13028335f6" /* masks of a dead daemon put back */
#define NUMAPLACE_MESSAGE_LEFTOVER         "8b1ccd310e41408d92fa0418314b41d6" /* masks of a dead daemon, still set */
#define NUMAPLACE_MESSAGE_NOT_RESTORED     "37914c33cefd44f7b4a7dfe67eb9850e"
#define NUMAPLACE_MESSAGE_MISSING_FEATURE  "6b17e76c621a482894ebd046b265b4cf"
#define NUMAPLACE_MESSAGE_OBSERVE_ONLY     "db326bdc86f94d11b1c76c8b104ea899"
#define NUMAPLACE_MESSAGE_RELOADED         "a2281f087bee4ff1bae6c1be788e9082"
#define NUMAPLACE_MESSAGE_RELOAD_FAILED    "ddd3d1fc0e4b4801a230fc60f7ad8033"
#define NUMAPLACE_MESSAGE_CONFIG           "0533e232444041c2a6d3dfe6ee3a4853" /* a line of a file ignored or rejected */
#define NUMAPLACE_MESSAGE_ACTION           "eb5bddc38c0947aabfd4bd01bc2eb31e" /* one decision carried out */
#define NUMAPLACE_MESSAGE_TOPOLOGY_CHANGED "995c557522fe4a3aa1dcc2099193e4fd"
#define NUMAPLACE_MESSAGE_ADMINISTRATOR    "948db4612a5c408393a0ba8b25140f9f" /* pause, resume, release */
#define NUMAPLACE_MESSAGE_LIMIT            "2fc79b7b40884bf290afb606ff417768" /* a limit was reached */
#define NUMAPLACE_MESSAGE_MEMORY           "eb4f593c1c394db1b9847bae7e4387bc" /* a migration request has ended */
#define NUMAPLACE_MESSAGE_NEIGHBOUR        "08a58e1f3d32496783c4ab7b1e43727c" /* other software places tasks */
#define NUMAPLACE_MESSAGE_JOURNAL          "031c23be86c4473793fcba88f1ec99d0" /* the undo journal cannot be used */
#define NUMAPLACE_MESSAGE_HANGS            "4b9ea64725e3419489a79982deedf023" /* a process cannot be read */
