#!/bin/sh
# Lists the lines of text files that look like tasks: open boxes, and words such as "todo", "action" or "by Friday".
# Usage: tasks.sh FILE...
if [ $# -eq 0 ]; then
    echo "usage: tasks.sh FILE..." >&2
    exit 2
fi
exec awk '
    FNR == 1 { files++ }
    /^[ \t]*[-*] \[ \]/ || tolower($0) ~ /(^|[^a-z])(todo|to do|action|task|must|should|will|by (mon|tues|wednes|thurs|fri|satur|sun)day|by tomorrow)([^a-z]|$)/ {
        printf "%s:%d: %s\n", FILENAME, FNR, $0
        found++
    }
    END { printf "%d line(s) that look like tasks in %d file(s)\n", found, files }
' "$@"
