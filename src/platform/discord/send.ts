import { digest } from "../../base/bytes.ts";
import { beginningOf } from "../message_parts.ts";
import { inDialect } from "../markdown.ts";
import { fileOf } from "../part_file.ts";
import type { Delivery, Progress } from "../platform.ts";
import { deliveryError, type DiscordClient, DiscordError } from "./client.ts";
import { DISCORD_MARKDOWN } from "./format.ts";

const TEXT_CHARACTERS = 2_000;
const LABEL_CHARACTERS = 80;
const BUTTONS_OF_A_ROW = 5;
const NONCE_CHARACTERS = 25;
const UNKNOWN_MESSAGE = 10_008;
/** No previews of links. */
const NO_EMBEDS = 4;
/** Nobody is woken by it. */
const SILENT = 4_096;

interface Sent {
  id: string;
}

/** Sends a part to its channel, as the answer to a message; answers the id that it has there. Throws DeliveryError. */
export async function deliver(client: DiscordClient, delivery: Delivery): Promise<string> {
  const { key, answers, part, choices } = delivery;
  const body = {
    ...textOf(part.asFile === undefined ? part.text : ""),
    // Discord gives back the first message for the same nonce, for some minutes.
    nonce: digest(key).slice(0, NONCE_CHARACTERS),
    enforce_nonce: true,
    ...(/^\d+$/.test(answers)
      ? { message_reference: { message_id: answers, fail_if_not_exists: false } }
      : {}),
    ...(choices.length === 0 ? {} : { components: rowsOf(choices) }),
  };
  try {
    const file = await fileOf(part);
    const path = `${channelOf(delivery)}/messages`;
    const { id } = await client.call<Sent>("POST", path, { body, ...(file === null ? {} : { file }) });
    return id;
  } catch (error) {
    throw deliveryError(error);
  }
}

/** The sign that somebody types, or the message that says what is done: made, edited, taken away. Throws DeliveryError. */
export async function showProgress(client: DiscordClient, progress: Progress): Promise<string> {
  const { text, sentAs } = progress;
  const channel = channelOf(progress);
  const own = `${channel}/messages/${sentAs}`;
  try {
    if (text === null) await client.call("POST", `${channel}/typing`);
    else if (text === "") await client.call("DELETE", own);
    else if (sentAs !== "") await client.call("PATCH", own, { body: textOf(text) });
    else {
      const body = textOf(text, NO_EMBEDS | SILENT);
      return (await client.call<Sent>("POST", `${channel}/messages`, { body })).id;
    }
    return sentAs;
  } catch (error) {
    // Somebody has deleted it: there is nothing left to do.
    if (error instanceof DiscordError && error.code === UNKNOWN_MESSAGE) return sentAs;
    throw deliveryError(error);
  }
}

/** The path of the channel of a place; a thread is a channel of its own. */
export function channelOf({ chat, thread }: Pick<Delivery, "chat" | "thread">): string {
  return `/channels/${encodeURIComponent(thread || chat)}`;
}

/** The fields of a message that say a text, in which nobody can be mentioned. */
function textOf(text: string, flags = NO_EMBEDS): object {
  const marked = inDialect(text, DISCORD_MARKDOWN);
  return {
    // Marks that are escaped can make it too long; Discord reads the rest of Markdown by itself.
    content: marked.length <= TEXT_CHARACTERS ? marked : text,
    allowed_mentions: { parse: [], replied_user: true },
    flags,
  };
}

function rowsOf(choices: Delivery["choices"]): object[] {
  const buttons = choices.map(({ value, label }) => ({
    type: 2,
    style: 1,
    label: beginningOf(label, LABEL_CHARACTERS),
    custom_id: value,
  }));
  const rows = [];
  for (let at = 0; at < buttons.length; at += BUTTONS_OF_A_ROW) {
    rows.push({ type: 1, components: buttons.slice(at, at + BUTTONS_OF_A_ROW) });
  }
  return rows;
}
