import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { type Locked, ROOT } from "./lock.ts";
import type { Stamp } from "./stamp.ts";

/** A package's licence: an SPDX expression, and the text that copies must include. */
export interface Licence {
  expression: string;
  text: string;
}

/** Reads the licence of an installed package. An addon for another machine has the licence of this machine's addon. */
export async function readLicence(locked: Locked, installed: Locked = locked): Promise<Licence> {
  const store = join(ROOT, "node_modules", ".deno");
  const prefix = `${installed.name.replace("/", "+")}@${installed.version}`;
  const folder =
    [...Deno.readDirSync(store)].map((entry) => entry.name).filter((name) =>
      name === prefix || name.startsWith(`${prefix}_`)
    ).sort()[0];
  if (folder === undefined) {
    throw new Error(`Cannot name the licence of ${locked.name}: ${prefix} is not installed`);
  }
  const home = join(store, folder, "node_modules", installed.name);
  const { license } = JSON.parse(await Deno.readTextFile(join(home, "package.json")));
  const file =
    [...Deno.readDirSync(home)].map((entry) => entry.name).filter((name) =>
      /^(licen[cs]e|copying)/i.test(name)
    )
      .sort()[0];
  return {
    expression: typeof license === "string" ? license : license?.type ?? "NOASSERTION",
    text: file === undefined ? "" : (await Deno.readTextFile(join(home, file))).trim(),
  };
}

export interface Part extends Locked {
  licence: Licence;
}

/**
 * Builds the bill of materials (CycloneDX 1.6) from the contents of the executables, not from the build machine. Hashes come
 * from deno.lock (reliability SUP-1).
 */
export function buildBom(parts: Part[], runtime: string, stamp: Stamp): object {
  const components = [buildDenoPart(runtime), ...parts.map(buildComponent)];
  const digest = createHash("sha256").update(JSON.stringify([stamp, components])).digest("hex");
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${digest.slice(13, 16)}-8${
      digest.slice(17, 20)
    }-${digest.slice(20, 32)}`,
    version: 1,
    metadata: {
      ...(stamp.commitTime === "" ? {} : { timestamp: stamp.commitTime }),
      component: {
        type: "application",
        "bom-ref": "svc",
        name: "svc",
        version: stamp.version,
        licenses: [{ license: { id: "MIT" } }],
        properties: [{ name: "svc:commit", value: stamp.commit }],
      },
    },
    components,
    dependencies: [
      { ref: "svc", dependsOn: components.map((one) => one["bom-ref"]) },
    ],
  };
}

function buildDenoPart(version: string) {
  return {
    type: "platform",
    "bom-ref": `deno@${version}`,
    name: "deno",
    version,
    licenses: [{ license: { id: "MIT" } }],
    purl: `pkg:github/denoland/deno@v${version}`,
  };
}

function buildComponent({ name, version, integrity, licence }: Part) {
  const [group, short] = name.startsWith("@") ? name.split("/") as [string, string] : [undefined, name];
  return {
    type: "library",
    "bom-ref": `${name}@${version}`,
    ...(group === undefined ? {} : { group }),
    name: short,
    version,
    scope: "required",
    hashes: [{
      alg: "SHA-512",
      content: Buffer.from(integrity.replace("sha512-", ""), "base64").toString("hex"),
    }],
    licenses: [buildLicenceEntry(licence.expression)],
    purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
  };
}

function buildLicenceEntry(expression: string): object {
  return /^[\w.+-]+$/.test(expression) ? { license: { id: expression } } : { expression };
}

/** Formats the licences of all contents as text. */
export function formatNotices(parts: Part[], runtime: string): string {
  const head =
    `svc contains the runtime Deno ${runtime} (MIT, Copyright 2018-2026 the Deno authors, with V8 and other parts under ` +
    "their own licences) and these packages:\n";
  const line = "-".repeat(80);
  return head +
    parts.map(({ name, version, licence: { expression, text } }) =>
      `\n${line}\n${name} ${version} (${expression})\n${line}\n${
        text || "The package brings no text of its licence."
      }\n`
    ).join("");
}
