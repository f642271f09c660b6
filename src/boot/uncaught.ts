import { logger } from "../base/log.ts";

const log = logger("server");

// An orderly stop without a drain; then the process ends whatever is still open.
const STOP_MAX_MS = 10_000;

/**
 * Ends the service when an error comes up that nobody caught: it is logged with its cause like any other, runs go back
 * to the queue, and the exit code is not 0, so that a service manager starts it anew (promises SHD-8). Half a service,
 * without one of its loops, would look alive and lose work.
 */
export function endOnUncaught(stop: () => Promise<void>, exit: (code: number) => void): void {
  let ending = false;
  const end = (error: unknown) => {
    log.error("Nobody caught this, so the service stops: {error}", { error });
    if (ending) return;
    ending = true;
    const late = new Promise<void>((resolve) => setTimeout(resolve, STOP_MAX_MS));
    Promise.race([stop(), late]).catch((error) => log.error("The stop failed: {error}", { error })).finally(
      () => exit(1),
    );
  };
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    end(event.reason);
  });
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    end(event.error);
  });
}
