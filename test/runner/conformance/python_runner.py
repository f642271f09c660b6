#!/usr/bin/env python3
"""A second runner, written from docs/reference/runner-protocol.md alone. It runs programs with `sh`, on Linux."""
import collections, fcntl, json, os, shutil, signal, subprocess, sys, threading, time, urllib.error, urllib.request, uuid

URL, ROOT = os.environ["SVC_RUNNER_URL"], os.environ["SVC_RUNNER_WORK_ROOT"]
TOKEN = open(os.environ["SVC_RUNNER_TOKEN_FILE"]).read().strip()
PROCESS, GRACE_S, STOP_S, PART = str(uuid.uuid4()), 5, 30, 512 * 1024
RESULT, CUT = 200 * 1024, "\n[cut: the log has more]"
NO_USAGE = {"input_tokens": None, "output_tokens": None, "cost_usd": None}
runs, lock, directories = {}, threading.RLock(), collections.defaultdict(threading.Lock)
state = {"epoch": 0, "times": None, "stops": 0}


Refused = type("Refused", (Exception,), {})
Unanswered = type("Unanswered", (Exception,), {})


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirect)


def clean(value):
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")
    if isinstance(value, dict):
        return {key: clean(one) for key, one in value.items()}
    return [clean(one) for one in value] if isinstance(value, list) else value


def send(path, body, timeout, of_run=False, raw=False):
    is_bytes = isinstance(body, bytes)
    data = body if is_bytes or body is None else json.dumps(clean(body)).encode()
    headers = {"Authorization": "Bearer " + TOKEN}
    if data is not None:
        headers["Content-Type"] = "application/octet-stream" if is_bytes else "application/json"
    try:
        with opener.open(urllib.request.Request(URL + path, data, headers), timeout=timeout) as answer:
            return answer.read() if raw else json.loads(answer.read())
    except urllib.error.HTTPError as error:
        try:
            problem = json.loads(error.read())
            known = isinstance(problem["code"], str) and isinstance(problem["detail"], str)
        except Exception:
            known = False
        if known and error.code in (401, 403, 409):
            raise Refused(error.code)
        if of_run and (error.code == 413 or known and error.code in (400, 404)):
            raise Refused(error.code)
        raise Unanswered(str(error))
    except Exception as error:
        raise Unanswered(str(error))


def wait_until(check, seconds):
    until = time.monotonic() + seconds
    while not check() and time.monotonic() < until:
        time.sleep(0.02)


def repeat(path, body, timeout, go_on, **more):
    pause = 0.25
    while True:
        try:
            return send(path, body, timeout, **more)
        except Unanswered:
            wait_until(lambda: not go_on(), pause)
            if not go_on():
                raise
            pause = min(pause * 2, 5)


def kill_marked(run_id, number):
    """Sends a signal to every process with the mark of the run. Returns how many there were."""
    found, mark = 0, b"SVC_RUN_ID=" + run_id.encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in open(f"/proc/{pid}/environ", "rb").read().split(b"\0"):
                os.kill(int(pid), number)
                found += 1
        except OSError:
            pass
    return found


def end_processes(run_id, grace=GRACE_S):
    kill_marked(run_id, signal.SIGTERM)
    wait_until(lambda: not kill_marked(run_id, 0), grace)
    while kill_marked(run_id, signal.SIGKILL):
        time.sleep(0.02)


