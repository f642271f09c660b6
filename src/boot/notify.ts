import { join } from "node:path";
import { logger } from "../base/log.ts";

const log = logger("server");

/**
 * Tells the service manager something, such as `READY=1`, where it asks to be told: systemd names a socket in
 * NOTIFY_SOCKET (sd_notify(3)). Nobody else is told anything; a manager that cannot be reached is
 * said in the log. We speak ourselves, so the unit need not believe our children (`NotifyAccess=main`).
 */
export async function tellManager(...states: string[]): Promise<void> {
  const path = Deno.env.get("NOTIFY_SOCKET");
  if (path === undefined || path === "") return;
  try {
    const folder = await Deno.makeTempDir({ prefix: "svc-" });
    const local = join(folder, "notify");
    const socket = Deno.listenDatagram({ transport: "unixpacket", path: local });
    try {
      await socket.send(new TextEncoder().encode(states.join("\n")), { transport: "unixpacket", path });
    } finally {
      socket.close();
      await Deno.remove(folder, { recursive: true });
    }
  } catch (error) {
    log.warning("Cannot tell the service manager {states}: {error}", { states: states.join(" "), error });
  }
}

/**
 * Keeps telling the manager that we live, twice as often as it wants to hear it (WATCHDOG_USEC). An event loop that
 * hangs stops telling, and the manager starts the service anew. Does not keep the process alive.
 */
export function feedWatchdog(): void {
  const everyMs = Number(Deno.env.get("WATCHDOG_USEC") ?? 0) / 1000 / 2;
  if (!(everyMs >= 1)) return;
  Deno.unrefTimer(setInterval(() => void tellManager("WATCHDOG=1"), everyMs));
}
