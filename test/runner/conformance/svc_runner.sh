#!/bin/sh
# Starts `svc runner` for the conformance program. $SVC_PROGRAM is the command of svc, with its words on separate lines.
set -eu
config="$SVC_RUNNER_WORK_ROOT.yaml"
printf 'work_root: %s\nmax_runs: 2\nengines: { sh: { kind: command, command: sh } }\n' \
  "$SVC_RUNNER_WORK_ROOT" > "$config"
IFS='
'
set -f
exec ${SVC_PROGRAM:-svc} runner --url "$SVC_RUNNER_URL" --token-file "$SVC_RUNNER_TOKEN_FILE" -c "$config" "$@"
