import { isTimeZone } from "../domain/call/field.ts";
import { ConfigError } from "./file.ts";

const SYSTEM_FILE = "/etc/localtime";

/**
 * The machine's time zone, as a name such as Europe/Berlin: `tz` (the variable TZ) as POSIX reads it, else what the system is set
 * to. Throws ConfigError when that names no zone: a schedule must not fire by another one.
 */
export function machineTimeZone(tz: string | undefined): string {
  if (tz === undefined) return systemTimeZone() ?? refuse("the system names none");
  const name = nameOf(tz.replace(/^:/, ""));
  return name === null ? refuse(`TZ is ${JSON.stringify(tz)}`) : name;
}

function nameOf(tz: string): string | null {
  if (/^((UTC|GMT)0?)?$/.test(tz)) return "UTC";
  const name = (tz.startsWith("/") ? target(tz) : tz).replace(/^(\/.*\/zoneinfo\/)?(posix\/)?/, "");
  // An offset alone has another sign in POSIX, and no summer time.
  if (!/^[A-Z]/i.test(name) || !isTimeZone(name)) return null;
  // Agents read TZ, too, and where it is spelled in another way they see UTC.
  const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions();
  return timeZone.toLowerCase() === name.toLowerCase() ? timeZone : name;
}

function target(path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    return path;
  }
}

function refuse(why: string): never {
  throw new ConfigError(
    `scheduler.time_zone: is not set, and ${why}; set it to a time zone such as Europe/Berlin or UTC`,
  );
}

// To ask Intl loads 20 ms of formats that a start does not need. Temporal says UTC where it knows no better, so that needs another
// witness. Deno before 2.7 has no Temporal without a flag.
function systemTimeZone(): string | null {
  const { Temporal: temporal } = globalThis as { Temporal?: typeof Temporal };
  const fast = temporal?.Now.timeZoneId();
  if (fast !== undefined && fast !== "Etc/Unknown" && (fast !== "UTC" || saysUtc())) return fast;
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return name === undefined || name === "Etc/Unknown" ? null : name;
}

function saysUtc(): boolean {
  return /\/zoneinfo\/(Etc\/)?(UTC|UCT|Universal|Zulu)$/.test(target(SYSTEM_FILE));
}
