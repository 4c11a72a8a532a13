# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Completion of numaplacectl(1) for bash.

# Puts those of these options that the command line has, with their values, into the caller's array `given`.
__numaplacectl_given()
{
    local i word value

    given=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]%%=*}
        [[ " $* " == *" $word "* ]] || continue
        if [[ ${COMP_WORDS[i]} == *=* ]]; then
            value=${COMP_WORDS[i]#*=}
        else
            [[ ${COMP_WORDS[i + 1]-} == = ]] && ((++i))
            ((++i < COMP_CWORD)) || break
            value=${COMP_WORDS[i]}
        fi
        value=${value//[\"\'\\]/}
        given+=("$word=${value/#\~\//$HOME/}")
    done
}

# Names of the daemon's workloads; nothing when it does not run.
__numaplacectl_workloads()
{
    local -a given
    __numaplacectl_given --socket
    numaplacectl workloads --no-legend "${given[@]}" 2> /dev/null | sed 's/ .*//'
}

__numaplacectl_pids()
{
    ps -eo pid= 2> /dev/null
}

__numaplacectl_policies()
{
    local -a given
    __numaplacectl_given --policy-dir --root
    numaplacectl policy list --no-legend "${given[@]}" 2> /dev/null | sed 's/ .*//'
}

# Files (-f) or directories (-d); what readline takes for names it quotes, and a slash follows those of directories.
__numaplacectl_files()
{
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}

_numaplacectl()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local verbs="status diagnose topology workloads show tasks explain moves top report metrics enable disable policy pause resume release run simulate replay reload"
    local common="-h --help --version --socket= --json= --no-legend --no-pager"
    local verb="" sub="" word options="" i

    COMPREPLY=()
    # readline splits at "=": an option's value is a word of its own.
    if [[ $cur == = ]]; then
        cur=""
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    case $prev in
        --json)
            mapfile -t COMPREPLY < <(compgen -W "pretty short off" -- "$cur")
            return
            ;;
        --html | --output | --plot | --record | --socket | --xml)
            __numaplacectl_files -f
            return
            ;;
        --policy)
            mapfile -t COMPREPLY < <(compgen -W "$(__numaplacectl_policies)" -- "$cur")
            return
            ;;
        --policy-dir | --root)
            __numaplacectl_files -d
            return
            ;;
        -n | --lines | --rehearse | --seconds | --seeds | --since | --synthetic)
            return
            ;;
    esac

    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        # Behind run and its options another program's words begin.
        if [[ $verb == run && $word != -* && $word != = && ${COMP_WORDS[i - 1]} != @(=|--policy|--policy-dir|--socket|--json|--rehearse) ]]; then
            declare -F _command_offset > /dev/null && _command_offset "$i"
            return
        fi
        if [[ -z $verb && " $verbs " == *" $word "* ]]; then
            verb=$word
        elif [[ $verb == policy && -z $sub && $word != -* ]]; then
            sub=$word
        fi
    done

    case "$verb $sub" in
        "diagnose ") options="--seconds= --print-policy" ;;
        "topology ") options="--xml= --synthetic= --rehearse= --whole-machine" ;;
        "moves ") options="-f --follow -n --lines=" ;;
        "status " | "workloads " | "show ") options="--watch" ;;
        "top ") options="--once" ;;
        "report ") options="--since= --html=" ;;
        "metrics ") options="--output=" ;;
        "pause " | "resume " | "release ") options="--all" ;;
        "run ") options="--policy= --no-daemon --policy-dir= --rehearse=" ;;
        "enable " | "disable ") options="--policy-dir= --root= --runtime" ;;
        "simulate ") options="--policy-dir= --seeds= --plot= --record=" ;;
        "policy cat") options="--effective --policy-dir= --root=" ;;
        "policy verify") options="--policy-dir= --root= --xml= --synthetic= --rehearse= --whole-machine" ;;
        "policy "?*) options="--policy-dir= --root=" ;;
    esac

    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$common $options" -- "$cur")
        [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
        return
    fi
    case "$verb $sub" in
        " ") mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$cur") ;;
        "policy ") mapfile -t COMPREPLY < <(compgen -W "list cat verify match" -- "$cur") ;;
        "policy cat" | "enable " | "disable ") mapfile -t COMPREPLY < <(compgen -W "$(__numaplacectl_policies)" -- "$cur") ;;
        "policy verify" | "simulate " | "replay " | "top ") __numaplacectl_files -f ;;
        "diagnose ") mapfile -t COMPREPLY < <(compgen -W "$(__numaplacectl_pids)" -- "$cur") ;;
        "policy match" | "run ") mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
        "explain " | "resume " | "release ")
            mapfile -t COMPREPLY < <(compgen -W "$(__numaplacectl_workloads) $(__numaplacectl_pids)" -- "$cur")
            ;;
        "show " | "tasks " | "pause ")
            mapfile -t COMPREPLY < <(compgen -W "$(__numaplacectl_workloads)" -- "$cur")
            ;;
    esac
}

complete -F _numaplacectl numaplacectl
