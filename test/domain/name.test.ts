import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { tokenCreateSchema } from "../../src/domain/account/token.ts";
import { userCreateSchema } from "../../src/domain/account/user.ts";
import { buildLookKey } from "../../src/domain/call/name_key.ts";
import { webhookCreateSchema } from "../../src/domain/system/webhook.ts";
import { optionInputs } from "../../src/domain/work/schedule.ts";
import { budgetCreateSchema } from "../../src/domain/workers/budget.ts";
import { runnerCreateSchema } from "../../src/domain/workers/runner.ts";
import { departmentCreateSchema } from "../../src/domain/workers/department.ts";
import { chatCreateSchema } from "../../src/domain/chat/chat.ts";
import { workerCreateSchema, workerUpdateSchema } from "../../src/domain/workers/worker.ts";

const SCHEMAS = [workerCreateSchema, workerUpdateSchema, departmentCreateSchema, chatCreateSchema];
const FIELDS: [kind: string, field: z.ZodType][] = [
  ["user", userCreateSchema.shape.name],
  ["token", tokenCreateSchema.shape.name],
  ["webhook", webhookCreateSchema.shape.name],
  ["runner", runnerCreateSchema.shape.name],
  ["budget", budgetCreateSchema.shape.name],
  ["schedule", optionInputs.name],
];
const HIDDEN = [
  ...[0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x202a, 0x202e, 0x2060, 0x2066, 0x2069, 0xfeff],
  ...[
    0xad,
    0x34f,
    0x61c,
    0x115f,
    0x1160,
    0x17b4,
    0x180b,
    0x180e,
    0x206a,
    0x2800,
    0x3164,
    0xfe00,
    0xfe0f,
    0xffa0,
  ],
  ...[0xfff9, 0xfffc, 0x1bca0, 0x1d159, 0x1d173, 0xe0001, 0xe0041, 0xe007f, 0xe0100, 0xe01ef],
];

describe("names of workers, departments and sessions (contract 8.1)", () => {
  it("contain no invisible and no direction-changing character [SEC-5]", () => {
    for (const schema of SCHEMAS) {
      for (const code of HIDDEN) {
        const name = `Ad${String.fromCodePoint(code)}a`;
        const { error } = schema.safeParse({ name });
        expect([code.toString(16), error?.issues[0]?.message]).toEqual([
          code.toString(16),
          expect.stringContaining("invisible characters"),
        ]);
      }
      for (const code of [0x200a, 0x2010, 0x2029 + 6, 0x205f, 0xe9, 0x4e00, 0x1f680]) {
        const parsed = schema.safeParse({ name: `Ad${String.fromCodePoint(code)}a` });
        expect([code.toString(16), parsed.success]).toEqual([code.toString(16), true]);
      }
    }
  });

  it.each(FIELDS)("contain no character that shows nothing, alone or between letters: %s", (_kind, field) => {
    for (const code of HIDDEN) {
      const hidden = String.fromCodePoint(code);
      for (const name of [hidden, `Ad${hidden}a`, `Ada${hidden}`]) {
        expect([code.toString(16), field.safeParse(name).success]).toEqual([code.toString(16), false]);
      }
    }
    for (const name of ["Ada", "Ådå 李", "🚀 Ops"]) expect(field.safeParse(name).success).toBe(true);
  });

  it("contain no default-ignorable character, for any of Unicode", () => {
    const ignorable = fc.integer({ min: 0, max: 0x10ffff })
      .filter((code) => code < 0xd800 || code > 0xdfff).map((code) => String.fromCodePoint(code))
      .filter((one) => /\p{Default_Ignorable_Code_Point}/u.test(one));
    fc.assert(
      fc.property(ignorable, (one) => {
        expect(userCreateSchema.shape.name.safeParse(`a${one}b`).success).toBe(false);
      }),
      { seed: 37, numRuns: 300 },
    );
  });

  it("are trimmed", () => {
    for (const schema of SCHEMAS) expect(schema.parse({ name: "  Ada B  " }).name).toBe("Ada B");
  });
});

describe("buildLookKey()", () => {
  const alike: [one: string, other: string][] = [
    ["admin", "аdmin"],
    ["admin", "ADMІN"],
    ["admin", "admın"],
    ["admin", "adrnin"],
    ["admin", "ａｄｍｉｎ"],
    ["admin", "𝐚𝐝𝐦𝐢𝐧"],
    ["admin", "αdmin"],
    ["admin", "adm1n"],
    ["BOB", "ВОВ"],
    ["bob", "b0b"],
    ["Peter", "Реtеr"],
    ["TOM", "ΤΟΜ"],
    ["HANNA", "ΗΑΝΝΑ"],
    ["Ada Lovelace", "Ada\u00a0Lovelace"],
    ["o'neil", "o’neil"],
    ["jean-luc", "jean‐luc"],
    ["Zoë", "Zоё"],
    ["bill", "BIII"],
  ];
  it.each(alike)("is equal for %s and %s", (one, other) => {
    expect(buildLookKey(other)).toBe(buildLookKey(one));
  });

  it("ignores blanks around a name", () => {
    for (const other of [" admin", "admin ", "\u00a0admin\u3000"]) {
      expect([other, buildLookKey(other)]).toEqual([other, buildLookKey("admin")]);
    }
  });

  it("differs for names that people can tell apart, and ignores the case and the form of accents", () => {
    const names = [
      "admin",
      "adam",
      "anna",
      "Анна",
      "Иван",
      "Ива",
      "Ωmega",
      "李雷",
      "李蕾",
      "Müller",
      "Muller",
      "ada b",
      "adab",
    ];
    expect(new Set(names.map(buildLookKey)).size).toBe(names.length);
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 40 }), (name) => {
        expect(buildLookKey(name.normalize("NFD"))).toBe(buildLookKey(name.normalize("NFC")));
      }),
      { seed: 37, numRuns: 1_000 },
    );
  });
});