class Run:
    def __init__(self, order, epoch, sent_at):
        self.order, self.epoch, self.lease_from = order, epoch, sent_at
        self.id, self.run_id = order["execution"]["execution_id"], order["execution"]["run_id"]
        self.lost, self.why, self.began, self.done = False, None, None, False
        self.raw, self.sent, self.mutex = bytearray(), 0, threading.Lock()
        secrets = [order["token"], *order["secrets"].values(), *order["mcp"]["secrets"]]
        self.secrets = sorted((one.encode() for one in secrets if len(one) >= 8), key=len, reverse=True)

    def wanted(self):
        return not self.lost

    def path(self, what):
        return f"/api/runs/{self.id}/{what}"

    def interrupt(self, why):
        with lock:
            if self.why is None:
                self.why = why
                threading.Thread(target=end_processes, args=(self.run_id,), daemon=True).start()

    def lose(self):
        self.lost = True
        self.interrupt("lost")

    def mask(self, data):
        for one in self.secrets:
            data = data.replace(one, b"*" * len(one))
        return data

    def send_log(self):
        """Sends the log until the program has ended. Masks don't change the length, so offsets stay the same."""
        limit = self.order["max_log_bytes"]
        hold = max(map(len, self.secrets), default=0)
        while self.wanted():
            is_last = self.done
            with self.mutex:
                log = self.mask(bytes(self.raw))
            # A secret may have arrived in part.
            log = log if is_last else log[:max(0, len(log) - hold)]
            if len(log) > limit:
                log = log[:limit] + b"\n[cut: the log is too long]\n"
            if self.sent >= len(log):
                if is_last:
                    return
                time.sleep(0.1)
                continue
            part, offset = log[self.sent:self.sent + PART], self.sent
            query = f"log?epoch={self.epoch}&offset={offset}&kind=log"
            size = repeat(self.path(query), part, 30, self.wanted, of_run=True)["size"]
            self.sent = offset + len(part) if size == offset else min(size, offset + len(part))

    def send_start(self):
        events = {"epoch": self.epoch, "events": [{"no": 1, "kind": "started"}]}
        repeat(self.path("events"), events, 30, self.wanted, of_run=True)

    def environment(self, context):
        order = self.order
        names = ["run_id", "execution_id", "task_id", "worker_id", "session_key", "message_id"]
        own = {"SVC_" + name.upper(): order["execution"][name] for name in names}
        base = {name: os.environ[name] for name in ("PATH", "HOME", "SHELL") if name in os.environ}
        return {**base, "LANG": "C.UTF-8", "TMPDIR": "/tmp", "TZ": order["time_zone"], **order["env"], **order["secrets"],
                **own, "SVC_URL": URL, "SVC_TOKEN": order["token"], "SVC_CONTEXT_FILE": context}

    def work(self):
        order = self.order
        if order["setup_error"]:
            return fail("setup", order["setup_error"])
        if order["isolation"]["box"] is not None:
            return fail("isolation", "Cannot start: this runner has no boxes")
        folder = f"{ROOT}/files/{self.id}"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        for name in order["files"]:
            source = self.path("media/" + urllib.request.quote(name, safe=""))
            data = repeat(source, None, 600, lambda: self.why is None, of_run=True, raw=True)
            with open(f"{folder}/{os.path.basename(name)}", "wb") as file:
                file.write(data)
        os.makedirs(order["work_dir"], exist_ok=True)
        context = f"{ROOT}/open/{self.id}.context"
        with open(context, "w") as file:
            file.write(order["briefing"]["context"])
        env = self.environment(context)
        outcome = self.engine(env, "")
        return self.check(outcome, env) if order["verify"] else outcome

    def engine(self, env, more):
        code, text = self.program(["sh"], env, (self.order["execution"]["instruction"] + more).encode(), None)
        if self.why is not None:
            return fail("cancelled", "the run was ended", text=text)
        if code != 0:
            return fail("exit_code", f"exit code {code}", text=text, exitCode=code)
        return {"status": "completed", "text": text, "failure": "", "error": "", "exitCode": 0}

    def check(self, outcome, env):
        verify = self.order["verify"]
        names, values = ["SVC_TOKEN", *self.order["secrets"]], [self.order["token"], *self.order["secrets"].values()]
        safe = {name: value for name, value in env.items() if name not in names and value not in values}
        for attempt in range(1, verify["attempts"] + 2):
            if outcome["status"] == "failed":
                return {**outcome, "verify": {"status": None, "attempts": attempt - 1}}
            try:
                code, words = self.program(verify["command"], safe, b"", verify["timeout_ms"] / 1000)
            except OSError as error:
                code, words = None, f"cannot start: {error}"
            if code == 0:
                return {**outcome, "verify": {"status": "passed", "attempts": attempt}}
            if attempt <= verify["attempts"]:
                outcome = self.engine(env, "\n\n" + words)
        return {**outcome, "status": "failed", "failure": "verify_failed", "error": "the check failed",
                "verify": {"status": "failed", "attempts": attempt}}

    def program(self, command, env, text, timeout):
        with lock:
            if self.why is not None:
                return None, ""
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            child = subprocess.Popen(command, cwd=self.order["work_dir"], env=env, start_new_session=True, **pipes)
        if self.began is None:
            self.began = time.monotonic()
            self.start_report = start_quietly(self.send_start)
        result, result_max = bytearray(), RESULT + max(map(len, self.secrets), default=0)

        def read(stream, is_result):
            while chunk := os.read(stream.fileno(), 65536):
                with self.mutex:
                    self.raw += chunk
                if is_result:
                    result.extend(chunk[:max(0, result_max - len(result))])

        is_check = timeout is not None
        readers = [start_quietly(read, child.stdout, True), start_quietly(read, child.stderr, is_check)]
        start_quietly(lambda: (child.stdin.write(text), child.stdin.close()))
        try:
            child.wait(timeout)
        except subprocess.TimeoutExpired:
            pass
        # The program may have left processes behind.
        end_processes(self.run_id)
        child.wait()
        for one in readers:
            one.join()
        code = child.returncode
        return (code if code >= 0 else None), limit_result(self.mask(bytes(result)))

    def run(self):
        log = start_quietly(self.send_log)
        self.start_report = None
        try:
            with open(f"{ROOT}/open/{self.id}", "w") as file:
                file.write(self.run_id)
            with directories[os.path.realpath(self.order["work_dir"])]:
                outcome = self.work()
        except Exception as error:
            outcome = fail("spawn_failed", f"Cannot start: {error!r}")
        self.done = True
        for one in (log, self.start_report):
            if one is not None:
                one.join()
        ran_ms = None if self.began is None else (time.monotonic() - self.began) * 1000
        rest = {"usage": NO_USAGE, "sessionId": "", "sessionUsage": NO_USAGE, "reset": None}
        end = {"epoch": self.epoch, "ran_ms": ran_ms, "interruption": self.why, "outcome": {**rest, **outcome}}
        refusal = {**end, "outcome": {**rest, **fail("engine_error", "the service refused the outcome")}}
        for one in (end, refusal):
            try:
                if self.wanted():
                    repeat(self.path("end"), one, 30, self.wanted, of_run=True)
                break
            except Unanswered:
                break
            except Refused as error:
                if error.args[0] in (401, 403, 409):
                    break
        forget(self.id)
        runs.pop(self.id, None)


