import { Buffer } from "node:buffer";
import { describe, expect, it } from "vitest";
import { buildMasks } from "../../src/engine/process/masks.ts";
import { maskText } from "../../src/engine/process/masked_text.ts";

/** Masks a text as a run with this secret does. */
function mask(value: string, text: string): string {
  return maskText(buildMasks([value]).sort((one, other) => other.length - one.length), text);
}

describe("buildMasks() (contract-3 22) [KEY-1]", () => {
  it("masks from 8 characters", () => {
    expect(buildMasks(["short7!"])).toEqual([]);
    expect(mask("eight8!!", "is eight8!! here")).toBe("is ******** here");
  });

  it("masks a value whose end is also the end of a longer form of it", () => {
    const value = "parcel-canary-$HOME-0123456789";
    expect(mask(value, `it is ${value}.`)).toBe(`it is ${"*".repeat(value.length)}.`);
  });

  it("masks each line, and lines with a carriage return", () => {
    const shown = mask("line number 1\r\nline number 2\r\nshort", "line number 2, then line number 1");
    expect(shown).toBe("*************, then *************");
  });

  it.each(["plain-value-1", "with space/and+plus=1", "Größe und 日本語 text", 'quote " and \\ slash'])(
    "masks %j percent-encoded, in JSON, and in base64 at each position, also for URLs",
    (value) => {
      const forms = [encodeURIComponent(value), JSON.stringify(value).slice(1, -1)];
      for (const before of ["", "a", "ab", "user:"]) {
        for (const after of ["", "\n", "xyz"]) {
          forms.push(Buffer.from(before + value + after).toString("base64"));
          forms.push(Buffer.from(before + value + after).toString("base64url"));
        }
      }
      for (const form of forms) {
        // At most one group of four at each end mixes the value with its neighbours.
        const left = mask(value, form).replace(/\*+/, "");
        expect([form, left.length]).toEqual([
          form,
          expect.toSatisfy((length: number) => length <= 4 + 4 + 8),
        ]);
        expect(mask(value, form)).toContain("********");
      }
    },
  );

  it("masks a long value in base64 that is wrapped at 76 characters", () => {
    const value = Array.from({ length: 40 }, (_, at) => `part-${at * 7919}`).join("");
    const wrapped = (Buffer.from(value).toString("base64").match(/.{1,76}/g) ?? []).join("\n");
    expect(mask(value, wrapped).replace(/[*\n]/g, "")).toBe("");
  });
});
