import { SLACK_MRKDWN } from "./format.ts";

/** A block, or an element of one. */
export interface Block {
  type?: string;
  text?: string | Block;
  title?: string | Block;
  elements?: Block[];
  fields?: Block[];
  rows?: Block[][];
  style?: string | Partial<Record<"bold" | "italic" | "strike" | "code", boolean>>;
  indent?: number;
  offset?: number;
  url?: string;
  user_id?: string;
  usergroup_id?: string;
  channel_id?: string;
  range?: string;
  name?: string;
  /** Code points of an emoji, such as `1f468-200d-1f4bb`. */
  unicode?: string;
  value?: string | number;
  timestamp?: number;
  format?: string;
  fallback?: string;
  alt_text?: string;
  image_url?: string;
  title_url?: string;
}

type Formatter = (
  block: Block,
  inside: (blocks: readonly Block[] | undefined, glue: string) => string,
) => string;

const { escape } = SLACK_MRKDWN;
const formatPlain: Formatter = ({ text, value = "" }) =>
  escape(typeof text === "string" ? text : String(value));
const formatNothing: Formatter = () => "";
const isFilled = (text: string) => text.trim() !== "";

const FORMATTERS: Record<string, Formatter> = {
  rich_text: ({ elements }, inside) => inside(elements, "\n"),
  rich_text_section: ({ elements }, inside) => inside(elements, ""),
  rich_text_quote: ({ elements }, inside) => inside(elements, "").replace(/^/gm, "&gt; "),
  rich_text_preformatted: ({ elements }, inside) => `\`\`\`\n${inside(elements, "")}\n\`\`\``,
  rich_text_list: formatList,
  section: ({ text, fields = [] }, inside) => inside([...asBlocks(text), ...fields], "\n"),
  header: ({ text }, inside) => inside(asBlocks(text), ""),
  context: ({ elements }, inside) => inside(elements, " "),
  table: ({ rows = [] }, inside) => rows.map((row) => `| ${inside(row, " | ")} |`).join("\n"),
  divider: () => "---",
  // Controls, which a person can use and an agent cannot.
  actions: formatNothing,
  context_actions: formatNothing,
  image: ({ alt_text = "", title, image_url }, inside) =>
    formatAddress(inside(asBlocks(title), "") || escape(alt_text), image_url),
  video: ({ title, alt_text = "", title_url }, inside) =>
    formatAddress(inside(asBlocks(title), "") || escape(alt_text), title_url),
  mrkdwn: ({ text }) => typeof text === "string" ? text : "",
  plain_text: formatPlain,
  markdown: formatPlain,
  raw_text: formatPlain,
  raw_number: formatPlain,
  color: formatPlain,
  text: (block, inside) => formatStyle(formatPlain(block, inside), block.style),
  link: ({ text, url }) => formatAddress(typeof text === "string" ? escape(text) : "", url),
  user: ({ user_id = "" }) => `<@${user_id}>`,
  usergroup: ({ usergroup_id = "" }) => `<!subteam^${usergroup_id}>`,
  channel: ({ channel_id = "" }) => `<#${channel_id}>`,
  broadcast: ({ range = "" }) => `<!${range}>`,
  emoji: ({ name = "", unicode }) => formatEmoji(unicode) ?? `:${escape(name)}:`,
  date: ({ timestamp = 0, fallback = "" }) => `<!date^${timestamp}^{date}|${escape(fallback)}>`,
};

const DEPTH_MAX = 8;

/** Formats blocks as mrkdwn. Adds what it cannot format to `unreadable`. */
export function formatBlocks(blocks: readonly Block[], unreadable: string[]): string {
  return formatEach(blocks, unreadable, 0).filter(isFilled).join("\n");
}

function formatEach(blocks: readonly Block[], unreadable: string[], depth: number): string[] {
  return blocks.map((block) => {
    const type = block.type ?? "";
    const format = Object.hasOwn(FORMATTERS, type) ? FORMATTERS[type] : undefined;
    const text = depth > DEPTH_MAX
      ? undefined
      : format?.(block, (inner = [], glue) => formatEach(inner, unreadable, depth + 1).join(glue));
    if (text === undefined) unreadable.push(`a block of the type ${type || "unknown"}`);
    return text ?? "";
  });
}

/** Returns whether the blocks only repeat the text of the message. */
export function isRichText(blocks: readonly Block[]): boolean {
  return blocks.every(({ type }) => type === "rich_text");
}

function formatList(
  { elements = [], style, indent = 0, offset = 0 }: Block,
  inside: Parameters<Formatter>[1],
): string {
  const margin = "  ".repeat(Math.min(Math.max(indent, 0), DEPTH_MAX));
  return elements.map((element, at) => {
    const sign = style === "ordered" ? `${offset + at + 1}.` : "-";
    return `${margin}${sign} ${inside([element], "")}`;
  }).join("\n");
}

function asBlocks(text: string | Block | undefined): Block[] {
  if (text === undefined) return [];
  return [typeof text === "string" ? { type: "plain_text", text } : text];
}

function formatStyle(text: string, style: Block["style"]): string {
  if (typeof style !== "object" || !isFilled(text)) return text;
  const marks = [style.code && "`", style.strike && "~", style.italic && "_", style.bold && "*"];
  return marks.reduce((marked: string, mark) => mark ? `${mark}${marked}${mark}` : marked, text);
}

function formatAddress(label: string, url: string | undefined): string {
  if (url === undefined || url === "") return label;
  const address = escape(url).replaceAll("|", "%7C");
  return label === "" ? `<${address}>` : `<${address}|${label}>`;
}

function formatEmoji(unicode: string | undefined): string | undefined {
  if (!/^[\da-f]{1,6}(?:-[\da-f]{1,6})*$/i.test(unicode ?? "")) return undefined;
  const points = unicode?.split("-").map((point) => parseInt(point, 16)) ?? [];
  return points.every((point) => point <= 0x10ffff) ? String.fromCodePoint(...points) : undefined;
}
