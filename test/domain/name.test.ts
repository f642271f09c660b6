import { describe, expect, it } from "vitest";
import { departmentCreateSchema } from "../../src/domain/workers/department.ts";
import { chatCreateSchema } from "../../src/domain/chat/chat.ts";
import { workerCreateSchema, workerUpdateSchema } from "../../src/domain/workers/worker.ts";

const SCHEMAS = [workerCreateSchema, workerUpdateSchema, departmentCreateSchema, chatCreateSchema];
const HIDDEN = [0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x202a, 0x202e, 0x2060, 0x2066, 0x2069, 0xfeff];

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
      for (const code of [0x200a, 0x2010, 0x2029 + 6, 0x205f, 0x206a]) {
        const parsed = schema.safeParse({ name: `Ad${String.fromCodePoint(code)}a` });
        expect([code.toString(16), parsed.success]).toEqual([code.toString(16), true]);
      }
    }
  });

  it("are trimmed", () => {
    for (const schema of SCHEMAS) expect(schema.parse({ name: "  Ada B  " }).name).toBe("Ada B");
  });
});
