# What a script of a CI does with svc, and what it expects: `expect <exit code> <stdout> <command>`. Run by bash, dash and zsh in an
# empty directory (test/journey/shell.test.ts), with svc on PATH, FAKE_AGENT, PORT and OTHER_PORT, and SMALL, a small disk, or "".
# Prints one line for each command: `ok 7 svc ctl ...`, or `not ok` with what came instead.
set -u
number=0
server=
trap '[ -z "$server" ] || kill -9 "$server" 2> /dev/null' EXIT
trap 'exit 1' TERM

expect() {
  code=$1 wanted=$2
  shift 2
  number=$((number + 1))
  "$@" > out 2> err < "${input:-/dev/null}"
  got=$?
  check "$code" "$wanted" "$got" "$*"
}

# In `wanted`, <id> is any id and <ms> any time.
check() {
  text=$(cat out)
  case $2 in
    *'<id>'* | *'<ms>'*)
      text=$(sed -E 's/[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/<id>/g; s/1[0-9]{12}/<ms>/g' out)
      ;;
  esac
  if [ "$3" = "$1" ] && [ "$text" = "$2" ]; then
    echo "ok $number $4"
  else
    echo "not ok $number $4: exit code $3 instead of $1; stdout: $text; stderr: $(cat err)"
  fi
}

# The stderr of the command before has to have these words.
said() {
  grep -qF -- "$1" err || echo "not ok $number stderr has no \"$1\": $(cat err)"
}

# Starts a command beside this script; `ended <exit code> <stdout>` waits for it.
beside() {
  number=$((number + 1))
  words=$*
  # Not what the command before has said.
  : > out
  : > err
  "$@" > out 2> err < /dev/null &
  child=$!
}

ended() {
  wait "$child"
  check "$1" "$2" $? "$words"
}

# Runs a command again and again until it succeeds.
until_true() {
  tries=0
  until "$@" > /dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || { echo "not ok $number waited for in vain: $*"; exit 1; }
    sleep 0.05
  done
}

# Waits until a file has these words.
until_in() {
  until_true grep -qF -- "$2" "$1"
}

accepted() {
  sed -n 's/^accepted \([0-9a-f-]*\).*/\1/p' "${1:-err}"
}

serve() {
  svc serve 2>> serve.log &
  server=$!
  until_true svc health
}

kill_server() {
  kill -9 "$server"
  # The shell would say that it was killed.
  { wait "$server"; } 2> /dev/null
}

is_running() {
  [ "$(field status task "$1")" = running ]
}

field() {
  svc ctl "$2" get "$3" | sed -n "s/^$1	//p"
}

export XDG_CONFIG_HOME="$PWD/xdg"
here=http://127.0.0.1:$PORT
mkdir data xdg
cat > config.yaml << END
server: { port: $PORT }
bee: { quiet_window: 0ms }
shutdown_grace: 0ms
engines:
  default: fake
  fake: { kind: command, command: $FAKE_AGENT }
  gone: { kind: command, command: /no/such/program }
END
export SVC_AUTH_PASSWORD=pass

# No server, and other addresses.
expect 6 "not ready" svc health
expect 6 "" svc ctl worker list
said "Cannot reach the service at $here: it may not be running. Start it with \`svc serve\`."
expect 6 "" svc ctl run Ada 'say hello'
expect 6 "" env SVC_TOKEN=x SVC_URL=http://no-such-host.invalid svc ctl worker list
said "Cannot find the host no-such-host.invalid"
expect 2 "" env SVC_URL=localhost:8080 svc ctl worker list
said "SVC_URL"
expect 6 "" svc ctl worker list --json
said '"code":"unavailable"'

# Wrong usage, which needs no server.
expect 2 "" svc ctl wokrer list
said "worker"
expect 2 "" svc ctl worker create
said "--name"
expect 2 "" svc ctl task list
expect 2 "" svc ctl worker list --page two
said "--page"
expect 2 "" svc ctl worker list --page 1 --page 2
expect 2 "" svc wokrer
expect 0 "valid	true" sh -c "svc ctl config validate | head -1"
printf 'server: { prot: 1 }\n' > wrong.yaml
expect 2 "" svc ctl config validate -c wrong.yaml
expect 2 "" svc serve -c wrong.yaml

# A server, and workers.
serve
expect 0 "ready" svc health
expect 0 "" svc ctl worker list
expect 0 "<id>" svc ctl worker create -n Ada -q
ada=$(cat out)
expect 0 "$ada" svc ctl worker get Ada -q
expect 0 "<id>	Ada	idle			<ms>" svc ctl worker list
expect 3 "" svc ctl worker get Nobody
expect 0 "<id>" svc ctl worker create -n ada -q
second=$(cat out)
said "warning"
expect 2 "" svc ctl worker get Ada
said "$second"
expect 0 "$second" svc ctl worker delete "$second" -q
expect 3 "" svc ctl worker get "$second"
expect 0 "<id>" svc ctl worker create -n Gone --engine gone -q
gone=$(cat out)
said "cannot be used"
expect 0 "unavailable" sh -c "svc ctl worker list --id Gone | cut -f 3"
expect 0 "$gone" svc ctl worker delete Gone -q
expect 5 "" svc serve
expect 1 "" env SVC_DATA_DIR=elsewhere SVC_AUTH_PASSWORD= svc serve
said "Cannot listen on 127.0.0.1:$PORT: the port is in use"
if grep -q password err; then echo "not ok $number a password was printed"; fi

