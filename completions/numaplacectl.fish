# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Completion of numaplacectl(1) for fish.

# Those of these options that the command line has, with their values.
function __numaplacectl_given
    set --local words (commandline -opc)
    set --local i 2
    while test $i -le (count $words)
        for option in $argv
            if test $words[$i] = $option -a $i -lt (count $words)
                echo $option=$words[(math $i + 1)]
            else if string match -q -- "$option=*" $words[$i]
                string replace -r '=~/' "=$HOME/" -- $words[$i]
            end
        end
        set i (math $i + 1)
    end
end

function __numaplacectl_workloads
    numaplacectl workloads --no-legend (__numaplacectl_given --socket) 2>/dev/null | sed 's/ .*//'
end

function __numaplacectl_policies
    numaplacectl policy list --no-legend (__numaplacectl_given --policy-dir --root) 2>/dev/null | sed 's/ .*//'
end

# At which word the command of run begins; fails where it has not begun.
function __numaplacectl_command
    set --local words (commandline -opc)
    set --local run no
    set --local i 2
    while test $i -le (count $words)
        switch $words[$i]
            case --policy --policy-dir --socket --json --rehearse
                set i (math $i + 1)
            case '-*'
            case '*'
                if test $run = yes
                    echo $i
                    return 0
                end
                test $words[$i] = run; or return 1
                set run yes
        end
        set i (math $i + 1)
    end
    return 1
end

function __numaplacectl_own
    not __numaplacectl_command >/dev/null
end

# What the command itself completes.
function __numaplacectl_complete_command
    set --local words (commandline -opc)
    set words $words[(__numaplacectl_command)..]
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end

set -l verbs status diagnose topology workloads show tasks explain moves top report metrics enable disable policy pause resume release run simulate replay reload
set -l policy_verbs list cat verify match
set -l no_verb "not __fish_seen_subcommand_from $verbs"
set -l in_policy "__fish_seen_subcommand_from policy"

complete -c numaplacectl -f

complete -c numaplacectl -n $no_verb -a status -d 'What the daemon sees, does and costs'
complete -c numaplacectl -n $no_verb -a diagnose -d 'Whether NUMA costs it anything, and what would help'
complete -c numaplacectl -n $no_verb -a topology -d 'Nodes, caches, CPUs, distances'
complete -c numaplacectl -n $no_verb -a workloads -d 'Workloads, their homes, loads and lent CPUs'
complete -c numaplacectl -n $no_verb -a show -d 'One workload'
complete -c numaplacectl -n $no_verb -a tasks -d 'Its threads, their masks and loads'
complete -c numaplacectl -n $no_verb -a explain -d 'Why it is placed as it is'
complete -c numaplacectl -n $no_verb -a moves -d 'Actions carried out'
complete -c numaplacectl -n $no_verb -a top -d 'Nodes, CPUs and workloads, once a second'
complete -c numaplacectl -n $no_verb -a report -d 'The last day, where workloads ran and what was done'
complete -c numaplacectl -n $no_verb -a metrics -d 'What the daemon counts, as OpenMetrics text'
complete -c numaplacectl -n $no_verb -a policy -d 'List, show, check and try policies'
complete -c numaplacectl -n $no_verb -a enable -d 'Place what a policy only observes'
complete -c numaplacectl -n $no_verb -a disable -d 'Put it back, and only observe it'
complete -c numaplacectl -n $no_verb -a pause -d 'Lend it nothing more'
complete -c numaplacectl -n $no_verb -a resume -d 'End a pause or a release'
complete -c numaplacectl -n $no_verb -a release -d 'Put its threads back and leave it alone'
complete -c numaplacectl -n $no_verb -a run -d 'Start a command under a policy'
complete -c numaplacectl -n $no_verb -a simulate -d 'Run a scenario on a model of a machine'
complete -c numaplacectl -n $no_verb -a replay -d 'Plan again from a record'
complete -c numaplacectl -n $no_verb -a reload -d 'Read configuration and policies again'

complete -c numaplacectl -n "$in_policy; and not __fish_seen_subcommand_from $policy_verbs" -a "$policy_verbs"
complete -c numaplacectl -n "$in_policy; and __fish_seen_subcommand_from cat" -a '(__numaplacectl_policies)'
complete -c numaplacectl -n "$in_policy; and __fish_seen_subcommand_from verify" -F
complete -c numaplacectl -n "__fish_seen_subcommand_from simulate replay top" -F
complete -c numaplacectl -n "$in_policy; and __fish_seen_subcommand_from match" \
    -a '(__fish_complete_pids; __fish_complete_command)'