def limit_result(data):
    text = clean(data.decode("utf-8", "replace"))
    if len(text.encode()) <= RESULT:
        return text
    return text.encode()[:RESULT - len(CUT)].decode("utf-8", "ignore") + CUT


def fail(failure, error, **more):
    return {"status": "failed", "text": "", "failure": failure, "error": error, "exitCode": None, **more}


def start_quietly(work, *args):
    def run():
        try:
            work(*args)
        except (Refused, Unanswered, OSError):
            pass  # The run continues: a beat or the end shows whether it is lost.

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def forget(run):
    shutil.rmtree(f"{ROOT}/files/{run}", ignore_errors=True)
    for name in (f"{ROOT}/open/{run}.context", f"{ROOT}/open/{run}"):
        if os.path.exists(name):
            os.remove(name)


def now():
    return time.time(), time.monotonic()


def beat():
    """Sends beats, and ends runs before their leases end."""
    beat_at = 0
    while True:
        time.sleep(0.05)
        mine, times = list(runs.values()), state["times"]
        for run in mine:
            gone = max(one - other for one, other in zip(now(), run.lease_from)) * 1000
            if gone > times["lease_ms"] - times["margin_ms"] - GRACE_S * 1000 - 2000:
                run.interrupt("lost")
        if mine and time.monotonic() >= beat_at:
            beat_at = time.monotonic() + times["beat_ms"] / 1000
            start_quietly(send_beat, mine, times)


