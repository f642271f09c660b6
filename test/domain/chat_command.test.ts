import { expect, it } from "vitest";
import { CHAT_COMMANDS, parseChatCommand } from "../../src/domain/chat/chat_command.ts";
import { readAnswer } from "../../src/domain/work/question.ts";

const NAMES = Object.keys(CHAT_COMMANDS).filter((name) => name !== "answer");

it.each(NAMES)("/%s is a command in any case, with ! and with the name of the bot", (name) => {
  const title = `${name[0]?.toUpperCase()}${name.slice(1)}`;
  for (const typed of [name, title, name.toUpperCase(), `${title}@my_bot`, `${name.toUpperCase()}@Bot2`]) {
    for (const mark of ["/", "!", "\uff0f", "\uff01"]) {
      for (
        const text of [
          `${mark}${typed}`,
          `  ${mark}${typed}\n`,
          `${mark}${typed} now`,
          `${mark}${typed}\tnow`,
        ]
      ) {
        expect([text, parseChatCommand(text)?.name]).toEqual([text, name]);
      }
    }
  }
});

it.each([
  "/stopp",
  "/stop,",
  "stop",
  "/ stop",
  "/stop@",
  "/stop@ bot",
  "//stop",
  "/answer yes",
  "/constructor",
  "`/stop`",
  "> /stop",
])(
  "%j is text",
  (text) => expect(parseChatCommand(text)).toBeNull(),
);

it.each([
  "/answer  Dark Green ",
  "/Answer Dark Green",
  "!ANSWER@my_bot\nDark Green",
  "\uff01answer Dark Green",
])(
  "%j answers the question",
  (content) => {
    const question = { id: "q", tool: "", options: ["Red", "Blue"], created_at: 1, expires_at: 9 };
    const said = { content, hasMedia: false, receivedAt: 2, replyTo: "", direct: false };
    expect(readAnswer([question], said)).toMatchObject({ is: "answer", answer: "Dark Green" });
    expect(readAnswer([], said)).toMatchObject({ is: "unclear" });
  },
);
