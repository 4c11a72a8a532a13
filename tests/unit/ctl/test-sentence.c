/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Explanations have the numbers that decided, in the unit of their reason. */

#include "ctl-test.h"
#include "ctl/sentence.h"
#include "plan/plan.h"

static void check_sentence(SentenceMaker make, const char *json, uint64_t now_usec, const char *expected)
{
    CLEANUP(view_text_done) ViewText text = {0};
    CLEANUP_JSON json_object *object = test_json(json);

    make(object, now_usec, &text);
    assert_false(text.failed);
    assert_string_equal(text.text, expected);
}

static int utc(void **state)
{
    return setenv("TZ", "UTC0", 1);
}

static void test_lend(void **state)
{
    check_sentence(
        sentence_move,
        "{'sequence':1,'realtime_usec':45005250000,'kind':'lend','rule':'idle-nearby','text':'Why.',"
        "'mechanism':2,'outcome':'done','count':1,'workload':'50-jvm','pid':1234,'tid':1240,'comm':'java',"
        "'from':'0-1','to':'0-1,3','cpu':3,'node':1,'cross_node':true,'lease_usec':30000000,'value':830,'limit':250}",
        0,
        "1970-01-01 12:30:05.250 lend     50-jvm: java[1234/1240] CPU 3 (node 1, not its own) 0-1 -> 0-1,3 for "
        "30 s: done. Why. (P2 stealing, 83.0 % against 25.0 %)");
}

static void test_home_of_a_process(void **state)
{
    check_sentence(
        sentence_move,
        "{'realtime_usec':0,'kind':'set-home','rule':'fixed-home','text':'Why.','mechanism':3,"
        "'outcome':'refused','count':4,'pid':7,'tid':0,'comm':'x','from':'0-3','to':'0-1','cpu':-1,"
        "'node':-1,'value':2,'limit':4}",
        0,
        "1970-01-01 00:00:00.000 set-home x[7] 0-3 -> 0-1: refused, 4 times. Why. (P3 node limit, 2 against 4)");
}

static void test_memory_moves_to_its_users(void **state)
{
    check_sentence(
        sentence_move,
        "{'realtime_usec':0,'kind':'move-pages','rule':'follow-use','text':'Why.','mechanism':18,"
        "'outcome':'done','count':1,'pid':7,'tid':0,'comm':'x','from_nodes':'0','to_nodes':'1','cpu':-1,"
        "'node':-1,'value':512,'limit':0}",
        0,
        "1970-01-01 00:00:00.000 move-pages x[7] memory of nodes 0 -> 1: done. Why. (P18 2 MB blocks, "
        "512 MiB)");
}

static void test_refusals(void **state)
{
    check_sentence(sentence_refusal,
                   "{'reason':'node-limit','text':'why','mechanism':3,'count':14,'time_usec':3000000,'tid':0,"
                   "'value':8,'limit':2}",
                   5000000, "node-limit, 14 times, 2 s ago: why (P3 node limit, 8 against 2)");
    check_sentence(sentence_refusal,
                   "{'reason':'residency','text':'why','mechanism':7,'count':1,'time_usec':1,'tid':9,"
                   "'value':300000,'limit':1000000}",
                   1, "residency for thread 9, 0 us ago: why (P7 guards, 300 ms against 1 s)");
    check_sentence(sentence_refusal,
                   "{'reason':'unsettled','text':'why','mechanism':17,'count':1,'time_usec':0,'tid':0,"
                   "'value':4000000,'limit':10000000}",
                   1, "unsettled: why (P17 interleaving, 4 s against 10 s)");
    check_sentence(sentence_refusal,
                   "{'reason':'steal-off','text':'why','mechanism':2,'count':1,'time_usec':0,'tid':0,"
                   "'value':970,'limit':250}",
                   1, "steal-off: why (P2 stealing, 97.0 % against 25.0 %)");
    /* These were compared with nothing. */
    check_sentence(sentence_refusal,
                   "{'reason':'to-and-fro','text':'why','mechanism':7,'count':1,'time_usec':0,'tid':0,"
                   "'value':54000000,'limit':0}",
                   1, "to-and-fro: why (P7 guards, 54 s)");
    check_sentence(sentence_refusal,
                   "{'reason':'no-home','text':'why','mechanism':15,'count':1,'time_usec':0,'tid':0,"
                   "'value':1748,'limit':0}",
                   1, "no-home: why (P15 convergence, 174.8 %)");
    check_sentence(
        sentence_refusal,
        "{'reason':'slower','text':'why','mechanism':0,'count':1,'time_usec':0,'tid':0,'value':2,'limit':0}",
        1, "slower: why (2)");
    check_sentence(
        sentence_refusal,
        "{'reason':'paused','text':'why','mechanism':0,'count':1,'time_usec':0,'tid':0,'value':0,'limit':0}",
        1, "paused: why");
}

