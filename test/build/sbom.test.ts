import { describe, expect, it } from "vitest";
import { readLock } from "../../build/lock.ts";
import { buildBom, formatNotices, type Part, readLicence } from "../../build/sbom.ts";

const STAMP = { version: "0.1.0", commit: "abc", commitTime: "2026-01-02T03:04:05.000Z" };

async function readPart(name: string): Promise<Part> {
  const [locked] = (await readLock()).get(name) ?? [];
  if (locked === undefined) throw new Error(`no ${name}`);
  return { ...locked, licence: await readLicence(locked) };
}

interface Bom {
  serialNumber: string;
  components: Record<string, unknown>[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

describe("bom [SUP-1, SUP-3]", () => {
  it("names each package with its licence and the hash of deno.lock, and the runtime [SUP-3]", async () => {
    const hono = await readPart("hono");
    const { components, dependencies } = buildBom(
      [await readPart("@libsql/client"), hono],
      "2.9.6",
      STAMP,
    ) as unknown as Bom;
    expect(components.map((one) => one.purl)).toEqual([
      "pkg:github/denoland/deno@v2.9.6",
      expect.stringMatching(/^pkg:npm\/%40libsql\/client@\d/),
      `pkg:npm/hono@${hono.version}`,
    ]);
    const [{ alg, content }] = components[2]?.hashes as [{ alg: string; content: string }];
    expect([
      alg,
      `sha512-${
        btoa(String.fromCharCode(...(content.match(/../g) ?? []).map((byte) => parseInt(byte, 16))))
      }`,
    ])
      .toEqual(["SHA-512", hono.integrity]);
    expect(components[2]?.licenses).toEqual([{ license: { id: "MIT" } }]);
    expect(dependencies[0]?.dependsOn).toHaveLength(3);
  });

  it("is the same for the same packages, and differs for another commit", async () => {
    const parts = [await readPart("hono")];
    expect(buildBom(parts, "2.9.6", STAMP)).toEqual(buildBom(parts, "2.9.6", STAMP));
    const other = buildBom(parts, "2.9.6", { ...STAMP, commit: "def" }) as unknown as Bom;
    expect(other.serialNumber).not.toBe((buildBom(parts, "2.9.6", STAMP) as unknown as Bom).serialNumber);
    expect(other.serialNumber).toMatch(
      /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/,
    );
  });
});

describe("notices", () => {
  it("contains the text of each licence", async () => {
    const words = formatNotices([await readPart("hono")], "2.9.6");
    expect(words).toContain("Deno 2.9.6");
    expect(words).toMatch(/hono [\d.]+ \(MIT\)/);
    expect(words).toContain("Permission is hereby granted");
  });
});
