import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildStoredName, cleanFileName, toAsciiName } from "../../src/files/file_name.ts";

const ID = "01a1fd23-4a4c-746f-99ac-8860e2641168";
const SEED = 37;
const RUNS = 2_000;
const FORBIDDEN = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}/\\]/u;

const unicode = fc.string({ unit: "binary", maxLength: 300 });
const graphemes = fc.string({ unit: "grapheme", maxLength: 300 });
// Units of UTF-16 with lone surrogates.
const broken = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 300 })
  .map((units) => String.fromCharCode(...units));
const scripts = fc.array(
  fc.constantFrom(
    ..."报告分析отчётדוחرپورت\u200cها".split(""),
    "रिपोर्ट",
    "👨‍👩‍👧",
    "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "\u202e",
    "\u2066",
    "\u061c",
    "\u0007",
    "\u{e0041}",
    ..." ./\\_-\"%'*;",
  ),
  { maxLength: 300 },
).map((parts) => parts.join(""));
const names = fc.oneof(unicode, graphemes, broken, scripts);
const extensions = fc.string({
  unit: fc.constantFrom(..."abcxyzABCXYZ0123456789"),
  minLength: 1,
  maxLength: 16,
});

describe("the name of a file", () => {
  it("is safe on the disk, for names over all of Unicode", () => {
    fc.assert(
      fc.property(names, (name) => {
        const stored = buildStoredName(ID, name);
        expect(stored).toMatch(/^[A-Za-z0-9][A-Za-z0-9._-]*$/);
        expect(stored.startsWith(ID)).toBe(true);
        expect(stored.length).toBeLessThanOrEqual(255);
        expect(toAsciiName(cleanFileName(name))).toMatch(/^[ -~]{1,150}$/);
      }),
      { seed: SEED, numRuns: RUNS },
    );
  });

  it("keeps its extension on the disk, in a download and for people", () => {
    fc.assert(
      fc.property(names, extensions, (stem, extension) => {
        const name = `${stem}.${extension}`;
        const end = `.${extension}`;
        expect(buildStoredName(ID, name).endsWith(end)).toBe(true);
        expect(toAsciiName(cleanFileName(name)).endsWith(end)).toBe(true);
        expect(cleanFileName(name).endsWith(end)).toBe(true);
      }),
      { seed: SEED, numRuns: RUNS },
    );
  });

  it("keeps everything except path and control characters, and a second cleaning changes nothing", () => {
    fc.assert(
      fc.property(names, (name) => {
        const shown = cleanFileName(name);
        expect(shown).not.toMatch(FORBIDDEN);
        expect(shown.isWellFormed()).toBe(true);
        expect(shown).not.toBe("");
        expect(shown.length).toBeLessThanOrEqual(255);
        expect(cleanFileName(shown)).toBe(shown);
      }),
      { seed: SEED, numRuns: RUNS },
    );
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }), (text) => {
        const name = `x${text.replace(/[/\\\p{Cc}]/gu, "")}`.slice(0, 255);
        fc.pre(
          name.isWellFormed() && !FORBIDDEN.test(name) &&
            !/[\u206a-\u206f\ufff9-\ufffb\u{e0000}-\u{e007f}]/u.test(name),
        );
        expect(cleanFileName(name)).toBe(name);
      }),
      { seed: SEED, numRuns: RUNS },
    );
  });

  const cases: [sent: string, stored: string, shown: string][] = [
    ["季度报告.pdf", `${ID}-file.pdf`, "季度报告.pdf"],
    ["отчёт за год.xlsx", `${ID}-file.xlsx`, "отчёт за год.xlsx"],
    ["דוח.docx", `${ID}-file.docx`, "דוח.docx"],
    ["रिपोर्ट.csv", `${ID}-file.csv`, "रिपोर्ट.csv"],
    ["👨‍👩‍👧.PNG", `${ID}-file.PNG`, "👨‍👩‍👧.PNG"],
    ["گزارش\u200cها.txt", `${ID}-file.txt`, "گزارش\u200cها.txt"],
    ["档案.tar.gz", `${ID}-file.tar.gz`, "档案.tar.gz"],
    ["2024年报告 final.pdf", `${ID}-2024_final.pdf`, "2024年报告 final.pdf"],
    ["Größe.ｐｄｆ", `${ID}-Gro_e.pdf`, "Größe.ｐｄｆ"],
    ["invoice\u202efdp.exe", `${ID}-invoicefdp.exe`, "invoicefdp.exe"],
    ["a\u2067b\u061cc\u200fd\u0085e\u2028f.txt", `${ID}-abcdef.txt`, "abcdef.txt"],
    ["report\u{e0069}\u{e0067}.md", `${ID}-report.md`, "report.md"],
    ["🏴󠁧󠁢󠁥󠁮󠁧󠁿.svg", `${ID}-file.svg`, "🏴󠁧󠁢󠁥󠁮󠁧󠁿.svg"],
    ["x.报告", `${ID}-x`, "x.报告"],
    ["版本v1.2版", `${ID}-v1_2`, "版本v1.2版"],
    ["报告", ID, "报告"],
    ["\u200b\u3164", ID, "file"],
    ["\ud83d.gif", `${ID}-file.gif`, "\ufffd.gif"],
    [`${"字".repeat(400)}.pdf`, `${ID}-file.pdf`, `${"字".repeat(251)}.pdf`],
  ];
  it.each(cases)("has a stored and a readable form: %j, %s, %s", (sent, stored, shown) => {
    expect([buildStoredName(ID, sent), cleanFileName(sent)]).toEqual([stored, shown]);
  });
});
