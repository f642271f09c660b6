// The socket by which a box reaches the service, its gateways and the hosts of its worker (contract-3 21).
import { createLogger } from "../../base/log.ts";
import { ServiceError } from "../../domain/call/error.ts";
import { toProblem } from "../problem.ts";
import { isLoopback } from "../authenticate.ts";
import { BOX_PEER } from "../box_paths.ts";
import { Connections } from "./connections.ts";
import { DIRECT, type Reach, RunProxy } from "./run_proxy.ts";

const log = createLogger("http");

/** Connections of one box: requests, streams and tunnels. */
const RUN_CONNECTIONS_MAX = 256;
const SOCKET_PATH_MAX_BYTES = 107;

const TOO_MANY = new ServiceError(
  "unavailable",
  `Cannot accept the request: this run has ${RUN_CONNECTIONS_MAX} open connections. Close some.`,
  { retry_after_s: 1 },
);

/** The socket of one box: its place, its user, and its hosts. */
interface RunSocketRequest {
  path: string;
  /** The user that may connect, or null for the service's own user. */
  owner: { uid: number; gid: number } | null;
  /** Hosts outside, such as `api.example.org` and `*.example.org`. */
  hosts: readonly string[];
  /** Called once for each refused host. */
  onRefused: (words: string) => void;
}

interface RunSocketOptions {
  /** Answers a request to the service. */
  handle: (request: Request, peer: string) => Promise<Response>;
  reach?: Reach | undefined;
}

/** Opens the socket of a box. Throws an Error that says why it cannot. `close` cuts its connections. */
export function openRunSocket(
  { handle, reach = DIRECT }: RunSocketOptions,
  { path, owner, hosts, onRefused }: RunSocketRequest,
): { close: () => void } {
  if (new TextEncoder().encode(path).length > SOCKET_PATH_MAX_BYTES) {
    throw new Error(
      `the path ${path} is too long for a socket, which has at most ${SOCKET_PATH_MAX_BYTES} bytes. ` +
        "Use a shorter data_dir.",
    );
  }
  const listener = listenPrivately(path, owner);
  const proxy = new RunProxy(hosts, reach, onRefused);
  const connections = new Connections(
    listener,
    { total: RUN_CONNECTIONS_MAX, perAddress: RUN_CONNECTIONS_MAX, proxies: [] },
    {
      // Every other host is outside, whatever the form of the request.
      handle: (request) => isOwn(new URL(request.url)) ? handle(request, BOX_PEER) : proxy.forward(request),
      onError: (error) => {
        if (!(error instanceof ServiceError)) {
          log.debug("A request from a box ended early: {error}", { error });
        }
      },
      onFull: () => toProblem(TOO_MANY),
      onTunnel: (target, client, head) => proxy.tunnel(target, client, head),
    },
  );
  return {
    close: () => {
      proxy.close();
      connections.cut();
      try {
        Deno.removeSync(path);
      } catch {
        // The directory of the run is gone already.
      }
    },
  };
}

function isOwn({ hostname }: URL): boolean {
  return isLoopback(hostname.replace(/^\[(.*)\]$/, "$1"));
}

// The mode of a new socket depends on the umask, and another user may connect until it is changed. The directory is the service's.
function listenPrivately(path: string, owner: RunSocketRequest["owner"]): Deno.UnixListener {
  const listener = Deno.listen({ transport: "unix", path });
  try {
    Deno.chmodSync(path, 0o600);
    if (owner !== null) Deno.chownSync(path, owner.uid, owner.gid);
    return listener;
  } catch (error) {
    listener.close();
    throw error;
  }
}