def send_beat(mine, times):
    sent_at, epoch = now(), state["epoch"]
    body = {"process": PROCESS, "epoch": epoch, "running": [run.id for run in mine]}
    try:
        answer = send("/api/runners/beat", body, max(1, times["beat_ms"] / 1000))
    except Refused:
        if epoch == state["epoch"]:
            for run in mine:
                run.lose()
        return
    found = {one["id"]: one for one in answer["runs"]}
    for run in mine:
        if run.id not in found:
            run.lose()
            continue
        run.lease_from = max(run.lease_from, sent_at, key=lambda one: one[1])
        if found[run.id]["stop"]:
            run.interrupt(found[run.id]["stop"])


def claim_all(place):
    refusals = 0
    while not state["stops"]:
        if len(runs) >= 2:
            time.sleep(0.02)
            continue
        engines = [{"name": "sh", "agent": False, "gateways": []}]
        claim = {"request_id": str(uuid.uuid4()), "process": PROCESS, "place": place, "epoch": state["epoch"],
                 "protocol": 1, "version": "python", "work_root": ROOT, "max_runs": 2, "engines": engines,
                 "box": False, "wait_ms": 25000}
        answers = []
        thread = start_quietly(ask, claim, answers)
        while thread.is_alive() and not state["stops"]:
            thread.join(0.02)
        if not answers and state["stops"]:
            last = {**claim, "wait_ms": 0}
            start_quietly(lambda: answers.append((now(), send("/api/runners/claim", last, 2)))).join()
            if not answers:
                return 0
        if isinstance(answers[0], Refused):
            refusals += 1
            for run in list(runs.values()):
                run.lose()
            while runs:
                time.sleep(0.02)
            if answers[0].args[0] != 409 or refusals > 1:
                return 4
            if state["epoch"] == 0:
                time.sleep(5)
            state["epoch"] = 0
            continue
        sent_at, answer = answers[0]
        state["epoch"], state["times"] = answer["epoch"], answer
        if answer["run"] is not None:
            run = Run(answer["run"], answer["epoch"], sent_at)
            runs[run.id] = run
            if state["stops"]:
                run.why = "shutdown"
            threading.Thread(target=run.run, daemon=True).start()
    return 0


def ask(claim, answers):
    sent_at = now()
    try:
        answers.append((sent_at, repeat("/api/runners/claim", claim, 35, lambda: not state["stops"])))
    except Refused as error:
        answers.append(error)


def stop(*_):
    state["stops"] += 1


def main():
    for name in ("open", "files", "workers"):
        os.makedirs(f"{ROOT}/{name}", mode=0o700, exist_ok=True)
    own = open(f"{ROOT}/lock", "w")
    try:
        fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit("another runner uses this directory")
    signal.signal(signal.SIGTERM, stop)
    for name in [one for one in os.listdir(f"{ROOT}/open") if not one.endswith(".context")]:
        end_processes(open(f"{ROOT}/open/{name}").read(), 0)
        forget(name)
    if not os.path.exists(f"{ROOT}/place"):
        with open(f"{ROOT}/place", "w") as file:
            file.write(str(uuid.uuid4()))
    threading.Thread(target=beat, daemon=True).start()
    code = claim_all(open(f"{ROOT}/place").read())
    wait_until(lambda: not runs or state["stops"] > 1, STOP_S)
    for run in list(runs.values()):
        run.interrupt("shutdown")
    wait_until(lambda: not runs, GRACE_S + 12)
    sys.exit(code)


main()
