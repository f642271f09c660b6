import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DISCORD_MARKDOWN } from "../../src/platform/discord/format.ts";
import { FEISHU_MARKDOWN } from "../../src/platform/feishu/format.ts";
import { formatWithTitle } from "../../src/platform/dingtalk/format.ts";
import { translateMarkdown } from "../../src/platform/markdown.ts";
import { cutReply, cutText } from "../../src/platform/message_parts.ts";
import { SLACK_MRKDWN } from "../../src/platform/slack/format.ts";
import { TELEGRAM_HTML } from "../../src/platform/telegram/format.ts";
import { WECOM_MARKDOWN } from "../../src/platform/wecom/format.ts";

/** Finds the first line of the code block that is open at the end, read without the code under test. */
function findOpen(text: string): string | null {
  let open: { line: string; marks: string; depth: number } | null = null;
  for (const line of text.split(/\r\n?|\n/)) {
    const [, prefix = "", marks = "", info = ""] =
      /^((?:[ \t]*(?:>|[-*+][ \t]|\d+[.)][ \t]))*[ \t]*)(`{3,}|~{3,})(.*)$/.exec(line) ?? [];
    const depth = prefix.split(">").length - 1;
    const quotes = line.split(/[^> \t]/)[0]?.split(">").length ?? 1;
    if (open !== null && quotes - 1 < open.depth) open = null;
    if (open === null) {
      if (marks !== "" && !(marks.startsWith("`") && info.includes("`"))) open = { line, marks, depth };
    } else if (marks.startsWith(open.marks) && depth === open.depth && info.trim() === "") open = null;
  }
  return open?.line ?? null;
}

/** Returns the text without fence lines and blanks, which cuts add and remove. */
function strip(text: string): string {
  return text.split(/\r?\n/)
    .map((line) => line.replace(/^[> \t]+/, ""))
    .filter((line) => !/^(```|~~~)/.test(line))
    .join("").replace(/\s+/g, "");
}

const WORDS = fc.constantFrom(
  "word",
  "two words",
  "a sentence. Another",
  "`code`",
  "    indented",
  "",
  "x".repeat(40),
);
const PROSE = fc.array(WORDS, { minLength: 1, maxLength: 6 }).map((lines) => lines.join("\n"));
const BLOCK = fc.record({
  prefix: fc.constantFrom("", "  ", "   ", "> ", "> > ", "    ", ">"),
  marks: fc.constantFrom("```", "````", "~~~", "~~~~~"),
  info: fc.constantFrom("", "ts", " python title=x"),
  lines: fc.array(fc.constantFrom("code", "  deeper", "", "``", "~~", "```js", "# x", "y".repeat(30)), {
    maxLength: 12,
  }),
}).map(({ prefix, marks, info, lines }) =>
  [`${prefix}${marks}${info}`, ...lines.map((line) => prefix + line), `${prefix}${marks}`].join("\n")
);
const MARKDOWN_TEXT = fc.array(fc.oneof(PROSE, BLOCK), { minLength: 1, maxLength: 8 }).map((parts) =>
  parts.join("\n\n")
);

