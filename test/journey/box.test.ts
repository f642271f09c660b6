import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { findBoxFault } from "../../src/engine/process/box_fault.ts";
import { BOX_SETTINGS } from "../harness/box.ts";
import { type Client, openClient, PASS_HASH, waitUntilQuiet } from "../harness/service/client.ts";
import { startServer, SVC } from "../harness/service/process.ts";

vi.setConfig({ testTimeout: 180_000 });

const fault = await findBoxFault(BOX_SETTINGS);
const why = fault === null ? "" : ` (skipped: ${fault})`;
const SEEKER = new URL("../harness/fakes/seeker.pl", import.meta.url).pathname;

/** Sockets that the operator's programs listen on. */
function listen(paths: string[]): Disposable {
  const listeners = paths.map((path) => Deno.listen({ transport: "unix", path }));
  return { [Symbol.dispose]: () => listeners.forEach((one) => one.close()) };
}

async function plant(root: string): Promise<Record<string, [kind: string, path: string]>> {
  const canary = `canary-${crypto.randomUUID().slice(0, 8)}`;
  const write = async (path: string) => {
    await Deno.mkdir(join(path, ".."), { recursive: true });
    await Deno.writeTextFile(path, canary);
    return path;
  };
  const data = join(root, "data");
  return {
    "the data directory": ["file", await write(join(data, "uploads", "kept"))],
    "another worker's state": [
      "file",
      await write(join(data, "state", "other", "claude", ".credentials.json")),
    ],
    "another worker's file": ["file", await write(join(root, "work", "other", "note.txt"))],
    "another worker's directory": ["folder", join(root, "work", "other")],
    "a file of HOME": ["file", await write(join(root, "home", "ada", "notes.txt"))],
    "an SSH key": ["file", await write(join(root, "home", "ada", ".ssh", "id_ed25519"))],
    "the SSH agent": ["socket", join(root, "home", "ada", "agent.sock")],
    "the Docker socket": ["socket", join(root, "docker.sock")],
    "D-Bus": ["socket", join(root, "bus.sock")],
    "an abstract socket": ["abstract", `svc-test-${canary}`],
    "the left-open descriptor": ["none", await write(join(root, "canary-descriptor"))],
  };
}

async function seek(api: Client, worker: { id: string }): Promise<string[]> {
  const session = await api.call("POST /api/local/sessions", { worker_id: worker.id });
  await api.call(`POST /api/local/sessions/${session.id}/messages`, { content: "look" });
  await waitUntilQuiet(api);
  const [execution] = await api.call("GET /api/executions");
  expect(execution, JSON.stringify(execution)).toMatchObject({ status: "completed" });
  expect(execution.result).toContain("done");
  return [...execution.result.matchAll(/^reached: (.*)$/gm)].map(([, name]) => name);
}

/** Starts a program that holds an abstract socket. */
function holdAbstract(name: string): Deno.ChildProcess {
  const script =
    'use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un("\\0$ARGV[0]")) or die; ' +
    'listen(S, 9); $| = 1; print "ready\\n"; sleep 600';
  return new Deno.Command("perl", { args: ["-e", script, name], stdout: "piped" }).spawn();
}

describe(`what an agent reaches${why} [BOX-1]`, () => {
  // Below /opt, which a box shows, the service has to cover its own directories.
  it.skipIf(fault !== null).each(["/tmp", "/opt"])(
    "in a box nothing, with the service below %s",
    async (place) => {
      const root = await Deno.makeTempDir({ dir: place, prefix: "svc-test-" });
      await Deno.chmod(root, 0o755);
      const targets = await plant(root);
      const home = join(root, "home", "ada");
      const abstract = holdAbstract(targets["an abstract socket"]?.[1] ?? "");
      try {
        using _sockets = listen(
          Object.values(targets).flatMap(([kind, path]) => kind === "socket" ? [path] : []),
        );
        await abstract.stdout.getReader().read();
        const seek_ = Object.entries(targets).map(([name, [kind, path]]) => `${name}\t${kind}\t${path}`).join(
          "\n",
        );
        const config = {
          server: { port: 0 },
          auth: { password_hash: PASS_HASH, jwt_secret: `canary-${"0".repeat(8)}-signing-key-0123456789` },
          isolation: BOX_SETTINGS,
          engines: {
            default: "seek",
            seek: { kind: "command", command: "perl", args: [SEEKER], env: { SEEK: seek_ } },
          },
        };
        await Deno.writeTextFile(join(root, "config.yaml"), JSON.stringify(config));
        // The server starts with an open descriptor that nothing closes.
        const held = [
          "/bin/sh",
          "-c",
          `exec 8<"${targets["the left-open descriptor"]?.[1]}"; exec "$@"`,
          "sh",
          ...SVC,
        ];
        await using server = await startServer({
          dataDir: join(root, "data"),
          args: ["-c", join(root, "config.yaml")],
          program: held,
          env: {
            HOME: home,
            DENO_DIR: Deno.env.get("DENO_DIR") ?? join(Deno.env.get("HOME") ?? "/", ".cache/deno"),
            SSH_AUTH_SOCK: join(home, "agent.sock"),
            DBUS_SESSION_BUS_ADDRESS: `unix:path=${join(root, "bus.sock")}`,
            OPERATORS_OWN: "canary-0badcafe",
          },
        });
        const api = await openClient(server.url);
        await api.call("POST /api/workers", { name: "Other", work_dir: join(root, "work", "other") });
        const create = (name: string, isolation: unknown, work_dir: string) =>
          api.call("POST /api/workers", { name, isolation, work_dir });
        const own = async (name: string) => {
          const path = join(root, "work", name);
          await Deno.mkdir(path, { recursive: true });
          if (Deno.uid() === 0) await Deno.chown(path, 65534, 65534);
          return path;
        };
        const plain = await create("Plain", "namespace", await own("plain"));
        const host = await create("Host", { box: { network: "host" } }, await own("host"));
        const none = await create("None", { box: { network: "none" } }, await own("none"));
        // The documented truth: without a box an agent reaches what the user of the service reaches.
        const reached = await seek(api, plain);
        expect(reached).not.toContain("another process");
        expect(reached).toEqual(expect.arrayContaining([
          ...["D-Bus", "a file of HOME", "an SSH key", "an abstract socket", "another worker's directory"],
          ...[
            "another worker's file",
            "another worker's state",
            "the Docker socket",
            "the SSH agent",
            "the data directory",
          ],
        ]));
        expect(await seek(api, host)).toEqual(["an abstract socket"]);
        expect(await seek(api, none)).toEqual([]);
      } finally {
        abstract.kill("SIGKILL");
        await Deno.remove(root, { recursive: true });
      }
    },
  );
});
