import { isTimeZone } from "../../domain/call/field.ts";

// Abbreviations with one meaning. CST, IST, BST and their like have several, so the zone of the engine's process decides.
const HOURS: Record<string, number> = {
  ...{ UTC: 0, GMT: 0, UT: 0, Z: 0, WET: 0, WEST: 1, CET: 1, CEST: 2, EET: 2, EEST: 3, MSK: 3 },
  ...{ EST: -5, EDT: -4, CDT: -5, MST: -7, MDT: -6, PST: -8, PDT: -7, AKST: -9, AKDT: -8, HST: -10 },
  ...{
    HKT: 8,
    SGT: 8,
    AWST: 8,
    JST: 9,
    KST: 9,
    ACST: 9.5,
    ACDT: 10.5,
    AEST: 10,
    AEDT: 11,
    NZST: 12,
    NZDT: 13,
  },
};
const REGIONS: Record<string, string> = {
  ...{ PT: "America/Los_Angeles", MT: "America/Denver", CT: "America/Chicago", ET: "America/New_York" },
  ...{ PACIFIC: "America/Los_Angeles", MOUNTAIN: "America/Denver" },
  ...{ CENTRAL: "America/Chicago", EASTERN: "America/New_York" },
};

const OFFSET = /^(?:UTC|GMT)?\s?([+\-−])(\d{1,2})(?::?(\d{2}))?(?!\d)/i;
const REGION = /^(pacific|mountain|central|eastern)(?: (standard|daylight))? time\b/i;
const NAME = /^[a-z][\w+-]*(?:\/[\w+-]+)*/i;
const OFFSET_MAX_MINUTES = 14 * 60;

/** Finds the time zone at the start of a text, as a name or offset for Intl, and the length of its words. Returns null without one. */
export function findZone(text: string): { zone: string; length: number } | null {
  const lead = /^[\s,]*[([]?\s*/.exec(text)?.[0].length ?? 0;
  const rest = text.slice(lead);
  const [offset = "", sign, hours, minutes = "0"] = OFFSET.exec(rest) ?? [];
  if (offset !== "") {
    const total = (sign === "+" ? 1 : -1) * (Number(hours) * 60 + Number(minutes));
    return Math.abs(total) > OFFSET_MAX_MINUTES
      ? null
      : { zone: formatOffset(total), length: lead + offset.length };
  }
  const [region = "", place = "", season = ""] = REGION.exec(rest) ?? [];
  if (region !== "") {
    const letter = season.charAt(0).toUpperCase();
    const zone = findAbbreviation(`${place.charAt(0).toUpperCase()}${letter}T`) ??
      REGIONS[place.toUpperCase()];
    return zone === undefined ? null : { zone, length: lead + region.length };
  }
  const [name = ""] = NAME.exec(rest) ?? [];
  const zone = findAbbreviation(/^(?:utc|gmt)$/i.test(name) ? name.toUpperCase() : name) ??
    findName(name, text);
  return zone === undefined ? null : { zone, length: lead + name.length };
}

// Only a word with a slash or in parentheses is a name, such as "Europe/Berlin" and "(Japan)".
function findName(name: string, text: string): string | undefined {
  const isName = name.includes("/") || /^\s*[([]/.test(text) && !/^[A-Z]{2,4}$/.test(name);
  return isName && isTimeZone(name) ? name : undefined;
}

function findAbbreviation(name: string): string | undefined {
  const hours = Object.hasOwn(HOURS, name) ? HOURS[name] : undefined;
  if (hours !== undefined) return formatOffset(hours * 60);
  return Object.hasOwn(REGIONS, name) && name.length === 2 ? REGIONS[name] : undefined;
}

function formatOffset(minutes: number): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const size = Math.abs(minutes);
  return minutes === 0 ? "UTC" : `${minutes < 0 ? "-" : "+"}${two(size / 60)}:${two(size % 60)}`;
}

const FIXED = /^(?:[A-Za-z]{3,}|<[^>]+>)([+-]?)(\d{1,2})(?::(\d{2}))?$/;

/** Returns the time zone that a process with this variable TZ uses, or null when Intl has no name for it. */
export function findProcessZone(tz: string | undefined): string | null {
  if (tz === undefined) return null;
  const name = tz.replace(/^:/, "").replace(/^\/.*\/zoneinfo\/(?:posix\/)?/, "");
  if (name === "") return "UTC";
  if (/^[A-Z]/i.test(name) && isTimeZone(name)) return name;
  // In POSIX, an offset has the opposite sign.
  const [found, sign, hours, minutes = "0"] = FIXED.exec(name) ?? [];
  return found === undefined
    ? null
    : formatOffset((sign === "-" ? 1 : -1) * (Number(hours) * 60 + Number(minutes)));
}
