import { createLogger } from "../../base/log.ts";

const log = createLogger("engine");
const SET_DESCRIPTOR_FLAGS = 2;
const CLOSE_ON_EXEC = 1;

/**
 * Marks inherited file descriptors, such as a supervisor's pipe, close-on-exec, so that agents do not inherit them (reliability CHD-11).
 * Deno marks only the descriptors that it opened. Works on Linux only, and does nothing where the C library cannot be called.
 */
export function closeDescriptorsOnExec(): void {
  if (Deno.build.os !== "linux") return;
  try {
    const open = [...Deno.readDirSync("/proc/self/fd")].map((entry) => Number(entry.name)).filter((fd) =>
      fd > 2
    );
    const libc = Deno.dlopen("libc.so.6", { fcntl: { parameters: ["i32", "i32", "i32"], result: "i32" } });
    for (const fd of open) libc.symbols.fcntl(fd, SET_DESCRIPTOR_FLAGS, CLOSE_ON_EXEC);
    libc.close();
  } catch (error) {
    log.debug("Cannot mark inherited descriptors: {error}", { error });
  }
}
