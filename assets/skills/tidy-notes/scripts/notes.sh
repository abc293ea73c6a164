#!/bin/sh
# Prints text files with the numbers of their lines, and a star before lines that look like tasks: open boxes, and words
# such as "todo", "action" or "by Friday".
# Usage: notes.sh FILE...
if [ $# -eq 0 ]; then
    echo "usage: notes.sh FILE..." >&2
    exit 2
fi
exec awk '
    FNR == 1 && ARGC > 2 { print FILENAME ":" }
    {
        is_task = /^[ \t]*[-*] \[ \]/ || tolower($0) ~ /(^|[^a-z])(todo|to do|action|task|must|should|will|by (mon|tues|wednes|thurs|fri|satur|sun)day|by tomorrow)([^a-z]|$)/
        printf "%s %d: %s\n", is_task ? "*" : " ", FNR, $0
    }
' "$@"
