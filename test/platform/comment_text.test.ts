import fc from "fast-check";
import { lexer, type Token } from "marked";
import { expect, it } from "vitest";
import { disarmComment } from "../../src/platform/webhook/comment_text.ts";

it("mentions and commands in comments are in code spans, and code stays as it is (contract 25)", () => {
  const cases: [given: string, wanted: string][] = [
    ["Thanks @octocat!", "Thanks ``@octocat``!"],
    ["@octo/team, @a.b_c-d.", "``@octo/team``, ``@a.b_c-d``."],
    ["mail ada@example.org", "mail ada@example.org"],
    ["\\@bob &#64;bob &#x0040;bob &commat;bob", "``@bob`` ``@bob`` ``@bob`` ``@bob``"],
    ["`@Input()` and @bob", "`@Input()` and ``@bob``"],
    ["```ts\n@Input()\n/close\n```\n@bob", "```ts\n@Input()\n/close\n```\n````@bob````"],
    // The fence has no end, so its lines count as text.
    ["```\n@bob", "```\n````@bob````"],
    ["`@bob", "` ``@bob``"],
    ["a ` b\nc ` @bob ` d", "a ` b\nc ` ``@bob`` ` d"],
    ["http://a`<!--@bob`", "http://a`&lt;!--``@bob`` `"],
    ["<!--\n```\n-->\n@bob\n```", "&lt;!--\n```\n-->\n@bob\n```"],
    ["`Array<T>` of <b>@bob</b>, 1 < 2", "`Array<T>` of &lt;b>``@bob``&lt;/b>, 1 < 2"],
    [
      "/merge\n/assign @bob\n- /close now\n/etc/hosts and a/b",
      "``/merge``\n``/assign`` ``@bob``\n- ``/close`` now\n/etc/hosts and a/b",
    ],
  ];
  for (const [given, wanted] of cases) expect(disarmComment(given)).toBe(wanted);
});

// Returns the text that a forge searches for mentions, with each piece of code as a space.
function readLiveText(tokens: readonly Token[]): string {
  return tokens.map((token) => {
    if (token.type === "code" || token.type === "codespan") return " ";
    // Forges look for no mention in an address that became a link.
    if (token.type === "link" && !token.raw.startsWith("[")) return " ";
    if (token.type === "table") {
      const cells = [token.header, ...token.rows].flat() as { tokens: Token[] }[];
      return cells.map((cell) => readLiveText(cell.tokens)).join(" ");
    }
    const inner = "tokens" in token && token.tokens !== undefined && token.tokens.length > 0
      ? token.tokens
      : "items" in token
      ? token.items as Token[]
      : null;
    return inner === null ? "text" in token ? token.text : token.raw : readLiveText(inner);
  }).join("");
}

it("no mention of a random text is live in the page that the forge makes of it [FRG-1]", () => {
  const pieces = fc.constantFrom(
    ...[
      "@bob",
      "&#64;bob",
      "`",
      "``",
      "```",
      "~~~",
      "\n",
      "\n\n",
      " ",
      "- ",
      "> ",
      "1. ",
      "# ",
      "    ",
      "a",
      "\\",
      "*",
      "_",
    ],
    ...[
      "<b>",
      "<!--",
      "-->",
      "<pre>",
      "</pre>",
      "[x](",
      ")",
      "|",
      "$$",
      "---",
      '<a title="',
      '">',
      "<http://a",
      "http://a",
      "www.a.b/",
    ],
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 24 }), (parts) => {
      const given = parts.join("");
      const shown = disarmComment(given);
      const live = readLiveText(lexer(shown));
      expect(/(?<![A-Za-z0-9])@[A-Za-z0-9_]/.exec(live)?.[0] ?? "", JSON.stringify([given, shown])).toBe("");
    }),
    { numRuns: 20_000 },
  );
});
