import { expect, it } from "vitest";
import { buildTextStream } from "../../../src/http/stream/text_stream.ts";
import { openApp } from "../../harness/service/app.ts";

it("a text is sent in pieces with the same bytes, and no piece ends inside a character", async () => {
  // With one of these starts, a surrogate pair crosses the end of a piece.
  for (const start of ["", "x", "xx", "xxx"]) {
    const text = start + "\u{1F41D}é\ud800".repeat(300_000);
    const pieces: Uint8Array[] = [];
    for await (const piece of buildTextStream(text)) pieces.push(piece);
    expect(pieces.length).toBeGreaterThan(2);
    const decoder = new TextDecoder("utf-8", { fatal: true });
    expect(pieces.map((piece) => decoder.decode(piece)).join("")).toBe(text.toWellFormed());
  }
});

it("the event loop runs while a text of megabytes is encoded", async () => {
  const reader = buildTextStream("x".repeat(4_000_000)).getReader();
  let turns = 0;
  const count = setInterval(() => turns++, 0);
  while (!(await reader.read()).done);
  clearInterval(count);
  expect(turns).toBeGreaterThan(0);
});

it("a page of megabytes is complete, and HEAD returns its length", async () => {
  await using app = await openApp();
  const value = "ü".repeat(100_000);
  const rows = Array.from({ length: 30 }, (_, at) => ({
    sql: "insert into memory (scope, key, value, updated_at) values ('global', ?, ?, 1)",
    args: [`key-${at}`, value],
  }));
  await app.db.write(rows);
  const headers = { authorization: `Bearer ${await app.token()}` };
  const url = `${app.url}/api/memory?scope=global&page_size=100`;
  const body = new Uint8Array(await (await fetch(url, { headers })).arrayBuffer());
  expect(body.length).toBeGreaterThan(4_000_000);
  expect(JSON.parse(new TextDecoder().decode(body))).toHaveLength(30);
  const head = await fetch(url, { method: "HEAD", headers });
  expect(head.headers.get("content-length")).toBe(String(body.length));
});
