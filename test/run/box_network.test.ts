// Programs in a real box of bubblewrap look for a way out.
import { join } from "node:path";
import { expect, it } from "vitest";
import { findBoxFault } from "../../src/engine/process/box_fault.ts";
import type { Reach } from "../../src/http/server/run_proxy.ts";
import { buildShellEngine } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import type { Json } from "../harness/service/client.ts";

/** The settings that boxes need when the tests run as root. */
const box = Deno.uid() === 0 ? { user: "nobody" } : {};
const fault = await findBoxFault({ box: { user: "", ...box } }) ??
  (await hasProgram("curl") ? null : "curl is not installed");
const skipped = fault === null ? "" : ` (skipped: ${fault})`;
const boxed = it.skipIf(fault !== null);

const POLL = { timeout: 90_000 };
const PUBLIC = "93.184.215.14";

async function hasProgram(name: string): Promise<boolean> {
  return await new Deno.Command("sh", { args: ["-c", `command -v ${name}`], stdout: "null" }).output()
    .then(({ success }) => success);
}

/** A host outside with a page, and a page that redirects. */
function openOutside(): { reach: Reach; requests: string[] } & Disposable {
  const requests: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const { host, pathname } = new URL(request.url);
    requests.push(host + pathname);
    return pathname === "/moved"
      ? Response.redirect("http://other.example.com/stolen")
      : new Response("the page\n");
  });
  const names: Record<string, string[]> = {
    "api.example.org": [PUBLIC],
    "other.example.com": [PUBLIC],
    "private.example.org": ["127.0.0.1"],
  };
  return {
    requests,
    reach: {
      resolve: (name) =>
        name in names ? Promise.resolve(names[name] ?? []) : Promise.reject(new Error("unknown")),
      route: () => ({ hostname: "127.0.0.1", port: server.addr.port }),
    },
    [Symbol.dispose]: () => void server.shutdown(),
  };
}

/** Lists the sockets of all boxes, as this machine sees them. */
function listSockets(app: App): string[] {
  const runs = join(Deno.realPathSync(app.dataDir), "runs");
  return [...Deno.readDirSync(runs)].flatMap(({ name }) => {
    const input = join(runs, name, "input");
    try {
      return [...Deno.readDirSync(input)].filter((file) => file.name.startsWith("net"))
        .map((file) => join(input, file.name));
    } catch {
      // The directory of a run that has ended may be gone.
      return [];
    }
  });
}

interface RunEnd {
  result: string;
  log: string;
  execution: Json;
}

async function open(script: string, reach: Reach): Promise<App> {
  const engine = { ...buildShellEngine(script), timeout: "60s" };
  return await openApp({
    reach,
    config: { isolation: { box }, engines: { default: "sh", sh: engine } },
  });
}

/** Starts a run of a new worker, and returns the worker's id. */
async function start(app: App, network: unknown, env: Record<string, string> = {}): Promise<string> {
  const worker = await app.call("POST /api/workers", {
    name: crypto.randomUUID(),
    isolation: { box: network === undefined ? {} : { network } },
    env,
  });
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "x" });
  return worker.id;
}

async function run(app: App, network: unknown): Promise<RunEnd> {
  const workerId = await start(app, network);
  await app.settle();
  const execution = (await app.call(`GET /api/executions?worker_id=${workerId}`))[0];
  const log = (await app.send(`GET /api/executions/${execution.id}/logs`)).body;
  expect([execution.status, execution.error]).toEqual(["completed", ""]);
  return { result: execution.result, log: String(log), execution };
}

boxed(
  `a box reaches the API at its usual address, and named hosts through the proxy [BOX-3]${skipped}`,
  async () => {
    using outside = openOutside();
    await using app = await open(
      `svc ctl worker list --json | grep -c '"id"'
     curl -s -o /dev/null -w '%{http_code}\\n' $SVC_URL/readyz
     curl -s -o /dev/null -w '%{http_code}\\n' -H "Authorization: Bearer $SVC_TOKEN" $SVC_URL/api/workers
     curl -s http://api.example.org/page
     curl -s -p -x $HTTP_PROXY http://api.example.org/tunnel
     env | grep -i -E '^(no_proxy|https?_proxy|node_use_env_proxy)=' | cut -d= -f1 | sort`,
      outside.reach,
    );
    const { result } = await run(app, ["api.example.org"]);
    expect(result.trim().split("\n")).toEqual([
      ...["1", "200", "200", "the page", "the page"],
      ...[
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "NODE_USE_ENV_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
      ],
    ]);
    expect(outside.requests).toEqual(["api.example.org/page", "api.example.org/tunnel"]);
  },
);