describe("cutText()", () => {
  it("loses nothing, keeps the limit and leaves no code block open, for generated Markdown", () => {
    fc.assert(
      fc.property(
        MARKDOWN_TEXT,
        fc.integer({ min: 60, max: 400 }),
        fc.boolean(),
        (text, limit, isWindows) => {
          const given = isWindows ? text.replaceAll("\n", "\r\n") : text;
          const pieces = cutText(given, limit);
          for (const piece of pieces) {
            expect(piece.length).toBeLessThanOrEqual(limit);
            expect(findOpen(piece)).toBeNull();
          }
          expect(strip(pieces.join("\n"))).toBe(strip(given));
        },
      ),
      { numRuns: 2_000, seed: 37 },
    );
  });

  it("keeps the limit and the text for any characters and the smallest limits", () => {
    const soup = fc.array(
      fc.constantFrom("```", "````", "~~~", "`", "> ", "- ", "\n", "\r\n", " ", "ab", "😀", "    "),
      {
        maxLength: 60,
      },
    ).map((parts) => parts.join(""));
    fc.assert(
      fc.property(soup, fc.integer({ min: 12, max: 80 }), (text, limit) => {
        const letters = (given: string) => given.replace(/[^ab😀]/gu, "");
        const pieces = cutText(text, limit);
        for (const piece of pieces) expect(piece.length).toBeLessThanOrEqual(limit);
        expect(letters(pieces.join(""))).toBe(letters(text));
      }),
      { numRuns: 2_000, seed: 37 },
    );
  });

  it.each([
    ["indented", "  ```ts", "  ", "  ```"],
    ["in a list", "   ```ts", "   ", "   ```"],
    ["deeply indented", "     ```ts", "     ", "     ```"],
    ["with tildes", "~~~ts", "", "~~~"],
    ["with four ticks", "````ts", "", "````"],
    ["quoted", "> ```ts", "> ", "> ```"],
    ["quoted twice", "> > ~~~~ts", "> > ", "> > ~~~~"],
  ])("closes and opens a code block %s as it was", (_what, opening, prefix, closing) => {
    const code = Array.from({ length: 60 }, (_, line) => `${prefix}line ${line}`);
    const pieces = cutText([opening, ...code, closing].join("\n"), 200);
    expect(pieces.length).toBeGreaterThan(2);
    for (const piece of pieces) {
      expect(piece.startsWith(`${opening}\n`)).toBe(true);
      expect(piece.endsWith(`\n${closing}`)).toBe(true);
    }
    const lines = pieces.flatMap((piece) => piece.split("\n").slice(1, -1));
    expect(lines).toEqual(code);
  });

  it("keeps blank lines and indentation of code at a cut, and line breaks of Windows", () => {
    for (const end of ["\n", "\r\n"]) {
      const code = Array.from({ length: 40 }, (_, line) => line % 2 ? "" : `    line ${line}`);
      const pieces = cutText(["```", ...code, "```"].join(end), 120);
      const lines = pieces.flatMap((piece) => piece.split(/\r?\n/).slice(1, -1));
      expect(lines).toEqual(code);
    }
  });

  it("repeats no code block that ends before the cut, also where it shows other fences", () => {
    const text = `${"````md\n```js\ncode\n```\n````"}\n\n${"word ".repeat(60)}`;
    const pieces = cutText(text, 120);
    expect(pieces.filter((piece) => piece.includes("`"))).toEqual([
      expect.stringMatching(/^````md\n```js\ncode\n```\n````/),
    ]);
  });

  it("puts no empty code block at a cut", () => {
    for (let length = 60; length < 140; length++) {
      const pieces = cutText(`${"x".repeat(length)}\n\`\`\`\nsome code here\n\`\`\`\nend of the text`, 120);
      for (const piece of pieces) expect(piece).not.toMatch(/```\n+```/);
    }
  });

  it("cutReply() keeps the indentation of a block that starts the reply", () => {
    const [part] = cutReply("   ```js\n   code\n   ```", null, { characters: 1_000, fileBytes: 0 });
    expect(translateMarkdown(part?.text ?? "", TELEGRAM_HTML)).toBe("<pre>code</pre>");
  });
});

