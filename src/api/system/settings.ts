import type { ConfigCheck, Settings } from "../../domain/system/settings.ts";
import { type Answer, answer } from "../call/answer.ts";
import type { Deps } from "../call/services.ts";

/** Returns the effective configuration: every key, its value, and where the value comes from. Secrets are hidden. */
export async function getSettings({ configuration }: Deps<"configuration">): Promise<Answer<Settings>> {
  return answer(await configuration.read());
}

/** Checks lines for the configuration file without storing them. */
export async function checkSettings(
  { configuration }: Deps<"configuration">,
  { yaml }: { yaml: string },
): Promise<Answer<ConfigCheck>> {
  return answer(await configuration.check(yaml));
}