/* A workload has many groups, and the lists of explain and show have the refusals of all. */
static void test_who_is_refused(void **state)
{
    check_sentence(sentence_refusal,
                   "{'reason':'no-home','text':'why','mechanism':15,'count':2,'time_usec':0,'pid':0,'tid':0,"
                   "'group':7,'value':1748,'limit':0}",
                   1, "no-home for group 7, 2 times: why (P15 convergence, 174.8 %)");
    check_sentence(sentence_refusal,
                   "{'reason':'paused','text':'why','mechanism':0,'count':1,'time_usec':0,'pid':12,'tid':0,"
                   "'group':7,'value':0,'limit':0}",
                   1, "paused for process 12 of group 7: why");
    check_sentence(sentence_refusal,
                   "{'reason':'paused','text':'why','mechanism':0,'count':1,'time_usec':0,'pid':12,'tid':13,"
                   "'group':7,'value':0,'limit':0}",
                   1, "paused for thread 13 of group 7: why");
    check_sentence(sentence_refusal,
                   "{'reason':'paused','text':'why','mechanism':0,'count':1,'time_usec':0,'pid':12,'tid':13,"
                   "'group':0,'value':0,'limit':0}",
                   1, "paused for thread 13: why");
}

static void test_task(void **state)
{
    check_sentence(
        sentence_task,
        "{'tid':1240,'comm':'java','run_permille':830,'wait_permille':170,'allowed':'0-1','original':'0-3',"
        "'last_cpu':1,'node':0,'lent_cpu':3,'hands':'free'}",
        0,
        "1240 java: runs 83.0 %, waits 17.0 %, may use CPUs 0-1 (0-3 before), last on CPU 1 (node 0), lent "
        "CPU 3");
    check_sentence(
        sentence_task,
        "{'tid':5,'comm':'x','run_permille':0,'wait_permille':0,'allowed':'2','original':'','last_cpu':-1,"
        "'node':-1,'lent_cpu':-1,'hands':'foreign'}",
        0, "5 x: runs 0.0 %, waits 0.0 %, may use CPUs 2, left alone: foreign");
}

static void test_lease(void **state)
{
    check_sentence(
        sentence_lease,
        "{'cpu':3,'node':1,'pid':1234,'tid':1240,'comm':'java','age_usec':400000,'left_usec':29600000}", 0,
        "CPU 3 (node 1) to java[1234/1240] since 400 ms, for 29 s at most");
}

/* Each name in plan.h is one for which units are defined. */
static void test_every_reason_and_rule_has_a_sentence(void **state)
{
    for (int i = 0; i < PLAN_REASON_MAX; i++) {
        CLEANUP(view_text_done) ViewText text = {0};
        CLEANUP_JSON json_object *object = json_object_new_object();

        assert_int_equal(json_set_text(object, "reason", plan_reason_name((PlanReason)i)), 0);
        assert_int_equal(json_set_text(object, "text", plan_reason_text((PlanReason)i)), 0);
        sentence_refusal(object, 0, &text);
        assert_non_null(strstr(text.text, plan_reason_name((PlanReason)i)));
        assert_non_null(strstr(text.text, plan_reason_text((PlanReason)i)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_lend, utc),
        cmocka_unit_test_setup(test_home_of_a_process, utc),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_who_is_refused),
        cmocka_unit_test(test_task),
        cmocka_unit_test_setup(test_memory_moves_to_its_users, utc),
        cmocka_unit_test(test_lease),
        cmocka_unit_test(test_every_reason_and_rule_has_a_sentence),
    };

    return cmocka_run_group_tests_name("ctl/sentence", tests, NULL, NULL);
}
