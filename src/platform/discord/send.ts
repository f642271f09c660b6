import { digest } from "../../base/bytes.ts";
import { truncate } from "../message_parts.ts";
import { translateMarkdown } from "../markdown.ts";
import { readPartFile } from "../part_file.ts";
import type { Delivery, Progress } from "../platform.ts";
import { type DiscordClient, DiscordError } from "./client.ts";
import { DISCORD_MARKDOWN } from "./format.ts";

const TEXT_CHARACTERS = 2_000;
const LABEL_CHARACTERS = 80;
const BUTTONS_OF_A_ROW = 5;
const NONCE_CHARACTERS = 25;
const UNKNOWN_MESSAGE = 10_008;
/** Hides the previews of links. */
const NO_EMBEDS = 4;
/** Sends no push notification. */
const SILENT = 4_096;

interface SentMessage {
  id: string;
}

/** Sends a part as the reply to a message. Returns its id. Throws as the client does. */
export async function deliver(client: DiscordClient, delivery: Delivery): Promise<string> {
  const { key, answers, part, choices } = delivery;
  const body = {
    ...buildText(part.asFile === undefined ? part.text : ""),
    // For some minutes, Discord returns the first message for the same nonce.
    nonce: digest(key).slice(0, NONCE_CHARACTERS),
    enforce_nonce: true,
    ...(/^\d+$/.test(answers)
      ? { message_reference: { message_id: answers, fail_if_not_exists: false } }
      : {}),
    ...(choices.length === 0 ? {} : { components: createButtonRows(choices) }),
  };
  const file = await readPartFile(part);
  const path = `${buildChannelPath(delivery)}/messages`;
  const { id } = await client.call<SentMessage>("POST", path, { body, ...(file === null ? {} : { file }) });
  return id;
}

/** Shows the typing sign, or creates, edits or deletes the message of progress. Throws as the client does. */
export async function showProgress(client: DiscordClient, progress: Progress): Promise<string> {
  const { text, sentAs } = progress;
  const channel = buildChannelPath(progress);
  const own = `${channel}/messages/${sentAs}`;
  try {
    if (text === null) await client.call("POST", `${channel}/typing`);
    else if (text === "") await client.call("DELETE", own);
    else if (sentAs !== "") await client.call("PATCH", own, { body: buildText(text) });
    else {
      const body = buildText(text, NO_EMBEDS | SILENT);
      return (await client.call<SentMessage>("POST", `${channel}/messages`, { body })).id;
    }
    return sentAs;
  } catch (error) {
    // A person deleted the message.
    if (error instanceof DiscordError && error.code === UNKNOWN_MESSAGE) return sentAs;
    throw error;
  }
}

/** Builds the path of a channel. A thread is a separate channel. */
export function buildChannelPath({ chat, thread }: Pick<Delivery, "chat" | "thread">): string {
  return `/channels/${encodeURIComponent(thread || chat)}`;
}

/** Builds the fields of a text that mentions no person. */
function buildText(text: string, flags = NO_EMBEDS): object {
  const marked = translateMarkdown(text, DISCORD_MARKDOWN);
  return {
    // Escapes can make the text too long. Discord shows plain Markdown as well.
    content: marked.length <= TEXT_CHARACTERS ? marked : text,
    allowed_mentions: { parse: [], replied_user: true },
    flags,
  };
}

function createButtonRows(choices: Delivery["choices"]): object[] {
  const buttons = choices.map(({ value, label }) => ({
    type: 2,
    style: 1,
    label: truncate(label, LABEL_CHARACTERS),
    custom_id: value,
  }));
  const rows = [];
  for (let at = 0; at < buttons.length; at += BUTTONS_OF_A_ROW) {
    rows.push({ type: 1, components: buttons.slice(at, at + BUTTONS_OF_A_ROW) });
  }
  return rows;
}