boxed(
  `with \`none\`, nothing but the service answers, and the log names each host once [BOX-3]${skipped}`,
  async () => {
    using outside = openOutside();
    await using app = await open(
      `curl -s -o /dev/null -w '%{http_code}\\n' $SVC_URL/readyz
     for n in 1 2; do curl -s -o /dev/null -w '%{http_connect}\\n' https://api.example.org/; done
     curl -s -o /dev/null -w '%{http_code}\\n' http://api.example.org/
     exit 0`,
      outside.reach,
    );
    const { result, log } = await run(app, "none");
    expect(result.trim().split("\n")).toEqual(["200", "403", "403", "403"]);
    expect(log.match(/\[network: api\.example\.org:443 is not in the worker's hosts\]/g)).toHaveLength(1);
    expect(log).toContain("[network: api.example.org:80 is not in the worker's hosts]");
    expect(outside.requests).toEqual([]);
  },
);

boxed(`a box reaches no other address, port, name or socket [BOX-3]${skipped}`, async () => {
  using outside = openOutside();
  using machine = Deno.listen({ hostname: "0.0.0.0", port: 0 });
  using machine6 = Deno.listen({ hostname: "::1", port: 0 });
  const abstract = `svc-test-${crypto.randomUUID()}`;
  const listening = new Deno.Command("perl", {
    args: [
      "-MSocket",
      "-e",
      `socket(S, PF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un("\\0${abstract}")) or die; listen(S, 1); print "ready\\n"; $| = 1; close STDOUT; sleep 600`,
    ],
    stdout: "piped",
  }).spawn();
  await new Response(listening.stdout).text();
  const own = Deno.networkInterfaces().find(({ family, address }) =>
    family === "IPv4" && !address.startsWith("127.")
  )?.address ?? "127.0.0.1";
  await using app = await open(
    `try() { if timeout 5 bash -c "exec 3<>/dev/tcp/$1/$2" 2>/dev/null; then echo "reached $1 $2"; fi; }
     try 127.0.0.1 ${machine.addr.port}
     try ${own} ${machine.addr.port}
     try ::1 ${machine6.addr.port}
     try ${PUBLIC} 443
     try api.example.org 80
     timeout 5 bash -c 'exec 3<>/dev/udp/8.8.8.8/53 && echo "sent a datagram"' 2>/dev/null
     timeout 5 getent ahostsv4 api.example.org && echo "resolved a name"
     perl -MSocket -e 'socket(S, PF_INET, SOCK_RAW, 1) and print "opened a raw socket\\n"'
     perl -MSocket -e 'socket(S, 17, SOCK_RAW, 768) and print "opened a packet socket\\n"'
     perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un("\\0${abstract}")) and print "reached an abstract socket\\n"'
     ls -d ${
      Deno.realPathSync("/tmp")
    }/svc-test-*/runs/*/input 2>/dev/null | grep -v "$(dirname $SVC_CONTEXT_FILE)"
     for path in metrics /metrics %6detrics console/ api/auth/login; do
       curl -s --path-as-is -o /dev/null -w "%{http_code} " $SVC_URL/$path
       curl -s --path-as-is -x $HTTP_PROXY --noproxy '' -o /dev/null -w "%{http_code}\\n" $SVC_URL/$path
     done
     curl -sL -o /dev/null -w '%{http_code}\\n' http://api.example.org/moved
     curl -s -o /dev/null -w '%{http_connect}\\n' https://private.example.org/
     curl -s -o /dev/null -w '%{http_connect}\\n' https://127.0.0.1:${machine.addr.port}/ --noproxy ''
     exit 0`,
    outside.reach,
  );
  const { result, log } = await run(app, ["api.example.org", "private.example.org"]);
  listening.kill();
  await listening.status;
  expect(result.trim().split("\n")).toEqual([...Array(5).fill("403 403"), "403", "403", "403"]);
  expect(outside.requests).toEqual(["api.example.org/moved"]);
  expect(log).toContain("[network: other.example.com:80 is not in the worker's hosts]");
  expect(log).toMatch(/\[network: private\.example\.org:443 is refused: .* at 127\.0\.0\.1/);
});

boxed(`the socket ends with the run, and another run does not see it [BOX-3]${skipped}`, async () => {
  using outside = openOutside();
  await using app = await open(
    `[ -n "$STAYS" ] && echo staying && exec sleep 60
     find / '(' -path /proc -o -path /sys -o -path /usr ')' -prune -o -type s -path '*/input/*' -print 2>/dev/null
     echo "$(dirname $SVC_CONTEXT_FILE)"`,
    outside.reach,
  );
  const stays = await start(app, "none", { STAYS: "yes" });
  const readLog = async () => {
    const [execution] = await app.call(`GET /api/executions?worker_id=${stays}`);
    return execution === undefined
      ? ""
      : String((await app.send(`GET /api/executions/${execution.id}/logs`)).body);
  };
  await expect.poll(readLog, POLL).toContain("staying");
  const [other = ""] = listSockets(app);
  const workerId = await start(app, "none");
  const find = async () => (await app.call(`GET /api/executions?worker_id=${workerId}`))[0];
  await expect.poll(async () => (await find())?.status, POLL).toBe("completed");
  const { result } = await find();
  const [socket = "", folder = "", ...more] = result.trim().split("\n");
  expect(socket.startsWith(folder)).toBe(true);
  expect(more).toEqual([]);
  expect(socket).not.toBe(other);
  expect(listSockets(app)).toEqual([other]);
  await expect(Deno.connect({ transport: "unix", path: socket })).rejects.toThrow();
  const [{ id }] = await app.call(`GET /api/executions?worker_id=${stays}`);
  await app.call(`POST /api/executions/${id}/cancel`);
  await app.settle();
  expect(listSockets(app)).toEqual([]);
});

boxed(
  `a program in a box with a relay gets its stdin, its signals and its exit code as without${skipped}`,
  async () => {
    using outside = openOutside();
    const engine = {
      kind: "command",
      command: "sh",
      args: ["-c", "trap 'echo got INT; exit 3' INT; cat; sleep 60 & wait"],
    };
    await using app = await openApp({
      reach: outside.reach,
      config: { isolation: { box }, engines: { default: "sh", sh: engine } },
    });
    const worker = await app.call("POST /api/workers", {
      name: "Ada",
      isolation: { box: { network: "none" } },
    });
    const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "the instruction" });
    await app.until("execution.started");
    const [{ id }] = await app.call("GET /api/executions");
    await expect.poll(async () => String((await app.send(`GET /api/executions/${id}/logs`)).body), {
      timeout: 30_000,
    })
      .toContain("the instruction");
    await app.call(`POST /api/executions/${id}/cancel`);
    await app.settle();
    expect(String((await app.send(`GET /api/executions/${id}/logs`)).body)).toContain("got INT");
  },
);

boxed(`doctor says what the machine's network shows to a box [BOX-3]${skipped}`, async () => {
  using outside = openOutside();
  await using app = await open("true", outside.reach);
  await app.call("POST /api/workers", { name: "Ada", isolation: { box: { network: "host" } } });
  const find = async () => {
    const { checks } = await app.call("GET /api/system/doctor");
    return checks.find(({ name }: { name: string }) => name === "isolation");
  };
  expect(await find()).toMatchObject({
    detail: expect.stringMatching(/Ada .* abstract sockets/),
  });
  app.server.parts.isolation.databaseUrl = "http://127.0.0.1:8080";
  expect(await find()).toMatchObject({
    detail: expect.stringMatching(/Ada are in no box.*database at 127\.0\.0\.1/),
  });
});
