import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { ROOT } from "../harness/house/tree.ts";
import { openApp } from "../harness/service/app.ts";
import { createTempDir, endProcess, SVC } from "../harness/service/process.ts";
import { createRemoteWorker, createTask } from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";

const COMMANDS = join(ROOT, "packaging/launchers");
const ENGINES = { default: "sh", sh: { kind: "command", command: "/bin/sh" } };
const ID = "01a1fd23-4a4c-746f-99ac-8860e2641168";
const TOKEN = "token-of-one-run";
const SSHD = "/usr/sbin/sshd";

async function writeProgram(path: string, text: string): Promise<void> {
  await Deno.mkdir(join(path, ".."), { recursive: true });
  await Deno.writeTextFile(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
}

/** Runs a command of a launcher with this `program` as the only one of its scheduler, which notes its arguments and input. */
async function call(
  command: string,
  { program, answer, env = {}, args = [] }: {
    program: string;
    answer: string;
    env?: Record<string, string>;
    args?: string[];
  },
): Promise<{ code: number; out: string; calls: string[]; input: string }> {
  await using folder = await createTempDir();
  const at = (name: string) => join(folder.path, name);
  await Deno.writeTextFile(at("token"), TOKEN);
  await Deno.writeTextFile(at("input"), "");
  await writeProgram(
    at(`bin/${program}`),
    `echo "$*" >>${at("calls")}; case "$*" in *"-f -"*) cat >${at("input")} ;; esac\n${answer}`,
  );
  const { code, stdout } = await new Deno.Command(join(COMMANDS, command), {
    args,
    env: {
      PATH: `${folder.path}/bin:/usr/bin:/bin`,
      ...{
        SVC_RUN_ID: ID,
        SVC_RUNNER_URL: "https://svc.example.org",
        SVC_RUNNER_TOKEN_FILE: at("token"),
        ...env,
      },
    },
    stdin: "null",
  }).output();
  const calls = (await Deno.readTextFile(at("calls"))).trim().split("\n");
  return {
    code,
    out: new TextDecoder().decode(stdout).trim(),
    calls,
    input: await Deno.readTextFile(at("input")),
  };
}

describe("packaging/launchers/kubernetes", () => {
  const program = "kubectl";

  it("creates a Secret with the token and a Job that reads it, and prints their name", async () => {
    const env = { SVC_RUN_CPUS: "1.5", SVC_RUN_MEMORY: "512", SVC_RUN_GPUS: "1", SVC_RUN_TIME: "90" };
    const { code, out, calls, input } = await call("kubernetes/launch", {
      ...{ program, env, args: ["-n", "agents"], answer: "case $* in *jsonpath*) echo uid-1 ;; esac" },
    });
    expect([code, out]).toEqual([0, `svc-${ID}`]);
    expect(calls[0]).toMatch(new RegExp(`^-n agents create secret generic svc-${ID} --from-file=token=/`));
    expect(calls[2]).toContain("uid-1");
    expect(calls.join() + input).not.toContain(TOKEN);
    const { spec } = parse(input);
    const [container] = spec.template.spec.containers;
    expect(spec.activeDeadlineSeconds).toBe(90);
    expect(container).toMatchObject({
      command: ["svc", "runner", "--once"],
      resources: { limits: { cpu: "1.5", memory: "512Mi", "nvidia.com/gpu": "1" } },
    });
    expect(container.env).toContainEqual({ name: "SVC_RUNNER_URL", value: "https://svc.example.org" });
  });

  it("removes the Secret when the Job is refused, and fails", async () => {
    const { code, calls } = await call("kubernetes/launch", {
      program,
      answer: 'test "$1 $2" != "create -o"',
    });
    expect(code).toBe(1);
    expect(calls.at(-1)).toMatch(/^delete secret svc-/);
  });

  it.each([
    ["", "ended"],
    ["job ready= ", "pending"],
    ["job ready=1 ", "running"],
    ["job ready=0 SuccessCriteriaMet Complete", "ended"],
    ["job ready= Failed", "ended"],
  ])("state of a job with the status %j is %s", async (status, state) => {
    expect((await call("kubernetes/state", { program, answer: `echo "${status}"` })).out).toBe(state);
  });

  it("state fails, and says nothing, when the cluster does not answer", async () => {
    const { code, out } = await call("kubernetes/state", { program, answer: "exit 1" });
    expect([code === 0, out]).toEqual([false, ""]);
  });
});

describe("packaging/launchers/nomad", () => {
  const program = "nomad";

  it("dispatches a job with the path of the token, and prints its id", async () => {
    const answer = 'echo "Dispatched Job ID = svc-run/dispatch-1"; echo "Evaluation ID    = 2"';
    const { code, out, calls } = await call("nomad/launch", { program, answer });
    expect([code, out]).toEqual([0, "svc-run/dispatch-1"]);
    expect(calls.join()).not.toContain(TOKEN);
    expect((await call("nomad/launch", { program, answer: "exit 1" })).code).toBe(1);
  });

  it.each([["running", "running"], ["pending", "pending"], ["dead", "ended"]])(
    "state of a job that is %s is %s",
    async (status, state) => {
      const env = { SVC_LAUNCH_JOB: "svc-run/dispatch-1" };
      const answer = `echo "ID            = svc-run"; echo "Status        = ${status}"`;
      expect((await call("nomad/state", { program, env, answer })).out).toBe(state);
    },
  );
});

const hasSshd = Deno.uid() === 0 && await Deno.stat(SSHD).then(() => true, () => false);

/** A real sshd on loopback whose sessions find this program as `svc`. */
class SshHost implements AsyncDisposable {
  constructor(readonly args: string[], readonly tmp: string, readonly child: Deno.ChildProcess) {}

  static async start(folder: string): Promise<SshHost> {
    const at = (name: string) => join(folder, name);
    for (const name of ["host", "user"]) {
      await new Deno.Command("ssh-keygen", { args: ["-q", "-t", "ed25519", "-N", "", "-f", at(name)] })
        .output();
    }
    await Deno.copyFile(at("user.pub"), at("keys"));
    for (const name of ["tmp", "home"]) await Deno.mkdir(at(name));
    await Deno.mkdir("/run/sshd", { recursive: true, mode: 0o755 });
    await Deno.writeTextFile(at("runner.yaml"), `engines: ${JSON.stringify(ENGINES)}\n`);
    await writeProgram(
      at("bin/svc"),
      `exec ${SVC.map((word) => `'${word}'`).join(" ")} "$@" -c '${at("runner.yaml")}' 2>>'${
        at("runner.log")
      }'`,
    );
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr as Deno.NetAddr;
    listener.close();
    await Deno.writeTextFile(
      at("sshd.conf"),
      `Port ${port}\nListenAddress 127.0.0.1\nHostKey ${at("host")}\nAuthorizedKeysFile ${at("keys")}\n` +
        `PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\n` +
        `SetEnv PATH=${at("bin")}:/usr/bin:/bin TMPDIR=${at("tmp")}\n`,
    );
    const child = new Deno.Command(SSHD, {
      args: ["-D", "-f", at("sshd.conf")],
      stdin: "null",
      stderr: "null",
    }).spawn();
    const options = [
      `Port=${port}`,
      `IdentityFile=${at("user")}`,
      "IdentitiesOnly=yes",
      "StrictHostKeyChecking=no",
    ];
    const args = [
      "-F",
      "none",
      ...[...options, "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"].flatMap((one) => ["-o", one]),
    ];
    const host = new SshHost([...args, "root@127.0.0.1"], at("tmp"), child);
    await waitUntil("sshd", async () => {
      const { success } = await new Deno.Command("ssh", { args: [...host.args, "true"], stderr: "null" })
        .output();
      return success;
    });
    return host;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await endProcess(this.child, "SIGTERM");
  }
}

describe.skipIf(!hasSshd)(
  `packaging/launchers/ssh${hasSshd ? "" : " (skipped: needs root and openssh-server)"}`,
  () => {
    it("starts a runner on another machine, shows its state and ends it [LCH-1]", async () => {
      await using folder = await createTempDir();
      await using host = await SshHost.start(folder.path);
      const build = (name: string) => [join(COMMANDS, "ssh", name), ...host.args];
      const ssh = { labels: ["x"], command: build("launch"), state: build("state"), cancel: build("cancel") };
      await using app = await openApp({ config: { engines: ENGINES, launchers: { ssh } } });
      const worker = await createRemoteWorker(app, "sh", { home: "none" });
      const find = (task: string) => app.call(`GET /api/tasks/${task}`);
      const first = await createTask(app, worker, "echo over ssh");
      await waitUntil("it completes", async () => (await find(first)).status === "completed");
      const { execution_id } = await find(first);
      const execution = await app.call(`GET /api/executions/${execution_id}`);
      expect(execution).toMatchObject({ result: "over ssh", launch: { launcher: "ssh", job: execution_id } });
      const clean = () => [...Deno.readDirSync(host.tmp)].length === 0;
      await waitUntil("nothing is left", clean);
      const second = await createTask(app, worker, `touch ${folder.path}/here; sleep 600`);
      await waitUntil("it runs", () => Deno.stat(`${folder.path}/here`).then(() => true, () => false));
      const ask = async (name: string) => {
        const [command = "", ...args] = build(name);
        const { execution_id } = await find(second);
        const { code, stdout } = await new Deno.Command(command, { args, env: { SVC_RUN_ID: execution_id } })
          .output();
        return [code, new TextDecoder().decode(stdout).trim()];
      };
      expect(await ask("state")).toEqual([0, "running"]);
      // As from outside: the task returns to the queue.
      await app.call(`PUT /api/workers/${worker}`, { paused: true });
      expect(await ask("cancel")).toEqual([0, ""]);
      await waitUntil("it returns", async () => (await find(second)).status === "pending");
      await waitUntil("nothing is left", clean);
    });
  },
);