complete -c numaplacectl -n "__fish_seen_subcommand_from run; and __numaplacectl_own" -a '(__fish_complete_command)'
complete -c numaplacectl -n "not __numaplacectl_own" -a '(__numaplacectl_complete_command)'
complete -c numaplacectl -n "__fish_seen_subcommand_from show tasks explain pause resume release" \
    -a '(__numaplacectl_workloads)'
complete -c numaplacectl -n "__fish_seen_subcommand_from explain resume release" -a '(__fish_complete_pids)'

complete -c numaplacectl -n __numaplacectl_own -s h -l help -d 'Show a summary'
complete -c numaplacectl -n __numaplacectl_own -l version -d 'Show the version'
complete -c numaplacectl -n __numaplacectl_own -l socket -r -F -d 'Socket of the daemon'
complete -c numaplacectl -n __numaplacectl_own -l json -x -a 'pretty short off' -d 'Print JSON'
complete -c numaplacectl -n __numaplacectl_own -l no-legend -d 'No titles above tables'
complete -c numaplacectl -n __numaplacectl_own -l no-pager -d 'Do not use a pager'
complete -c numaplacectl -n "__fish_seen_subcommand_from pause resume release" -l all -d 'Everything'
complete -c numaplacectl -n "__fish_seen_subcommand_from moves" -s f -l follow -d 'Print new ones until interrupted'
complete -c numaplacectl -n "__fish_seen_subcommand_from moves" -s n -l lines -x -d 'Only the last ones'
complete -c numaplacectl -n "__fish_seen_subcommand_from topology verify" -l xml -r -F -d 'A machine saved by hwloc'
complete -c numaplacectl -n "__fish_seen_subcommand_from topology verify" -l synthetic -x -d 'A machine described'
complete -c numaplacectl -n "__fish_seen_subcommand_from topology verify run; and __numaplacectl_own" -l rehearse -x -d 'Emulated nodes'
complete -c numaplacectl -n "__fish_seen_subcommand_from topology verify" -l whole-machine -d 'Include CPUs and nodes outside this cpuset'
complete -c numaplacectl -n "__fish_seen_subcommand_from cat" -l effective -d 'Values in force'
complete -c numaplacectl -n "__fish_seen_subcommand_from simulate" -l seeds -x -d 'Number of seeds'
complete -c numaplacectl -n "__fish_seen_subcommand_from simulate" -l plot -r -F -d 'Draw into this file'
complete -c numaplacectl -n "__fish_seen_subcommand_from simulate" -l record -r -F -d 'Write the plans into this file'
complete -c numaplacectl -n "__fish_seen_subcommand_from report" -l since -x -d 'The last SPAN'
complete -c numaplacectl -n "__fish_seen_subcommand_from report" -l html -r -F -d 'Write a self-contained page to this file'
complete -c numaplacectl -n "__fish_seen_subcommand_from metrics" -l output -r -F -d 'Replace this file'
complete -c numaplacectl -n "__fish_seen_subcommand_from enable disable" -a '(__numaplacectl_policies)'
complete -c numaplacectl -n "__fish_seen_subcommand_from enable disable" -l runtime -d 'Until the next boot'
complete -c numaplacectl -n "__fish_seen_subcommand_from diagnose" -a '(__fish_complete_pids)'
complete -c numaplacectl -n "__fish_seen_subcommand_from diagnose" -l seconds -x -d 'Seconds to observe'
complete -c numaplacectl -n "__fish_seen_subcommand_from diagnose" -l print-policy -d 'Print a policy that would help'
complete -c numaplacectl -n "__fish_seen_subcommand_from status workloads show" -l watch -d 'Again every two seconds'
complete -c numaplacectl -n "__fish_seen_subcommand_from top" -l once -d 'Print once'
complete -c numaplacectl -n "__fish_seen_subcommand_from run; and __numaplacectl_own" -l policy -x -a '(__numaplacectl_policies)' -d 'Policy to start it under'
complete -c numaplacectl -n "__fish_seen_subcommand_from run; and __numaplacectl_own" -l no-daemon -d 'Apply what needs no daemon'
complete -c numaplacectl -n "__fish_seen_subcommand_from policy simulate run enable disable; and __numaplacectl_own" -l policy-dir -r -a '(__fish_complete_directories)' -d 'Directory of policies'
complete -c numaplacectl -n "$in_policy; or __fish_seen_subcommand_from enable disable" -l root -r -a '(__fish_complete_directories)' -d 'Read policies and processes below this directory'
