#!/bin/sh
# Writes to a libSQL server, unlike its /health. Exits with 1 without a write within 5 s. `sqld-check.sh http://127.0.0.1:8080`
body='{"requests":[
  {"type":"execute","stmt":{"sql":"create table if not exists sqld_check (at text)"}},
  {"type":"execute","stmt":{"sql":"delete from sqld_check"}},
  {"type":"execute","stmt":{"sql":"insert into sqld_check values (current_timestamp)"}},
  {"type":"close"}]}'
answer=$(curl --fail --silent --show-error --max-time 5 --header 'content-type: application/json' --data "$body" "$1/v2/pipeline") || exit 1
# A response with status 200 can contain errors.
case $answer in
  *'"type":"error"'* | '') echo "$answer" >&2; exit 1 ;;
esac
