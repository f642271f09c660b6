import { isTimeZone } from "../domain/call/field.ts";
import { ConfigError } from "./file.ts";

const SYSTEM_FILE = "/etc/localtime";

/**
 * Finds the machine's time zone, such as Europe/Berlin: from `tz` (the variable TZ, read as POSIX does), or else from
 * the system. Throws ConfigError without a zone, because schedules must not fire in a wrong one.
 */
export function findMachineTimeZone(tz: string | undefined): string {
  if (tz === undefined) return findSystemTimeZone() ?? refuse("the system names none");
  const name = parseZone(tz.replace(/^:/, ""));
  return name === null ? refuse(`TZ is ${JSON.stringify(tz)}`) : name;
}

function parseZone(tz: string): string | null {
  if (/^((UTC|GMT)0?)?$/.test(tz)) return "UTC";
  const name = (tz.startsWith("/") ? resolveLink(tz) : tz).replace(/^(\/.*\/zoneinfo\/)?(posix\/)?/, "");
  // A plain offset has the opposite sign in POSIX and no summer time.
  if (!/^[A-Z]/i.test(name) || !isTimeZone(name)) return null;
  // Agents read TZ, too, and fall back to UTC for another spelling.
  const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions();
  return timeZone.toLowerCase() === name.toLowerCase() ? timeZone : name;
}

function resolveLink(path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    return path;
  }
}

function refuse(why: string): never {
  throw new ConfigError(
    `scheduler.time_zone: is not set, and ${why}. Set a time zone such as Europe/Berlin or UTC.`,
  );
}

// Intl loads 20 ms of formats that a start does not need. Temporal falls back to UTC, so UTC needs a second check. Deno
// before 2.7 has Temporal only behind a flag.
function findSystemTimeZone(): string | null {
  const { Temporal: temporal } = globalThis as { Temporal?: typeof Temporal };
  const fast = temporal?.Now.timeZoneId();
  if (fast !== undefined && fast !== "Etc/Unknown" && (fast !== "UTC" || isSystemUtc())) return fast;
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return name === undefined || name === "Etc/Unknown" ? null : name;
}

function isSystemUtc(): boolean {
  return /\/zoneinfo\/(Etc\/)?(UTC|UCT|Universal|Zulu)$/.test(resolveLink(SYSTEM_FILE));
}