# Work, and its outcome.
expect 0 "hello" svc ctl run Ada 'say hello'
expect 0 "two words" svc ctl run Ada 'say two words'
printf 'say from a file\n' > question
input=question
expect 0 "from a file" svc ctl run Ada -
input=/dev/null
expect 2 "" svc ctl run Ada -
expect 8 "" svc ctl run Ada 'exit 3'
said "about to exit 3"
expect 3 "" svc ctl run Nobody 'say hello'
expect 124 "" svc ctl run Ada --timeout 300ms 'sleep 60'
task=$(accepted)
until_true is_running "$task"
expect 0 "<id>" svc ctl execution list --worker-id Ada --status running -q
expect 0 "<id>" svc ctl execution cancel "$(cat out)" -q
expect 8 "$task" svc ctl task wait "$task" -q
expect 5 "" svc ctl task cancel "$task"
create="svc ctl task create --message-id nightly --worker-id Ada --type immediate"
expect 0 "result	done" sh -c "$create --instruction 'say done' --wait | grep ^result"
expect 0 "<id>" sh -c "$create --instruction 'say once' --idempotency-key one -q"
first=$(cat out)
expect 0 "$first" sh -c "$create --instruction 'say once' --idempotency-key one -q"
expect 5 "" sh -c "$create --instruction 'say twice' --idempotency-key one -q"
expect 0 "$first" svc ctl task wait "$first" -q
expect 0 "<id>" svc ctl run Ada --in 1h --no-wait -q 'say later'
later=$(cat out)
expect 0 "$later" svc ctl task cancel "$later" -q
expect 8 "<id>" svc ctl run Ada --cron '61 * * * *' -q 'say never'

# A schedule, and its runs by number.
expect 0 "<id>" svc ctl run Ada --cron '0 0 1 1 *' -q 'say a year'
yearly=$(cat out)
expect 0 "$yearly" svc ctl task run --wait "$yearly" -q
expect 0 "$yearly" svc ctl task wait "$yearly" --run 1 -q
expect 124 "$yearly" svc ctl task wait "$yearly" --run 2 --timeout 200ms -q
expect 0 "run_no	1" sh -c "svc ctl task get $yearly | grep ^run_no"
expect 0 "last_status	completed" sh -c "svc ctl task get $yearly | grep ^last_status"

expect 0 "$yearly" svc ctl schedule run --wait "$yearly" -q
expect 2 "" svc ctl schedule run --timeout 1s "$yearly"
expect 0 "$yearly" svc ctl schedule pause "$yearly" -q
expect 0 "$yearly" svc ctl schedule resume "$yearly" -q

# A question of an agent, answered by the script: in its run, and after it.
beside svc ctl chat --session asking "@Ada svc ctl ask 'Which colour?' --option Red --option Blue --wait 60s"
until_in out 'Which colour?'
question=$(svc ctl question list --status open -q)
svc ctl question answer "$question" 2 > answered 2>&1
wait "$child"
got=$?
cp answered err
sed -n '$p' out > last
cp last out
check 0 "Blue" $got "$words"
expect 5 "" svc ctl question answer "$question" 1
expect 0 "<id>" sh -c "svc ctl chat --session asking \"@Ada svc ctl ask 'And which shape?' > asked\" > words && svc ctl question list --status open -q"
question=$(cat out)
expect 2 "" svc ctl chat --reply-to "$question" round
expect 0 "$question" svc ctl question cancel "$question" -q
expect 0 "<id>" svc ctl run Ada --cron '0 0 1 1 *' -q 'exit 3'
failing=$(cat out)
expect 8 "$failing" svc ctl schedule run --wait "$failing" -q
said "run 1 of task $failing failed"
expect 0 "$failing" svc ctl schedule delete "$failing" -q

# Many at once: each has its own answer.
for n in 1 2 3 4; do
  svc ctl run Ada "say run $n" > "run$n" 2> "run$n.err" < /dev/null &
  eval "run$n=$!"
  svc ctl chat "@Ada say chat $n" > "chat$n" 2> "chat$n.err" < /dev/null &
  eval "chat$n=$!"
done
for n in 1 2 3 4; do
  for kind in run chat; do
    number=$((number + 1))
    eval "wait \$$kind$n"
    got=$?
    cp "$kind$n" out
    cp "$kind$n.err" err
    check 0 "$kind $n" $got "svc ctl $kind, at once"
  done
done
svc ctl task run --wait "$yearly" -q > one 2> one.err < /dev/null &
one=$!
expect 0 "$yearly" svc ctl task run --wait "$yearly" -q
number=$((number + 1))
wait $one
got=$?
cp one out
cp one.err err
check 0 "$yearly" $got "svc ctl task run --wait, twice at once"

