/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where messages begin and end, whatever pieces they come in. */

#include "base/util.h"
#include "daemon/bus/framing.h"
#include "unit-test.h"

static const char hello[] = "\0AUTH EXTERNAL 30\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n";

static int take(BusFraming *framing, const void *bytes, size_t n)
{
    return bus_framing_take(framing, bytes, n);
}

static BusFraming introduced(void)
{
    BusFraming framing = {0};

    assert_int_equal(take(&framing, hello, sizeof(hello) - 1), 0);
    assert_true(framing.begun);
    return framing;
}

static void test_handshake(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        bool begun;
    } cases[] = {
        {"\0BEGIN\r\n", 8, false},           {"\0AUTH\r\nBEGIN\r\n", 14, true},
        {"\0AUTH\r\r\nBEGIN\r\n", 15, true}, {"\0AUTH\r\nBEGIN\r\r\n", 15, false},
        {"\0AUTH\r\nBEGIN\r\nx", 15, true},  {"\0AUTH\r\nBEGIN \r\n", 15, false},
        {"\0AUTH\r\nxBEGIN\r\n", 15, false}, {"\0AUTH\r\nBEGI\r\nBEGIN\r\n", 20, true},
        {"\0AUTH\nBEGIN\n", 12, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BusFraming framing = {0};

        assert_int_equal(take(&framing, cases[i].text, cases[i].n), 0);
        assert_int_equal(framing.begun, cases[i].begun);
    }
}

static void test_handshake_without_end(void **state)
{
    BusFraming framing = {0};

    for (unsigned i = 0; i < BUS_FRAMING_HELLO_MAX; i++)
        assert_int_equal(take(&framing, "x", 1), 0);
    assert_int_equal(take(&framing, "x", 1), -EMSGSIZE);
}

/* The head of a message of `body` bytes and `fields` bytes of fields. */
static void make_head(char order, uint32_t body, uint32_t fields, uint8_t *ret)
{
    const uint32_t numbers[] = {body, fields};

    memset(ret, 0, BUS_FRAMING_HEAD);
    ret[0] = (uint8_t)order;
    for (unsigned n = 0; n < 2; n++)
        for (unsigned i = 0; i < 4; i++)
            ret[4 + 8 * n + (order == 'l' ? i : 3 - i)] = (uint8_t)(numbers[n] >> 8 * i);
}

static void test_lengths(void **state)
{
    static const struct {
        char order;
        uint32_t body, fields;
        int result;
        uint32_t left;
    } cases[] = {
        {'l', 5, 110, 0, 117},
        {'B', 5, 110, 0, 117},
        {'l', 0, 0, 0, 0},
        {'l', 8, 16, 0, 24},
        {'l', BUS_FRAMING_MESSAGE_MAX - 16, 0, 0, BUS_FRAMING_MESSAGE_MAX - 16},
        {'l', BUS_FRAMING_MESSAGE_MAX - 15, 0, -EMSGSIZE, 0},
        {'l', 0, BUS_FRAMING_MESSAGE_MAX - 15, -EMSGSIZE, 0},
        {'B', 1 << 20, 0, -EMSGSIZE, 0},
        {'l', UINT32_MAX, UINT32_MAX, -EMSGSIZE, 0},
        {'l', 16, UINT32_MAX, -EMSGSIZE, 0},
        {'x', 5, 110, -EBADMSG, 0},
        {'\0', 0, 0, -EBADMSG, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BusFraming framing = introduced();
        uint8_t head[BUS_FRAMING_HEAD];

        make_head(cases[i].order, cases[i].body, cases[i].fields, head);
        assert_int_equal(take(&framing, head, sizeof(head)), cases[i].result);
        assert_int_equal(framing.left, cases[i].left);
    }
}

/* A handshake and two messages, cut at every place. */
static void test_pieces(void **state)
{
    uint8_t stream[sizeof(hello) - 1 + 40 + 41] = {0};

    memcpy(stream, hello, sizeof(hello) - 1);
    make_head('l', 16, 8, &stream[sizeof(hello) - 1]);
    make_head('B', 17, 2, &stream[sizeof(hello) - 1 + 40]);
    for (size_t cut = 0; cut <= sizeof(stream); cut++) {
        BusFraming framing = {0};

        assert_int_equal(take(&framing, stream, cut), 0);
        assert_int_equal(take(&framing, stream + cut, sizeof(stream) - cut), 0);
        assert_int_equal(framing.left, 0);
        assert_int_equal(framing.n_head, 0);
    }
}

TEST_MAIN(NULL, NULL, test_handshake, test_handshake_without_end, test_lengths, test_pieces)
