import type { Check } from "../../domain/system/system.ts";
import type { Deps } from "../call/services.ts";
import { shownPlatforms } from "./platform.ts";

// A reply that waits this long is a fault.
const WAITING_WARN_MS = 10 * 60_000;

/** Checks the connections of the platforms and the replies that wait for them. */
export async function lookAtPlatforms(
  deps: Deps<"db" | "platforms" | "lifecycle" | "clock">,
): Promise<Omit<Check, "name">> {
  const all = (await shownPlatforms(deps)).filter(({ kind }) => kind !== "local");
  if (all.length === 0) return { status: "ok", detail: "none is configured", hint: "" };
  const now = deps.clock.now();
  const wrong = all.filter(({ state }) => ["down", "refused", "limited"].includes(state));
  const late = all.filter(({ waiting_since }) =>
    waiting_since !== null && now - waiting_since > WAITING_WARN_MS
  );
  const words = [
    ...wrong.map(({ name, state, error }) => `${name} is ${state}: ${error}`),
    ...late.map(({ name, waiting }) => `${waiting} replies wait for ${name}`),
  ];
  if (words.length === 0) {
    return { status: "ok", detail: all.map(({ name, state }) => `${name} is ${state}`).join(", "), hint: "" };
  }
  return {
    status: "warn",
    detail: words.join("; "),
    hint: wrong.some(({ state }) => state === "refused")
      ? "Correct the platform's key in the configuration and restart the service."
      : "Run `svc ctl platform list` and `svc ctl platform test <name>`.",
  };
}