# Conversations.
expect 0 "first" svc ctl chat --session work '@Ada say first'
expect 0 "second" svc ctl chat --last '@Ada say second'
expect 0 "third" svc ctl chat --session work --worker Ada 'say third'
expect 2 "" svc ctl chat --last --session work 'say no'
expect 8 "" sh -c "svc ctl chat '@Ada exit 1' > words; got=\$?; grep -q failed words || echo no words; exit \$got"
expect 0 "third" sh -c "svc ctl message list-outbound --page-size 2 2> /dev/null | grep -o third"

# Interrupted: the work goes on, and the script can, too.
beside svc ctl run Ada 'sleep 60'
until_in err accepted
kill -INT "$child"
ended 130 ""
task=$(accepted)
until_true is_running "$task"
expect 0 "<id>" svc ctl execution cancel "$(field execution_id task "$task")" -q
beside svc ctl events -f --after 0
until_in out execution.completed
kill -INT "$child"
wait "$child"
got=$?
: > out
check 130 "" $got "svc ctl events -f"

# The server is killed while a script waits, and comes back: the answer comes as if nothing had been.
beside svc ctl run Ada 'sleep 1'
until_in err accepted
kill_server
serve
ended 0 "slept 1"
beside svc ctl run Ada --reconnect 100ms 'sleep 1'
until_in err accepted
task=$(accepted)
kill_server
ended 6 ""
said "svc ctl task wait $task"
serve
expect 0 "$task" svc ctl task wait "$task" -q
expect 0 "run_count	2" sh -c "svc ctl task get $task | grep ^run_count"

# Tokens and logins.
expect 0 "<id>" svc ctl token create -n short --scopes read:workers --expires-in 1500ms --token-file short.token -q
expect 2 "" svc ctl token create -n short --scopes read:workers --token-file short.token -q
until_true sh -c '! SVC_TOKEN_FILE=short.token svc ctl whoami'
expect 4 "" env SVC_TOKEN_FILE=short.token svc ctl worker list
said "expired"
expect 4 "" env SVC_TOKEN=nonsense svc ctl worker list
expect 0 "<id>" svc ctl token create -n reader --scopes read:workers --token-file reader.token -q
expect 0 "$ada" env SVC_TOKEN_FILE=reader.token svc ctl worker list -q
expect 4 "" env SVC_TOKEN_FILE=reader.token svc ctl worker create -n Eve
expect 4 "" env SVC_DATA_DIR=elsewhere SVC_URL="$here" svc ctl worker list
said "svc ctl login"
printf 'wrong\n' > password
input=password
expect 4 "" svc ctl login --password-stdin "$here"
printf 'pass\n' > password
expect 0 "" svc ctl login --password-stdin "$here"
input=/dev/null
expect 0 "$ada" env SVC_DATA_DIR=elsewhere svc ctl worker list -q
expect 0 "" svc ctl logout
expect 3 "" svc ctl logout

# Another program, and no TLS.
expect 6 "" env SVC_TOKEN=x SVC_URL="https://127.0.0.1:$PORT" svc ctl worker list
said "Cannot use TLS"
expect 3 "" env SVC_TOKEN=x SVC_URL="$here/docs" svc ctl worker list
said "no such route"

# What reads the output ends early, or has no room.
expect 0 "" sh -c "svc ctl events | head -c 0; svc ctl worker list -q | true"
if [ -w /dev/full ]; then
  expect 1 "" sh -c "svc ctl worker list > /dev/full"
  said "No space left"
fi

# Files and the rest of what a CI asks for.
expect 0 "tone" svc ctl memory save --scope global --key tone --value short -q
expect 0 "short" svc ctl memory get --scope global --key tone
expect 0 "" sh -c "svc ctl system backup copy.tar > /dev/null"
expect 5 "" svc ctl system backup copy.tar
expect 0 "<id>" sh -c "svc ctl inbox -q | head -1"
expect 0 "$yearly" svc ctl queue list -q

# The disk of the database is full: refused with a code, and fine again when there is room.
if [ -n "$SMALL" ]; then
  kill -TERM "$server"
  wait "$server"
  SVC_DATABASE__URL=file:$SMALL/svc.db svc serve 2>> small.log &
  server=$!
  until_true svc health
  expect 0 "<id>" svc ctl worker create -n Small -q
  cat /dev/zero > "$SMALL/filler" 2> /dev/null
  head -c 200000 /dev/zero | tr '\0' x > long
  input=long
  n=0
  until [ $n = 30 ] || grep -q 'disk' err; do
    svc ctl run Small --no-wait - > out 2> err < long
    n=$((n + 1))
  done
  expect 6 "" svc ctl run Small --no-wait -
  said "disk of the database is full"
  input=/dev/null
  expect 0 "Small" sh -c "svc ctl worker get Small | sed -n 's/^name	//p'"
  rm "$SMALL/filler"
  until_true svc ctl worker update Small --description roomy
  expect 0 "after" svc ctl run Small 'say after'
fi

# An orderly end.
kill -TERM "$server"
number=$((number + 1))
wait "$server"
got=$?
: > out
: > err
check 0 "" $got "svc serve, after TERM"
expect 6 "" svc ctl worker list
