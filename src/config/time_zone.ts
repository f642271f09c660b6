import { isTimeZone } from "../domain/field.ts";
import { ConfigError } from "./file.ts";

/**
 * The machine's time zone, as a name such as Europe/Berlin: `tz` (the variable TZ) as POSIX reads it, else what the system is set
 * to. Throws ConfigError when that names no zone: a schedule must not fire by another one.
 */
export function machineTimeZone(tz: string | undefined): string {
  if (tz === undefined) return systemTimeZone() ?? refuse("the system names none");
  const name = tz.replace(/^:/, "").replace(/^\/.*\/zoneinfo\/(posix\/)?/, "");
  if (name === "") return "UTC";
  // An offset alone has another sign in POSIX, and no summer time.
  return /^[A-Z]/i.test(name) && isTimeZone(name) ? name : refuse(`TZ is ${JSON.stringify(tz)}`);
}

function refuse(why: string): never {
  throw new ConfigError(
    `scheduler.time_zone: is not set, and ${why}; set it to one such as Europe/Berlin or UTC`,
  );
}

// To ask Intl loads 20 ms of formats that a start does not need. Deno before 2.7 has no Temporal without a flag.
function systemTimeZone(): string | null {
  const { Temporal: temporal } = globalThis as { Temporal?: typeof Temporal };
  const name = temporal?.Now.timeZoneId() ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  return name === undefined || name === "Etc/Unknown" ? null : name;
}
