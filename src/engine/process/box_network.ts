// The network of a box that is not the machine's: a relay on the loopback of the box, and a socket of the service (decision 0032).
import { join } from "node:path";

/** The socket by which the programs of a box reach the service, its gateways and hosts outside. */
interface BoxSocketRequest {
  path: string;
  /** The user that may connect, or null for the service's own user. */
  owner: { uid: number; gid: number } | null;
  hosts: readonly string[];
  /** Called once for each refused host. */
  onRefused: (words: string) => void;
}

/** Opens the socket of a box. `close` cuts its connections. Throws an Error that says why it cannot. */
export type OpenBoxSocket = (request: BoxSocketRequest) => { close: () => void };

export interface BoxNetwork {
  /** Hosts outside that its programs reach. Empty: none. */
  hosts: readonly string[];
  /** The port of the relay: the service's own. */
  port: number;
  /** The path of `svc` in the box. */
  relay: string;
  open: OpenBoxSocket;
}

/** The socket of a box that is open, or null for the machine's network. */
export interface BoxSocket {
  path: string;
  close: () => void;
}

let sockets = 0;

/** Opens the socket for one program in a box. */
export function openBoxSocket(
  network: BoxNetwork,
  { runDir, owner }: { runDir: string; owner: BoxSocketRequest["owner"] },
  onRefused: (words: string) => void,
): BoxSocket {
  const folder = join(runDir, "input");
  Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
  // A check of the work may start before the agent's own processes have ended.
  const path = join(folder, `net${sockets++}`);
  return { path, ...network.open({ path, owner, hosts: network.hosts, onRefused }) };
}

// The relay prints a line when it listens, and the program starts then. INT and TERM are for the program: the shell and the relay stay until
// it has ended. Its stdin goes around the pipe.
const RELAY_BEFORE = `trap "" INT TERM HUP; svc_relay=$1 svc_port=$2 svc_socket=$3; shift 3; exec 3<&0
{ "$svc_relay" relay "$svc_port" "$svc_socket" </dev/null 3<&- & } | {
  IFS= read -r svc_line && [ "$svc_line" = listening ] || exit 1
  trap - INT TERM HUP; exec <&3 3<&-; `;
const RELAY_AFTER = "\n}; exit $?";

/** Adds the relay of a network to the shell script that starts a program. Returns the script and its first arguments. */
export function addRelay(
  start: string,
  network: "host" | BoxNetwork,
  socket: BoxSocket | null,
): { script: string; args: string[] } {
  if (network === "host" || socket === null) return { script: start, args: [] };
  const args = [network.relay, String(network.port), socket.path];
  return { script: RELAY_BEFORE + start + RELAY_AFTER, args };
}
