import { join } from "node:path";
import { createLogger } from "../base/log.ts";

const log = createLogger("server");

/**
 * Sends a state such as `READY=1` to the service manager, whose socket is in NOTIFY_SOCKET (sd_notify(3)). Does nothing without the variable,
 * and logs failures. The main process sends, so that the unit can refuse messages of its children (`NotifyAccess=main`).
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
    log.warning("Cannot send {states} to the service manager: {error}", { states: states.join(" "), error });
  }
}

/**
 * Reports to the manager that the service is alive, at half the interval of WATCHDOG_USEC. If the event loop hangs, the manager restarts the
 * service. Does not keep the process alive.
 */
export function feedWatchdog(): void {
  const everyMs = Number(Deno.env.get("WATCHDOG_USEC") ?? 0) / 1000 / 2;
  if (!(everyMs >= 1)) return;
  Deno.unrefTimer(setInterval(() => void tellManager("WATCHDOG=1"), everyMs));
}
