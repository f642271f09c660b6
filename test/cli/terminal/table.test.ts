import widthOf from "fast-string-truncated-width";
import { describe, expect, it } from "vitest";
import { field, idField, type Row, statusField, timeField } from "../../../cli/terminal/column.ts";
import { toFields } from "../../../cli/commands/command.ts";
import { createStyle } from "../../../cli/terminal/style.ts";
import { drawTable } from "../../../cli/terminal/table.ts";
import { escapeControls } from "../../../cli/terminal/visible.ts";

const plain = await createStyle(false, {});
const COLUMNS = [
  idField("id"),
  statusField(),
  idField("worker_id"),
  timeField("at"),
  field("reason"),
  field("instruction"),
];

function buildRow(ending: string, more: Row = {}): Row {
  const id = `01a1fd23-4a4c-746f-99ac-${ending.padStart(12, "0")}`;
  return { id, worker_id: id, status: "completed", at: Date.now() - 60_000, ...more };
}

describe("drawTable (contract 8.12)", () => {
  it("is never wider than the terminal, with wide and joined characters and long words", () => {
    const texts = [
      "x".repeat(300),
      "工人的名字".repeat(40),
      "👩‍🚀👨‍👩‍👧".repeat(40),
      "e\u0301".repeat(200),
      "한국어 text ".repeat(30),
      "",
    ];
    const rows = texts.map((instruction, at) =>
      buildRow(`${at}ab`, { instruction, reason: texts.at(-1 - at) })
    );
    for (let width = 40; width <= 220; width += 9) {
      for (const line of drawTable(rows, COLUMNS, plain, width).split("\n")) {
        expect(widthOf(line).width, `${width}: ${line}`).toBeLessThanOrEqual(width);
        expect(line.isWellFormed()).toBe(true);
      }
    }
  });

  it("shortens texts before ids, statuses and times, and keeps short cells complete", () => {
    const long = "a reason that nobody reads to its end, because it is far too long for any terminal at all";
    const [, line = ""] = drawTable([buildRow("ab", { reason: long, instruction: long })], COLUMNS, plain, 80)
      .split("\n");
    expect(line).toMatch(/^…0000ab +completed +…0000ab +1m ago +a reason .*… +a reason .*…$/);
    expect(widthOf(line).width).toBe(80);
    expect(drawTable([buildRow("ab", { instruction: "short" })], COLUMNS, plain, 80)).toMatch(/ {2}short$/);
  });

  it("cuts headers before the cells below them", () => {
    const columns = [
      idField("id"),
      statusField(),
      field("failures_in_row"),
      field("paused_until"),
      field("name"),
    ];
    const rows = [
      buildRow("ab", { status: "scheduled", failures_in_row: 0, paused_until: "no", name: "weekly" }),
    ];
    const [head = "", row = ""] = drawTable(rows, columns, plain, 46).split("\n");
    expect(row.split(/ {2,}/)).toEqual(["…0000ab", "scheduled", "0", "no", "weekly"]);
    expect(head).toMatch(/^ID +STATUS +FAIL\S*… +PAUS\S*… +NAME$/);
  });

  it("shows ids by an ending that no other id of the table has, of six characters or more", () => {
    const table = drawTable([buildRow("1abcdef"), buildRow("2abcdef")], [idField("id")], plain, 80);
    expect(table).toBe("ID\n…1abcdef\n…2abcdef");
    expect(drawTable([buildRow("1"), buildRow("1")], [idField("id")], plain, 80)).toBe(
      "ID\n…000001\n…000001",
    );
    const key = `local:${buildRow("99abcdef").id}`;
    expect(drawTable([{ key }], [idField("key")], plain, 80)).toBe("KEY\nlocal:…abcdef");
  });

  it("has no colors with TERM=dumb", async () => {
    const style = await createStyle(true, { TERM: "dumb" });
    expect(drawTable([buildRow("1")], COLUMNS, style, 80)).not.toContain("\u001b");
    expect(drawTable([buildRow("1")], COLUMNS, await createStyle(true, { TERM: "xterm" }), 80)).toContain(
      "\u001b",
    );
  });
});

it("escapeControls() escapes invisible and direction-changing characters (contract 8.1)", () => {
  expect(escapeControls("a\u202eb\u200bc\ufeffd\u2066e")).toBe("a\\u{202E}b\\u{200B}c\\u{FEFF}d\\u{2066}e");
  expect(escapeControls("a\u200db")).toBe("a\\u{200D}b");
  // An emoji of several characters is one emoji and is kept.
  expect(escapeControls("👩‍🚀 👨🏽‍🚒 ❤️‍🔥")).toBe("👩‍🚀 👨🏽‍🚒 ❤️‍🔥");
  expect(escapeControls("\u001b[2J")).toBe("\ufffd[2J");
});

it("toFields() converts option names to snake case and drops absent options", () => {
  expect(toFields({ pageSize: 5, session: undefined, recursive: false, deleteWorkDir: true })).toEqual({
    page_size: 5,
    recursive: false,
    delete_work_dir: true,
  });
});
