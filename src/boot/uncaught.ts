import { createLogger } from "../base/log.ts";

const log = createLogger("server");

// Time limit of a stop that does not wait for runs.
const STOP_MAX_MS = 10_000;

/**
 * Stops the service after an uncaught error and exits with code 1, so that a service manager restarts it (reliability SHD-8). A service
 * without one of its loops would look alive and lose work.
 */
export function endOnUncaught(stop: () => Promise<void>, exit: (code: number) => void): void {
  let ending = false;
  const end = (error: unknown) => {
    log.error("Stopping after an uncaught error: {error}", { error });
    if (ending) return;
    ending = true;
    const late = new Promise<void>((resolve) => setTimeout(resolve, STOP_MAX_MS));
    Promise.race([stop(), late]).catch((error) => log.error("Cannot stop in order: {error}", { error }))
      .finally(
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
