import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { gemini } from "../../src/engine/adapters/gemini.ts";
import type { Box } from "../../src/engine/process/box.ts";
import { findAdapter } from "../../src/engine/kinds.ts";
import { addServerPrograms, placeServerValues } from "../../src/run/mcp_servers.ts";
import { ORDER } from "../harness/model/order.ts";
import { createTempDir } from "../harness/service/process.ts";

const PATH = "/usr/local/bin:/usr/bin:/bin";

function buildBox(more: Partial<Box> = {}): Box {
  return {
    ...{ workDir: "/work", stateDir: null, runDir: "/runs/1", home: "/home", etc: "/etc", user: null },
    ...{ read: [], messageFiles: [], readOnly: [], write: [], links: [], fixed: [], hidden: [] },
    ...{ limits: {}, total: {}, network: "host" },
    ...more,
  };
}

const network = (hosts: string[]) => ({
  network: { hosts, port: 1, relay: "/svc", open: () => ({ close() {} }) },
});

describe("addServerPrograms() (contract 27)", () => {
  it.each<[string, string[], RegExp | null]>([
    ["https://mcp.example.org/mcp", ["mcp.example.org"], null],
    ["https://mcp.example.org/mcp", ["*.example.org"], null],
    ["https://mcp.example.org/mcp", ["other.org"], /cannot reach mcp\.example\.org/],
    ["https://mcp.example.org:8443/mcp", ["mcp.example.org"], /no port but 443 and 80/],
  ])("checks %s against the network %j of a box", (url, hosts, fault) => {
    const check = () =>
      addServerPrograms([{ name: "docs", url, headers: {} }], buildBox(network(hosts)), PATH);
    if (fault === null) expect(check()?.read).toEqual([]);
    else expect(check).toThrow(fault);
  });

  it("shows the program in a box, and refuses a file in its words that the box does not show", async () => {
    await using dir = await createTempDir();
    const file = join(Deno.realPathSync(dir.path), "server.py");
    // A box has another /tmp.
    await Deno.writeTextFile(file, "");
    const servers = [{ name: "files", command: ["sh", file], env: {} }];
    expect(() => addServerPrograms(servers, buildBox(), PATH)).toThrow(/does not show .*server\.py/);
    const box = addServerPrograms(servers, buildBox({ readOnly: [Deno.realPathSync(dir.path)] }), PATH);
    expect(box?.read.join()).toMatch(/sh$/);
    expect(addServerPrograms(servers, null, PATH)).toBe(null);
    const gone = [{ name: "files", command: ["no-such-program"], env: {} }];
    expect(() => addServerPrograms(gone, null, PATH)).toThrow(
      /MCP server files .*no-such-program was not found/,
    );
  });
});

it("placeServerValues() leaves the names of variables only, always in the same order", () => {
  const docs = { url: "https://a", headers: { "x-key": "two" } };
  const files = { command: ["run"], env: { KEY: "one" } };
  const placed = placeServerValues({ files, docs });
  expect(placed).toEqual(placeServerValues({ docs, files }));
  expect(placed.env).toEqual({ SVC_MCP_1: "two", SVC_MCP_2: "one" });
  expect(JSON.stringify(placed.servers)).not.toMatch(/"(one|two)"/);
});

it("settings of Gemini lose the servers of an earlier run, and keep those of the operator", () => {
  const build = (present: string | null, names: string[]) => {
    const servers = names.map((name) => ({ name, program: `/runs/1/input/mcp-${name}` }));
    const [file] = gemini.buildCommand({ ...ORDER, servers }).files ?? [];
    return file?.content(present) ?? "";
  };
  const own = JSON.stringify({ mcpServers: { mine: { command: "x" }, two: { command: "y", args: ["z"] } } });
  const first = JSON.parse(build(own, ["one", "two"])).mcpServers;
  expect(first.two).toEqual({
    command: "$SVC_MCP_DIR/mcp-two",
    trust: true,
    description: expect.any(String),
  });
  const second = JSON.parse(build(JSON.stringify({ mcpServers: first }), ["two"])).mcpServers;
  expect(Object.keys(second).sort()).toEqual(["mine", "two"]);
});

it.each<[string, string, boolean]>([
  ["claude", "a $b", true],
  ["claude", "a ${B}", false],
  ["codex", "a ${B}", true],
  ["gemini", "a $b", false],
  ["qwen", "a $b", false],
  ["copilot", "a $b", false],
  ["opencode", 'a "b"', false],
  ["opencode", "a {env:B}", false],
  ["goose", "a", false],
  ["acp", "a ${B}", true],
])("%s sends the header %j: %s", (kind, value, sends) => {
  const adapter = findAdapter(kind);
  if (adapter?.driver !== "agent") throw new Error("no agent");
  const server = { url: "https://a", headers: { "x-a": value } };
  expect(adapter.findServerFault?.(server, { state: "per_worker" }) ?? null).toEqual(
    sends ? null : expect.stringMatching(/MCP server/),
  );
});
