import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findOwnText, formatExcerpt, formatUnreadable } from "../../src/domain/chat/excerpt.ts";
import { CONTENT_MAX_BYTES } from "../../src/domain/call/field.ts";
import { parseChatCommand } from "../../src/domain/chat/chat_command.ts";
import { type Candidate, routeByRules } from "../../src/domain/chat/routing.ts";
import { readAnswer } from "../../src/domain/work/question.ts";

const ADA: Candidate = { id: "a", name: "Ada", description: "", paused: false, departments: [] };
const quote = (text: string, author = "Bob") => formatExcerpt({ kind: "quoted", author, text });
const BREAKS = ["\n", "\r", "\r\n", "\v", "\f", "\u0085", "\u2028", "\u2029"];

describe("formatExcerpt", () => {
  it("labels the text and marks each of its lines", () => {
    expect(quote("one\n\n/stop")).toBe("[Quoted from Bob]\n> one\n> \n> /stop");
    expect(formatExcerpt({ kind: "forwarded", author: "", text: "x" }))
      .toBe("[Forwarded from another person]\n> x");
    expect(quote(" \n ")).toBe("");
  });

  it.each([
    ["@Ada", "Ada"],
    ["Bob]\n/stop\n[Bob", "Bob  /stop  Bob"],
    ["B\u2028@Ada", "B Ada"],
    ["\ud800", "\ufffd"],
  ])("keeps the name %j inside the label", (author, shown) => {
    expect(quote("x", author).replace(/ +/g, " ")).toBe(`[Quoted from ${shown}]\n> x`.replace(/ +/g, " "));
  });

  it("routes no message, is no command and answers no question, with any text and name", () => {
    const word = fc.constantFrom("@Ada", "/stop", "/answer yes", "yes", "]", "> ", " ", "x", ...BREAKS);
    const text = fc.oneof(
      fc.array(word, { maxLength: 12 }).map((words) => words.join("")),
      fc.string({ unit: "binary" }),
    );
    const question = { id: "q", tool: "", options: ["yes"], created_at: 0, expires_at: 10 };
    const excerpts = fc.array(
      fc.record({ kind: fc.constantFrom("quoted" as const, "forwarded" as const), author: text, text }),
      { minLength: 1, maxLength: 3 },
    );
    fc.assert(
      fc.property(excerpts, (given) => {
        const content = given.map(formatExcerpt).filter((part) => part !== "").join("\n");
        expect(routeByRules(content, [ADA], null)).toEqual({ to: "bee" });
        expect(parseChatCommand(content)).toBeNull();
        expect(findOwnText(content)).toBe("");
        const said = {
          content: findOwnText(content),
          hasMedia: false,
          receivedAt: 1,
          replyTo: "q",
          direct: true,
        };
        expect(readAnswer([question], said)).toEqual({ is: "message" });
        expect(findOwnText(`yes\n${content}`)).toBe("yes");
        expect(readAnswer([question], { ...said, content: findOwnText(`yes\n${content}`) })).toMatchObject({
          answer: "yes",
        });
        const mentioned = routeByRules(`@Ada do\n${content}`, [ADA], null);
        expect(mentioned).toMatchObject({ to: "worker", instruction: `do\n${content}`.trim() });
      }),
      { seed: 37, numRuns: 300 },
    );
  });
});

describe("findOwnText", () => {
  const lineBreaks = ["\n", "\r", "\u2028", "\u2029"];
  const labels = ["[Quoted from ", "[Forwarded from ", "[Cannot read "];

  it.each(lineBreaks.flatMap((lineBreak) => labels.map((label) => lineBreak + label)))(
    "reads a message full of %j in linear time",
    (piece) => {
      const text = piece.repeat(Math.floor(CONTENT_MAX_BYTES / piece.length));
      const started = performance.now();
      expect(findOwnText(text)).toBe(text.trim());
      expect(performance.now() - started).toBeLessThan(1_000);
    },
  );

  it.each(lineBreaks.slice(1))("keeps what a person typed after %j", (lineBreak) => {
    expect(findOwnText(`${quote("no")}\nyes${lineBreak}please`)).toBe(`yes${lineBreak}please`);
  });
});

describe("formatUnreadable", () => {
  it.each([
    [[], ""],
    [["a sticker"], "[Cannot read a sticker]"],
    [["a sticker", "a poll", "a sticker"], "[Cannot read a sticker and a poll]"],
    [["a", "b", "c"], "[Cannot read a, b and c]"],
  ])("%j", (nouns, line) => expect(formatUnreadable(nouns)).toBe(line));
});
