import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { buildDataPaths } from "../../../src/base/paths.ts";
import { engineSchema } from "../../../src/config/engine.ts";
import { configSchema } from "../../../src/config/schema.ts";
import type { WireOrder } from "../../../src/domain/workers/runner.ts";
import { BoxEtc } from "../../../src/engine/process/box_etc.ts";
import { GatewayKeys } from "../../../src/engine/gateway_keys.ts";
import { Catalog } from "../../../src/engine/catalog.ts";
import { OrphanRuns } from "../../../src/runner/orphan_runs.ts";
import { ServiceClient } from "../../../src/runner/service_client.ts";

export interface ServiceRequest {
  path: string;
  text: string;
}

/** A service that consists of responses, for a runner in the same process. */
export class FakeService implements AsyncDisposable {
  readonly asked: ServiceRequest[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(answer: (asked: ServiceRequest, times: number) => Response | Promise<Response>) {
    this.#server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
      const { pathname, search } = new URL(request.url);
      const asked = { path: pathname + search, text: await request.text() };
      this.asked.push(asked);
      return await answer(asked, this.of(pathname).length);
    });
  }

  /** Lists the requests to paths that contain `words`. */
  of(words: string): ServiceRequest[] {
    return this.asked.filter(({ path }) => path.includes(words));
  }

  get link(): ServiceClient {
    return new ServiceClient({
      url: `http://127.0.0.1:${this.#server.addr.port}`,
      token: "t",
      clock: systemClock,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

export function buildProblem(status: number, code: string): Response {
  return Response.json({ status, code, detail: code }, {
    status,
    headers: { "content-type": "application/problem+json" },
  });
}

/** A runner's machine where no engine stays open. */
export const MACHINE = {
  path: "/bin:/usr/bin",
  inherited: {},
  root: false,
  umask: 0o022,
  stopGraceMs: 100,
  gateways: {},
  gatewayKeys: new GatewayKeys(),
  keepAlive: null,
  spare: 0,
  describeTools: null,
};

/** Builds the options of a runner's `echo` run in `root`. */
export function buildRunOptions(link: ServiceClient, root: string) {
  const defaultsFor = (kind: string) => engineSchema.parse({ kind });
  return {
    ...{ link, clock: systemClock, paths: buildDataPaths(root), umask: 0o022 },
    config: configSchema.parse({}),
    ...{ boxFault: "no bubblewrap", hasGit: true, once: false },
    boxMachine: {
      paths: buildDataPaths(root),
      configPaths: [],
      ownProgram: { read: [], links: [] },
      etc: new BoxEtc(buildDataPaths(root).etc),
      port: () => 0,
      openSocket: () => ({ close() {} }),
    },
    leftovers: new OrphanRuns(buildDataPaths(root)),
    engines: new Catalog({ defaultName: "echo", configured: {}, defaultsFor }, MACHINE),
  };
}

/** Builds an `echo` run as the service orders it. */
export function buildWireOrder(root: string, change: Partial<WireOrder> = {}): WireOrder {
  const id = crypto.randomUUID();
  return {
    execution: {
      ...{ execution_id: id, task_id: id, worker_id: id, run_id: id },
      ...{ session_key: "", message_id: "m", attempt: 1, engine: "echo", instruction: "hello" },
    },
    work_dir: join(root, "workers", id),
    ...{ repo: null, verify: null },
    ...{ env: {}, secrets: {}, mcp: { servers: {}, secrets: [] }, setup_error: "", gateway: null },
    isolation: { box: null, network: null, max_network: "host", hidden: [] },
    time_zone: "UTC",
    max_log_bytes: 100_000,
    grant: { subject: id, scopes: [] },
    token: "run",
    files: [],
    briefing: { context: "{}", prompt: "hello", retelling: "hello", session: null, extraArgs: "" },
    ...change,
  };
}