describe("translateMarkdown()", () => {
  it.each([
    ["  ```js\n  a < b\n    c\n  ```", "<pre>a &lt; b\n  c</pre>"],
    ["~~~\n**no**\n~~~", "<pre>**no**</pre>"],
    ["~~~\n```\n~~~", "<pre>```</pre>"],
    ["````\n```js\nx\n```\n````", "<pre>```js\nx\n```</pre>"],
    ["> ```\n> a\n> ```\n> *b*", "<pre>a</pre>\n&gt; <i>b</i>"],
    ["> ```\n> a\nb", "<pre>a</pre>\nb"],
    ["a\r\n```js\r\nx\r\ny\r\n```\r\nb", "a\n<pre>x\ny</pre>\nb"],
    ["- one\n  ```\n  x\n  ```\n- two", "- one\n<pre>x</pre>\n- two"],
    ["1. ```\n   x\n   ```", "1. <pre>x</pre>"],
    ["```\n*open*", "<pre>*open*</pre>"],
    ["```\n```", "<pre></pre>"],
    ["``a ` b`` and `` `c` ``", "<code>a ` b</code> and <code>`c`</code>"],
    ["```one line```", "<code>one line</code>"],
    ["[a [b] c](https://a.example/)", '<a href="https://a.example/">a [b] c</a>'],
    ["[a \\[b](https://a.example/)", '<a href="https://a.example/">a [b</a>'],
    ["[x](https://a.example/b_(c))", '<a href="https://a.example/b_(c)">x</a>'],
    ["([x](https://a.example/b))", '(<a href="https://a.example/b">x</a>)'],
    ["[x](https://a.example/(b(c))d)", '<a href="https://a.example/(b(c))d">x</a>'],
    ['[x](<https://a.example/b c> "title")', '<a href="https://a.example/b%20c">x</a>'],
    ["[1] [x](https://a.example)", '[1] <a href="https://a.example">x</a>'],
    ["[`a]b`](https://a.example)", '<a href="https://a.example"><code>a]b</code></a>'],
  ])("%j for Telegram", (markdown, html) => expect(translateMarkdown(markdown, TELEGRAM_HTML)).toBe(html));

  it.each([
    ["[a [b] c](https://a.example/b_(c)|d)", "<https://a.example/b_(c)%7Cd|a [b] c>"],
    ["````\n```\n````", "```\n`\u200b``\n```"],
    ["~~~js\na\n~~~", "```\na\n```"],
  ])("%j for Slack", (markdown, shown) => expect(translateMarkdown(markdown, SLACK_MRKDWN)).toBe(shown));

  it.each([
    ["> ~~~js\n> a_b\n> ~~~\n> c", "> ```js\n> a_b\n> ```\n> c"],
    ["[a [b] c](https://a.example/b_(c))", "[a [b] c](https://a.example/b_%28c%29)"],
    ["~~~c++\na\n~~~", "```c++\na\n```"],
    ["`````\n````\n`````", "```\n`\u200b`\u200b``\n```"],
  ])("%j for Discord and WeCom", (markdown, shown) => {
    expect(translateMarkdown(markdown, DISCORD_MARKDOWN)).toBe(shown);
    expect(translateMarkdown(markdown, WECOM_MARKDOWN)).toBe(shown);
  });

  it("for Feishu and DingTalk", () => {
    expect(translateMarkdown("[a [b]](https://a.example/b_(c))", FEISHU_MARKDOWN))
      .toBe("[a &#91;b&#93;](https://a.example/b_%28c%29)");
    expect(formatWithTitle("one\n~~~\na\nb\n~~~\ntwo\nthree").text).toBe("one\n```\na\nb\n```\ntwo  \nthree");
    expect(formatWithTitle("> ~~~\n> a\n> b\n> ~~~").text).toBe("> ```\n> a\n> b\n> ```");
  });

  it.each([
    ["# # two", "<b># two</b>"],
    ["**# x**", "<b># x</b>"],
    ["# ~~# x~~", "<b><s># x</s></b>"],
    ["# one\n# two", "<b>one</b>\n<b>two</b>"],
  ])("finds headings only at the start of a line: %j", (markdown, html) => {
    expect(translateMarkdown(markdown, TELEGRAM_HTML)).toBe(html);
  });

  it.each([TELEGRAM_HTML, SLACK_MRKDWN, DISCORD_MARKDOWN, FEISHU_MARKDOWN, WECOM_MARKDOWN])(
    "translates a line of many heading marks",
    (dialect) => expect(translateMarkdown("# ".repeat(30_000), dialect)).toContain("# # #"),
  );

  it("escapes every mark outside of tags, for generated Markdown, whole or in pieces", () => {
    fc.assert(
      fc.property(MARKDOWN_TEXT, fc.integer({ min: 60, max: 400 }), (text, limit) => {
        const count = (html: string) => html.split("<pre>").length;
        for (const piece of [text, ...cutText(text, limit)]) {
          const html = translateMarkdown(piece, TELEGRAM_HTML);
          expect(count(html)).toBe(html.split("</pre>").length);
          expect(html.replace(/<\/?(pre|code|b|i|s)>/g, "")).not.toMatch(/[<>]/);
        }
      }),
      { numRuns: 500, seed: 37 },
    );
  });
});
