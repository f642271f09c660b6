import { DeliveryError } from "./platform.ts";

/**
 * What a request to a platform gave. Without an answer it throws a DeliveryError that names the platform and never the address, which
 * may hold a key: `unreachable` when it was not sent, `unanswered` when it may have arrived (contract 10.3).
 */
export async function answered<T>(platform: string, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    const refused = error instanceof Error && /connection refused|dns error|tcp connect/i.test(error.message);
    throw refused
      ? new DeliveryError("unreachable", `${platform} cannot be reached`)
      : new DeliveryError("unanswered", `${platform} did not answer`);
  }
}

/** What comes before a send: without an answer to this, nothing was sent (contract 10.3). */
export async function notSent<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    const isOpen = error instanceof DeliveryError && error.why === "unanswered";
    throw isOpen ? new DeliveryError("unreachable", error.message) : error;
  }
}
