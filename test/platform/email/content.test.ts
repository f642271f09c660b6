// Reads the content of hostile and of ordinary mails. Needs no mail server.
import { describe, expect, it } from "vitest";
import { parseContent } from "../../../src/platform/email/content.ts";
import { cutQuotes } from "../../../src/platform/email/quoted_text.ts";

const parse = (...lines: string[]) => parseContent(new TextEncoder().encode(lines.join("\r\n")));
const part = (text: string, name = "") =>
  `--b\r\nContent-Type: text/plain${name === "" ? "" : `; name="${name}"`}\r\n` +
  `${name === "" ? "" : "Content-Disposition: attachment\r\n"}\r\n${text}\r\n`;
const mixed = (parts: string[]) =>
  parse("Content-Type: multipart/mixed; boundary=b", "", ...parts, "--b--", "");

describe("cutQuotes()", () => {
  it("cuts what a program repeats of earlier mails", () => {
    const on = "On Fri, 27 Nov 2026 at 10:00, Ada Lovelace\n<ada@example.org> wrote:";
    for (
      const [text, own] of [
        [`yes\n\n${on}\n> earlier\n>> still earlier\n`, "yes"],
        [`Am 27.11.2026 um 10:00 schrieb Ada:\n> früher\n\nja`, "ja"],
        ["> one?\nyes\n> two?\nno", "yes\nno"],
        ["fine\n\n-----Original Message-----\nFrom: Ada\nSent: today\n\nearlier", "fine"],
        ["fine\n\n________________________________\nFrom: Ada\nSent: today\nTo: x\n\nearlier", "fine"],
        ["gut\n\nVon: Ada\nGesendet: heute\nAn: x\n\nfrüher", "gut"],
        ["Note these:\n> quoted", "Note these:"],
        ["From: here to there\nis the title", "From: here to there\nis the title"],
        ["> only a quote", "> only a quote"],
        ["a\r\n\r\nb\r\n", "a\n\nb"],
      ]
    ) expect([text, cutQuotes(text ?? "")]).toEqual([text, own]);
  });
});

it("cutQuotes() takes linear time", () => {
  const started = performance.now();
  for (
    const line of [
      "> \n\n",
      "x:\n> \n",
      "\n",
      "From:\n",
      "____________________\n",
      "-",
      "--\n",
      "On\n:\n>\n",
      " ",
    ]
  ) {
    cutQuotes(line.repeat(1_000_000 / line.length));
  }
  expect(performance.now() - started).toBeLessThan(20_000);
});

describe("parseContent()", () => {
  it("reads text, HTML, names and files", async () => {
    expect(
      await parse(
        "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=",
        "From: =?utf-8?q?J=C3=B6rg?= <j@example.org>",
        "",
        "hello",
      ),
    )
      .toMatchObject({ subject: "Grüße", name: "Jörg", text: "hello", unreadable: [] });
    expect(
      await parse("Content-Type: text/html; charset=iso-8859-1", "", "<script>x</script><p>a <b>b</b></p>"),
    )
      .toMatchObject({ text: "a b" });
    const { text, attachments } = await mixed([
      part("hello"),
      part("inside", "../notes.txt"),
      part("two", "b.txt"),
    ]);
    expect(text).toBe("hello");
    expect(attachments.map(({ name, bytes }) => [name, new TextDecoder().decode(bytes).trim()])).toEqual([
      ["../notes.txt", "inside"],
      ["b.txt", "two"],
    ]);
  });

  it("keeps 20 files and 100 parts on all levels, and refuses more lines and HTML than it has time for", async () => {
    const files = (count: number) => Array.from({ length: count }, (_, at) => part("x", `${at}.txt`));
    expect(await mixed(files(20))).toMatchObject({ unreadable: [] });
    const more = await mixed(files(21));
    expect([more.attachments.length, more.unreadable]).toEqual([20, ["the rest of the attachments"]]);
    const nest = (depth: number) =>
      Array.from(
        { length: depth },
        (_, at) => `Content-Type: multipart/mixed; boundary=b${at}\r\n\r\n--b${at}`,
      );
    expect(await parse(...nest(90), "", "deep")).toMatchObject({ text: "deep" });
    expect(await parse(...nest(150), "", "deep")).toMatchObject({
      text: "",
      unreadable: ["a mail of this form"],
    });
    const lines = (count: number) => parse("", "a\n".repeat(count));
    expect((await lines(599_000)).unreadable).toEqual([]);
    expect((await lines(600_001)).unreadable).toEqual(["a mail of this form"]);
    const html = (count: number) => parse("Content-Type: text/html", "", `<p>${"a".repeat(count)}</p>`);
    expect((await html(240_000)).unreadable).toEqual([]);
    expect(await html(250_000)).toMatchObject({ text: "", unreadable: ["the text of the mail"] });
    expect((await parse(`X: ${"a".repeat(70_000)}`, "", "text")).unreadable).toEqual(["a mail of this form"]);
  });
});
