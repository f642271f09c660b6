import type { Choice } from "../../domain/call/choice.ts";
import { truncate } from "../message_parts.ts";
import { translateMarkdown } from "../markdown.ts";
import { FEISHU_MARKDOWN } from "./format.ts";
import type { PressValue } from "./message.ts";

const LABEL_CHARACTERS = 100;
// Each button contains the question. Together they must stay below the limit of a card.
const QUESTION_CHARACTERS = 2_000;

/** Builds a card. Only cards have marks and buttons, and allow edits. */
export function buildCard(text: string, buttons: readonly object[] = []): object {
  const content = translateMarkdown(text, FEISHU_MARKDOWN);
  return {
    schema: "2.0",
    config: { update_multi: true },
    body: { elements: [{ tag: "markdown", content }, ...buttons] },
  };
}

/** Builds the buttons of a question. Their value has all that the service needs to store a press and to show the question again. */
export function buildButtons(choices: readonly Choice[], text: string, thread: string): object[] {
  const share = Math.floor(QUESTION_CHARACTERS / Math.max(1, choices.length));
  const shown = text.length <= share ? text : `${text.slice(0, share)}…`.toWellFormed();
  return choices.map(({ value: choice, label }) => {
    const value: PressValue = { choice, label, text: shown, thread };
    return {
      tag: "button",
      text: { tag: "plain_text", content: truncate(label, LABEL_CHARACTERS) },
      behaviors: [{ type: "callback", value }],
    };
  });
}
