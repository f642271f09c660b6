import { type Dialect, formatFencedBlock } from "../markdown.ts";

/** Slack's mrkdwn. Escaped text mentions no person. */
export const SLACK_MRKDWN: Dialect = {
  escape: (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
  bold: (text) => `*${text}*`,
  italic: (text) => `_${text}_`,
  strike: (text) => `~${text}~`,
  heading: (text) => `*${text}*`,
  link: (label, address) => `<${address}|${label}>`,
  // Slack's code can't contain backticks.
  code: (text) => text.includes("`") ? text : `\`${text}\``,
  block: (text) => formatFencedBlock(text, ""),
};

const MARKUP = /<([^<>]+)>|&(?:amp|lt|gt);/g;
const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">" };

/** Returns the text as the person typed it. A link with a label becomes a Markdown link. */
export function formatPlainText(text: string): string {
  return text.replace(MARKUP, (found, inside?: string) => {
    if (inside === undefined) return ENTITIES[found] ?? found;
    const [target = "", ...label] = inside.split("|");
    return formatMarkup(decodeEntities(target), decodeEntities(label.join("|")));
  });
}

function decodeEntities(text: string): string {
  return text.replace(MARKUP, (found) => ENTITIES[found] ?? found);
}

/** Formats `<target|label>`. The label of a mention is a name. */
function formatMarkup(target: string, label: string): string {
  const [, sign = "", id = ""] = /^([@#])(\w+)$/.exec(target) ?? [];
  if (sign !== "") return `${sign}${label.replace(/^[@#]/, "") || id}`;
  const [, seconds, address = ""] = /^!date\^(-?\d+)\^[^^]*(?:\^(.+))?$/.exec(target) ?? [];
  if (seconds !== undefined) {
    const shown = label || formatTime(Number(seconds));
    return address === "" ? shown : formatLink(address, shown);
  }
  if (target.startsWith("!")) return `@${label.replace(/^@/, "") || target.replace(/^!(subteam\^)?/, "")}`;
  return formatLink(target, label);
}

function formatTime(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? String(seconds) : date.toISOString();
}

function formatLink(address: string, label: string): string {
  if (label === "") return address.replace(/^(?:mailto|tel):/, "");
  return isTypedAddress(label, address) ? label : `[${label}](${address})`;
}

/** Returns whether Slack made the link itself, from an address, e-mail address or phone number that the person typed. */
function isTypedAddress(label: string, address: string): boolean {
  if (address.startsWith("tel:")) {
    // In the address, a country code may replace the first zero.
    const digits = label.replace(/\(0\)|\D/g, "").replace(/^0+/, "");
    return digits !== "" && !/\p{L}/u.test(label) && address.replace(/\D/g, "").endsWith(digits);
  }
  const [scheme = ""] = /^(?:mailto:|\w[\w+.-]*:\/\/)/.exec(address) ?? [];
  return [label, `${scheme}${label}`].some((typed) => normalizeAddress(typed) === normalizeAddress(address));
}

// Slack adds a scheme and a path to an address, writes the host in lower case, and escapes other characters.
function normalizeAddress(address: string): string {
  const href = (URL.parse(address)?.href ?? address).replace(/\/$/, "");
  return href.startsWith("mailto:") ? href.toLowerCase() : href;
}
